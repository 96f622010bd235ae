package delta

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// readers bounds how many files of the log are read at once.
const readers = 8

// fileKey is what reconciliation knows a file by. PROTOCOL.md, Action Reconciliation.
type fileKey struct{ path, vector string }

// keyOf gives the key of a file. A path that is refused stands for itself: a tombstone of it must not fail.
func keyOf(raw string, d *DeletionVector) fileKey {
	p, err := filePath(raw)
	if err != nil {
		p = raw
	}
	return fileKey{path: p, vector: d.uniqueID()}
}

// state is what replaying the log, oldest first, has come to.
type state struct {
	protocol *Protocol
	metadata *Metadata
	info     commitInfo
	txns     map[string]Txn
	domains  map[string]domainMetadata
	files    map[fileKey]Add
	removed  map[fileKey]Remove
	// err is the first thing that was wrong. It waits until the protocol is known, which may explain it.
	err error
}

// newState is the state before the first version.
func newState() *state {
	return &state{
		txns: map[string]Txn{}, domains: map[string]domainMetadata{}, files: map[fileKey]Add{}, removed: map[fileKey]Remove{},
	}
}

// fail keeps the first error.
func (s *state) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// apply takes in the actions of one commit, whose order says nothing.
func (s *state) apply(actions []action) {
	s.info = nil
	for _, a := range actions {
		switch {
		case a.Remove != nil:
			key := keyOf(a.Remove.Path, a.Remove.DeletionVector)
			delete(s.files, key)
			s.removed[key] = *a.Remove
		case a.Protocol != nil:
			s.protocol = a.Protocol
		case a.Metadata != nil:
			s.metadata = a.Metadata
		case a.Txn != nil:
			s.txns[a.Txn.AppID] = *a.Txn
		case a.DomainMetadata != nil:
			s.domains[a.DomainMetadata.Domain] = *a.DomainMetadata
		case a.CommitInfo != nil:
			s.info = a.CommitInfo
		}
	}
	for _, a := range actions {
		if a.Add != nil {
			key := keyOf(a.Add.Path, a.Add.DeletionVector)
			delete(s.removed, key)
			s.files[key] = *a.Add
		}
	}
}

// newestFirst leaves out file actions of a compaction that an earlier line overrides. There should be none, but writers
// that put several there put the newest first.
func newestFirst(actions []action) []action {
	seen := map[fileKey]bool{}
	return slices.DeleteFunc(actions, func(a action) bool {
		var key fileKey
		switch {
		case a.Add != nil:
			key = keyOf(a.Add.Path, a.Add.DeletionVector)
		case a.Remove != nil:
			key = keyOf(a.Remove.Path, a.Remove.DeletionVector)
		default:
			return false
		}
		overridden := seen[key]
		seen[key] = true
		return overridden
	})
}

// replay reads the files of a segment.
func (t Table) replay(ctx context.Context, seg segment) (*Snapshot, error) {
	s := newState()
	for _, file := range seg.checkpoint {
		if err := t.readCheckpoint(ctx, file, s); err != nil {
			s.fail(t.corrupt(seg.version, logDir+"/"+file.String(), err))
		}
	}
	bodies := make([][]byte, len(seg.deltas))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, file := range seg.deltas {
		group.Go(func() error {
			body, err := t.Store.Read(groupCtx, join(t.Root, logDir, file.String()), 0, -1)
			if err != nil {
				return t.corrupt(file.version, logDir+"/"+file.String(), err)
			}
			bodies[i] = body
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, file := range seg.deltas {
		actions, err := parseActions(bodies[i])
		if err != nil {
			s.fail(t.corrupt(file.version, logDir+"/"+file.String(), err))
		}
		if file.kind == compactedFile {
			actions = newestFirst(actions)
		}
		s.apply(actions)
	}
	if n := len(seg.deltas); n == 0 || seg.deltas[n-1].kind == compactedFile {
		s.info = t.commitInfo(ctx, seg.version)
	}
	return t.finish(seg, s)
}

// commitInfo reads the commitInfo of a version, nil where there is none.
func (t Table) commitInfo(ctx context.Context, version int64) commitInfo {
	name := logName{version: version}
	body, err := t.Store.Read(ctx, join(t.Root, logDir, name.String()), 0, -1)
	if err != nil {
		return nil
	}
	s := newState()
	actions, _ := parseActions(body) // what makes the version was read elsewhere; this is only what its commit tells of itself
	s.apply(actions)
	return s.info
}

// finish checks a state and makes the snapshot of it.
func (t Table) finish(seg segment, s *state) (*Snapshot, error) {
	place := logDir
	if n := len(seg.deltas); n > 0 {
		place += "/" + seg.deltas[n-1].String()
	} else if len(seg.checkpoint) > 0 {
		place += "/" + seg.checkpoint[0].String()
	}
	if s.protocol != nil {
		if err := s.protocol.checkRead(); err != nil {
			return nil, t.corrupt(seg.version, place, err)
		}
	}
	switch {
	case s.err != nil:
		return nil, s.err
	case s.protocol == nil:
		return nil, t.corrupt(seg.version, place, errors.New("no protocol"))
	case s.metadata == nil:
		return nil, t.corrupt(seg.version, place, errors.New("no metaData"))
	}
	keys := slices.SortedFunc(maps.Keys(s.files), func(a, b fileKey) int { return strings.Compare(a.path, b.path) })
	files := make([]Add, len(keys))
	for i, key := range keys {
		files[i] = s.files[key]
		if _, err := filePath(files[i].Path); err != nil {
			return nil, t.corrupt(seg.version, files[i].Path, err)
		}
		if i > 0 && key.path == keys[i-1].path {
			return nil, t.corrupt(seg.version, files[i].Path, errors.New("in the table twice"))
		}
	}
	snapshot := &Snapshot{table: t, version: seg.version, state: s, files: files, at: seg.modified}
	if ms, ok := s.info.number("inCommitTimestamp"); ok && s.metadata.flag("delta.enableInCommitTimestamps") {
		snapshot.at = time.UnixMilli(ms)
	}
	return snapshot, nil
}
