package delta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// retained is what the versions need that were current within a retention.
type retained struct {
	oldest, newest int64
	// paths are files relative to the root.
	paths map[string]bool
	// names are last parts of paths that lead outside, or seem to: a file of that name stays, since the path may mean it.
	names map[string]bool
	marks map[string]map[int64]bool
	owned []ownedRule
}

// ownedRule is the caller's rule of one folder.
type ownedRule struct {
	folder string
	needed func(path string) bool
}

// has tells whether a file must stay.
func (k *retained) has(name string) bool {
	for _, o := range k.owned {
		if strings.HasPrefix(name, o.folder) {
			return o.needed(name)
		}
	}
	return k.paths[name] || k.names[path.Base(name)]
}

// retained collects what must stay: all that the oldest version needs which was current at the cutoff, all that the commits
// after it add, remove or record as changes, and what unexpired tombstones name. With these every version since the cutoff
// can be read.
func (t Table) retained(ctx context.Context, cutoff time.Time, o VacuumOptions) (*retained, error) {
	latest, err := t.Latest(ctx)
	if err != nil {
		return nil, err
	}
	if err := latest.checkVacuum(); err != nil {
		return nil, err
	}
	base, err := t.currentAt(ctx, cutoff, latest)
	if err != nil {
		return nil, err
	}
	k := &retained{
		oldest: base.version, newest: latest.version,
		paths: map[string]bool{}, names: map[string]bool{}, marks: map[string]map[int64]bool{},
	}
	for _, s := range []*Snapshot{base, latest} {
		if err := k.keepSnapshot(s, cutoff); err != nil {
			return nil, err
		}
	}
	if err := t.keepCommits(ctx, k); err != nil {
		return nil, err
	}
	for _, c := range o.Prepared {
		for _, a := range c.Adds {
			if err := k.keepFile(a.Path, a.DeletionVector); err != nil {
				return nil, fmt.Errorf("a prepared commit: %w", err)
			}
		}
	}
	for _, folder := range o.Owned {
		needed, err := folder.Needed(ctx, k.marksOf(folder.AppID))
		if err != nil {
			return nil, fmt.Errorf("folder %q: %w", folder.Path, err)
		}
		k.owned = append(k.owned, ownedRule{folder: join(folder.Path) + "/", needed: needed})
	}
	return k, nil
}

// currentAt gives the version that was the newest one at a time, or the oldest one after it that can be read.
func (t Table) currentAt(ctx context.Context, at time.Time, latest *Snapshot) (*Snapshot, error) {
	files, err := t.listLog(ctx, 0, latest.version)
	if err != nil {
		return nil, err
	}
	version := int64(0)
	for _, c := range commitTimes(files) {
		if !c.at.After(at) {
			version = c.version
		}
	}
	if version >= latest.version {
		return latest, nil
	}
	s, err := t.Version(ctx, version)
	if !errors.Is(err, ErrNoVersion) {
		return s, err
	}
	for _, f := range files {
		if f.version <= version || len(newestCheckpoint(atVersion(files, f.version))) == 0 {
			continue
		}
		return t.Version(ctx, f.version)
	}
	return latest, nil
}

// atVersion gives the files of one version.
func atVersion(files []logFile, version int64) []logFile {
	return slices.DeleteFunc(slices.Clone(files), func(f logFile) bool { return f.version != version })
}

// keepSnapshot keeps what a version's files and its unexpired tombstones name.
func (k *retained) keepSnapshot(s *Snapshot, cutoff time.Time) error {
	for _, a := range s.files {
		if err := k.keepFile(a.Path, a.DeletionVector); err != nil {
			return s.table.corrupt(s.version, a.Path, err)
		}
	}
	for _, r := range s.state.removed {
		if r.DeletionTimestamp <= cutoff.UnixMilli() {
			continue
		}
		if err := k.keepFile(r.Path, r.DeletionVector); err != nil {
			return s.table.corrupt(s.version, r.Path, err)
		}
	}
	for _, txn := range s.state.txns {
		k.mark(txn)
	}
	return nil
}

// mark remembers a writer's mark.
func (k *retained) mark(txn Txn) {
	if k.marks[txn.AppID] == nil {
		k.marks[txn.AppID] = map[int64]bool{}
	}
	k.marks[txn.AppID][txn.Version] = true
}

// marksOf gives the marks of a writer, ascending.
func (k *retained) marksOf(appID string) []int64 {
	return slices.Sorted(maps.Keys(k.marks[appID]))
}

// keepFile keeps a file and the file of its deletion vector.
func (k *retained) keepFile(raw string, d *DeletionVector) error {
	k.keepPath(raw)
	if d == nil {
		return nil
	}
	file, err := d.file()
	switch {
	case err == nil && file != "":
		k.paths[file] = true
	case err != nil && d.StorageType == "p":
		k.keepPath(d.PathOrInlineDv)
	case err != nil:
		return err
	}
	return nil
}

// keepPath keeps the file of an action's path.
func (k *retained) keepPath(raw string) {
	if p, err := filePath(raw); err == nil {
		k.paths[p] = true
		return
	}
	k.names[path.Base(raw)] = true
	if decoded, err := url.PathUnescape(raw); err == nil {
		k.names[path.Base(decoded)] = true
	}
}

// keepCommits keeps what the commits after the oldest version, and its own, speak of.
func (t Table) keepCommits(ctx context.Context, k *retained) error {
	bodies := make([][]byte, k.newest-k.oldest)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i := range bodies {
		group.Go(func() error {
			name := logName{version: k.oldest + 1 + int64(i)}
			body, err := t.Store.Read(groupCtx, join(t.Root, logDir, name.String()), 0, -1)
			if err != nil {
				return t.corrupt(name.version, logDir+"/"+name.String(), err)
			}
			bodies[i] = body
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, body := range bodies {
		if err := k.keepCommit(body); err != nil {
			name := logName{version: k.oldest + 1 + int64(i)}
			return t.corrupt(name.version, logDir+"/"+name.String(), err)
		}
	}
	return nil
}

// keepCommit keeps what a commit speaks of.
func (k *retained) keepCommit(body []byte) error {
	actions, err := parseActions(body)
	if err != nil {
		return err
	}
	for _, a := range actions {
		switch {
		case a.Add != nil:
			err = k.keepFile(a.Add.Path, a.Add.DeletionVector)
		case a.Remove != nil:
			err = k.keepFile(a.Remove.Path, a.Remove.DeletionVector)
		case a.CDC != nil:
			k.keepPath(a.CDC.Path)
		case a.Txn != nil:
			k.mark(*a.Txn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
