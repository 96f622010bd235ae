package delta

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"varve/internal/columnar"
	"varve/internal/object"
	"varve/internal/value"
)

// The folders below the log.
const (
	sidecarDir = "_sidecars"
	stagedDir  = "_staged_commits"
)

// sidecarAge is how old a sidecar that no checkpoint names must be to be taken for a leftover, not for a part of a
// checkpoint that is being written.
const sidecarAge = 24 * time.Hour

// CleanedLog tells what a cleanup of the log did.
type CleanedLog struct {
	// Through is the version whose checkpoint the log begins with now, -1 where nothing was to be deleted.
	Through int64
	// Deleted are the files, relative to the log's folder, in the order in which they were deleted.
	Deleted []string
}

// CleanLog deletes the part of the log that is expired: what lies before the newest complete checkpoint that is older than
// delta.logRetentionDuration, counted from midnight in UTC. The versions before that checkpoint can be read no more. It
// deletes nothing where delta.enableExpiredLogCleanup is false, and where checkpointProtection forbids it.
func (t Table) CleanLog(ctx context.Context) (CleanedLog, error) {
	snapshot, err := t.Latest(ctx)
	if err != nil {
		return CleanedLog{}, err
	}
	return t.cleanLog(ctx, snapshot)
}

// logListing is every file of the log's folder that a cleanup may delete.
type logListing struct {
	files    []logFile // commits, compactions and checkpoints, ordered
	other    []keyed   // checksums and staged commits
	sidecars []object.Info
}

// keyed is a file of one version.
type keyed struct {
	name    string // relative to the log's folder
	version int64
}

// cleanLog is CleanLog by the properties of a snapshot.
func (t Table) cleanLog(ctx context.Context, snapshot *Snapshot) (CleanedLog, error) {
	none := CleanedLog{Through: noVersion}
	metadata := snapshot.Metadata()
	if err := snapshot.checkUpkeep(); err != nil {
		return none, err
	}
	retention, err := metadata.logRetention()
	if err != nil {
		return none, fmt.Errorf("delta table %q: clean the log: %w", t.Root, err)
	}
	if metadata.off("delta.enableExpiredLogCleanup") {
		return none, nil
	}
	log, err := t.listAll(ctx)
	if err != nil {
		return none, err
	}
	keep := lastExpired(log.files, t.now().UTC().Add(-retention).Truncate(24*time.Hour))
	if keep < 0 || snapshot.protects(keep, log) {
		return none, nil
	}
	doomed := log.before(keep)
	if len(doomed) == 0 && len(log.sidecars) == 0 {
		return none, nil
	}
	// The checkpoint becomes the only thing that these versions stand on: it must be one that can be read.
	if _, err := t.Version(ctx, keep); err != nil {
		return none, fmt.Errorf("clean the log: %w", err)
	}
	done := CleanedLog{Through: keep}
	for _, name := range doomed {
		if err := t.deleteLog(ctx, name, &done); err != nil {
			return done, err
		}
	}
	return done, t.cleanSidecars(ctx, log, keep, &done)
}

// deleteLog deletes a file of the log.
func (t Table) deleteLog(ctx context.Context, name string, done *CleanedLog) error {
	if err := t.Store.Delete(ctx, join(t.Root, logDir, name)); err != nil {
		return fmt.Errorf("delta table %q: clean the log: delete %q: %w", t.Root, name, err)
	}
	done.Deleted = append(done.Deleted, name)
	return nil
}

// listAll lists the log's folder.
func (t Table) listAll(ctx context.Context) (logListing, error) {
	prefix := join(t.Root, logDir) + "/"
	var out logListing
	for info, err := range t.Store.List(ctx, prefix, "") {
		if err != nil {
			return out, fmt.Errorf("delta table %q: list the log: %w", t.Root, err)
		}
		name := strings.TrimPrefix(info.Key, prefix)
		folder, base := path.Split(name)
		digitsOf, rest, _ := strings.Cut(base, ".")
		version, numbered := digits(digitsOf, 20)
		n, known := parseLogName(base)
		switch {
		case folder == "" && known:
			out.files = append(out.files, logFile{logName: n, size: info.Size, modified: info.Modified})
		case folder == "" && numbered && rest == "crc", folder == stagedDir+"/" && numbered:
			out.other = append(out.other, keyed{name: name, version: version})
		case folder == sidecarDir+"/":
			out.sidecars = append(out.sidecars, info)
		}
	}
	slices.SortStableFunc(out.files, func(a, b logFile) int { return a.compare(b.logName) })
	return out, nil
}

// lastExpired gives the version of the newest complete checkpoint that is not younger than a time, or -1.
func lastExpired(files []logFile, cutoff time.Time) int64 {
	expired := int64(noVersion)
	for _, c := range commitTimes(files) {
		if !c.at.After(cutoff) {
			expired = c.version
		}
	}
	older := slices.DeleteFunc(slices.Clone(files), func(f logFile) bool { return f.version > expired })
	if checkpoint := newestCheckpoint(older); len(checkpoint) > 0 {
		return checkpoint[0].version
	}
	return noVersion
}

// protects tells whether the feature checkpointProtection forbids to begin the log at a version: everything before the
// version that it names goes at once or not at all. PROTOCOL.md, Checkpoint Protection.
func (s *Snapshot) protects(keep int64, log logListing) bool {
	const property = "delta.requireCheckpointProtectionBeforeVersion"
	if !s.state.protocol.has("checkpointProtection") {
		return false
	}
	text, ok := s.state.metadata.Configuration[property]
	if !ok {
		return false
	}
	before, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return true
	}
	return keep < before && slices.ContainsFunc(log.files, func(f logFile) bool { return f.version < before })
}

// before gives the names of what goes if the log begins with the checkpoint of a version: commits first, oldest first, then
// checkpoints, so that a checkpoint never stands without need. The version's own commit stays.
func (l logListing) before(keep int64) []string {
	var commits, checkpoints []string
	for _, f := range l.files {
		switch {
		case f.kind == compactedFile && f.version <= keep, f.kind == commitFile && f.version < keep:
			commits = append(commits, f.String())
		case f.kind != compactedFile && f.kind != commitFile && f.version < keep:
			checkpoints = append(checkpoints, f.String())
		}
	}
	for _, o := range l.other {
		if o.version < keep || o.version == keep && strings.HasPrefix(o.name, stagedDir) {
			commits = append(commits, o.name)
		}
	}
	return append(commits, checkpoints...)
}

// cleanSidecars deletes the sidecars that no remaining checkpoint names and that are not new.
func (t Table) cleanSidecars(ctx context.Context, log logListing, keep int64, done *CleanedLog) error {
	oldest := t.now().Add(-sidecarAge)
	doomed := slices.DeleteFunc(log.sidecars, func(i object.Info) bool { return !i.Modified.Before(oldest) })
	if len(doomed) == 0 {
		return nil
	}
	named, err := t.namedSidecars(ctx, log, keep)
	if err != nil {
		return err
	}
	for _, info := range doomed {
		if name := path.Base(info.Key); !named[name] {
			if err := t.deleteLog(ctx, path.Join(sidecarDir, name), done); err != nil {
				return err
			}
		}
	}
	return nil
}

// namedSidecars gives the names of the sidecars that the checkpoints from a version on are made of.
func (t Table) namedSidecars(ctx context.Context, log logListing, from int64) (map[string]bool, error) {
	lists := make([][]string, len(log.files))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, f := range log.files {
		if f.version < from || f.kind == commitFile || f.kind == compactedFile {
			continue
		}
		group.Go(func() error {
			var err error
			if lists[i], err = t.sidecarsOf(groupCtx, f); err != nil {
				return t.corrupt(f.version, logDir+"/"+f.String(), err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, list := range lists {
		for _, raw := range list {
			base := path.Base(raw)
			named[base] = true
			if decoded, err := url.PathUnescape(base); err == nil {
				named[path.Base(decoded)] = true
			}
		}
	}
	return named, nil
}

// sidecarsOf gives the paths of the sidecars that a file of a checkpoint names.
func (t Table) sidecarsOf(ctx context.Context, file logFile) ([]string, error) {
	key := join(t.Root, logDir, file.String())
	var out []string
	if file.json {
		body, err := t.Store.Read(ctx, key, 0, -1)
		if err != nil {
			return nil, err
		}
		actions, err := parseActions(body)
		for _, a := range actions {
			if a.Sidecar != nil {
				out = append(out, a.Sidecar.Path)
			}
		}
		return out, err
	}
	f, err := openObject(ctx, t.Store, key, file.size)
	if err != nil || f.Schema().Index("sidecar") < 0 {
		return nil, err
	}
	columns := value.Schema{structField("sidecar", stringField("path"))}
	for row, err := range f.Rows(columnar.ReadOptions{Columns: columns}) {
		if err != nil {
			return nil, err
		}
		if members, ok := row[0].(value.Struct); ok && len(members) > 0 {
			if p, ok := members[0].Value.(string); ok {
				out = append(out, p)
			}
		}
	}
	return out, nil
}
