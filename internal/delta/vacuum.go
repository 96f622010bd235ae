package delta

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// VacuumOptions says what Vacuum may delete.
type VacuumOptions struct {
	// DryRun lists what would be deleted, and deletes nothing.
	DryRun bool
	// Retention is how long a file stays that nothing needs any more, and how long past versions can be read. Default the
	// table's delta.deletedFileRetentionDuration.
	Retention *time.Duration
	// Force allows a Retention that is shorter than the table's. It may take files from readers of past versions, and from
	// writers that have not committed yet.
	Force bool
	// Prepared are commits that may yet be made: what they add stays, however old. Default none.
	Prepared []Commit
	// Owned are hidden folders of the caller's, which are swept by the caller's rule. Default none: other hidden folders
	// are never touched.
	Owned []OwnedFolder
}

// OwnedFolder is a hidden folder below a table's root whose files belong to versions of the table by a writer's marks.
type OwnedFolder struct {
	// Path is the folder's, relative to the table's root.
	Path string
	// AppID is that of the marks.
	AppID string
	// Needed is asked once, with the marks of every version that stays readable, ascending. It gives which files, by their
	// path relative to the table's root, must stay.
	Needed func(ctx context.Context, marks []int64) (func(path string) bool, error)
}

// VacuumResult tells what Vacuum did, or would do.
type VacuumResult struct {
	// Version is the newest version of the table.
	Version int64
	// Oldest is the oldest version that can still be read.
	Oldest    int64
	Retention time.Duration
	// Files are those deleted, or to be deleted, ordered by path.
	Files []VacuumedFile
	// Bytes is the sum of their sizes.
	Bytes int64
}

// VacuumedFile is a file that no version needs.
type VacuumedFile struct {
	// Path is relative to the table's root.
	Path string
	Size int64
}

// RetentionError says that a retention is shorter than the table's and was not forced.
type RetentionError struct {
	Table        string
	Asked, Least time.Duration
}

// Error names the table, both durations and the way out.
func (e *RetentionError) Error() string {
	return fmt.Sprintf("delta table %q: retention %v is shorter than the table's %v: readers of past versions and writers that have not committed would lose files; force it if there are none",
		e.Table, e.Asked, e.Least)
}

// Vacuum deletes the files below the table's root that no version needs which was current within the retention: data files,
// deletion vectors, change files, and what the caller's own folders have. A file younger than the retention, by the store's
// clock, stays: it may belong to a commit on its way. Names that begin with "_" or "." are not touched but for
// "_change_data", folders of partitions and the caller's own folders; nor is another table below this one, nor anything
// outside the root.
//
// It makes no version. Spark writes VACUUM START and VACUUM END commits in some kinds of stores and not in others; a commit
// of ours would say nothing that readers need, and would stand between a writer and the version that it read.
//
// After an error some of the files may be deleted; the same call goes on where it ended.
func (t Table) Vacuum(ctx context.Context, o VacuumOptions) (VacuumResult, error) {
	snapshot, err := t.Latest(ctx)
	if err != nil {
		return VacuumResult{}, err
	}
	if err := snapshot.checkVacuum(); err != nil {
		return VacuumResult{}, err
	}
	retention, err := snapshot.vacuumRetention(o)
	if err != nil {
		return VacuumResult{}, err
	}
	cutoff := t.now().Add(-retention)
	// What is listed is judged by the log as it is after the listing, so that no commit in between is missed.
	found, err := t.sweepable(ctx, snapshot.Metadata(), o.Owned, cutoff)
	if err != nil {
		return VacuumResult{}, err
	}
	kept, err := t.retained(ctx, cutoff, o)
	if err != nil {
		return VacuumResult{}, fmt.Errorf("vacuum: %w", err)
	}
	out := VacuumResult{Version: kept.newest, Oldest: kept.oldest, Retention: retention}
	for _, f := range found {
		if kept.has(f.Path) {
			continue
		}
		out.Files = append(out.Files, f)
		out.Bytes += f.Size
	}
	if o.DryRun {
		return out, nil
	}
	return t.deleteAll(ctx, out)
}

// checkVacuum tells whether the table may be vacuumed: only by a client that may write it. PROTOCOL.md, Vacuum Protocol
// Check.
func (s *Snapshot) checkVacuum() error {
	if err := s.checkUpkeep(); err != nil {
		return err
	}
	err := s.state.protocol.checkWrite(*s.state.metadata)
	if unsupported, ok := errors.AsType[*UnsupportedError](err); ok {
		return &UnsupportedError{Table: s.table.Root, Feature: unsupported.Feature, Write: true}
	}
	if err != nil {
		return fmt.Errorf("delta table %q: %w", s.table.Root, err)
	}
	return nil
}

// vacuumRetention decides on the retention.
func (s *Snapshot) vacuumRetention(o VacuumOptions) (time.Duration, error) {
	least, err := s.state.metadata.fileRetention()
	if err != nil {
		return 0, fmt.Errorf("delta table %q: vacuum: %w", s.table.Root, err)
	}
	if o.Retention == nil {
		return least, nil
	}
	if *o.Retention < 0 {
		return 0, fmt.Errorf("delta table %q: vacuum: negative retention %v", s.table.Root, *o.Retention)
	}
	if *o.Retention < least && !o.Force {
		return 0, &RetentionError{Table: s.table.Root, Asked: *o.Retention, Least: least}
	}
	return *o.Retention, nil
}

// sweepable lists the files below the root that are old enough and that Vacuum may touch at all, ordered by path.
func (t Table) sweepable(ctx context.Context, m Metadata, owned []OwnedFolder, cutoff time.Time) ([]VacuumedFile, error) {
	prefix := join(t.Root) + "/"
	if t.Root == "" {
		prefix = ""
	}
	rule := newSweepRule(m, owned)
	var found []VacuumedFile
	nested := map[string]bool{}
	for info, err := range t.Store.List(ctx, prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("delta table %q: vacuum: list files: %w", t.Root, err)
		}
		name := strings.TrimPrefix(info.Key, prefix)
		if inner, _, ok := strings.Cut(name, "/"+logDir+"/"); ok {
			nested[inner+"/"] = true
			continue
		}
		if info.Modified.Before(cutoff) && rule.sweeps(name) {
			found = append(found, VacuumedFile{Path: name, Size: info.Size})
		}
	}
	found = slices.DeleteFunc(found, func(f VacuumedFile) bool { return belowAny(f.Path, nested) })
	slices.SortFunc(found, func(a, b VacuumedFile) int { return cmp.Compare(a.Path, b.Path) })
	return found, nil
}

// belowAny tells whether a path is in one of the folders, which end in a slash.
func belowAny(name string, folders map[string]bool) bool {
	if len(folders) == 0 {
		return false
	}
	for i := range len(name) {
		if name[i] == '/' && folders[name[:i+1]] {
			return true
		}
	}
	return false
}

// sweepRule says which names below a root Vacuum may touch.
type sweepRule struct {
	owned []string // folders, each with a slash at its end
	parts []string // what folders of partitions begin with
	// iceberg says that "metadata" at the root is that of an Iceberg view of the table.
	iceberg bool
}

// newSweepRule makes the rule of a table.
func newSweepRule(m Metadata, owned []OwnedFolder) sweepRule {
	var r sweepRule
	for _, o := range owned {
		r.owned = append(r.owned, join(o.Path)+"/")
	}
	for _, f := range m.partitionFields() {
		r.parts = append(r.parts, f.Name+"=", hiveEscape(f.Name)+"=")
	}
	for _, name := range m.PartitionColumns {
		r.parts = append(r.parts, name+"=", hiveEscape(name)+"=")
	}
	r.iceberg = strings.Contains(strings.ToLower(m.Configuration["delta.universalFormat.enabledFormats"]), "iceberg")
	return r
}

// sweeps tells whether a file may be touched.
func (r sweepRule) sweeps(name string) bool {
	if slices.ContainsFunc(r.owned, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
		return true
	}
	if r.iceberg && strings.HasPrefix(name, "metadata/") {
		return false
	}
	segments := strings.Split(name, "/")
	for i, segment := range segments {
		if segment == "" || segment[0] != '_' && segment[0] != '.' {
			continue
		}
		folder := i < len(segments)-1
		partition := slices.ContainsFunc(r.parts, func(part string) bool { return strings.HasPrefix(segment, part) })
		if !folder || !partition && (i > 0 || segment != changeDir) {
			return false
		}
	}
	return true
}

// changeDir is the folder of change files. PROTOCOL.md, Change Data Files.
const changeDir = "_change_data"

// deleteAll deletes the files of a result, and leaves those in it that are gone.
func (t Table) deleteAll(ctx context.Context, planned VacuumResult) (VacuumResult, error) {
	var mu sync.Mutex
	out := planned
	out.Files, out.Bytes = nil, 0
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, f := range planned.Files {
		group.Go(func() error {
			if err := t.Store.Delete(groupCtx, join(t.Root, f.Path)); err != nil {
				return fmt.Errorf("delta table %q: vacuum: delete %q: %w", t.Root, f.Path, err)
			}
			mu.Lock()
			defer mu.Unlock()
			out.Files = append(out.Files, f)
			out.Bytes += f.Size
			return nil
		})
	}
	err := group.Wait()
	slices.SortFunc(out.Files, func(a, b VacuumedFile) int { return cmp.Compare(a.Path, b.Path) })
	return out, err
}
