package delta

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// readers bounds how many files of the log are read at once.
const readers = 8

// state is what replaying the log, oldest first, has come to.
type state struct {
	protocol *Protocol
	metadata *Metadata
	info     commitInfo
	txns     map[string]Txn
	domains  map[string]domainMetadata
	files    fileSet
	removed  map[fileKey]Remove
	// err is the first thing that was wrong. It waits until the protocol is known, which may explain it.
	err error
}

// newState is the state before the first version.
func newState() *state {
	return &state{txns: map[string]Txn{}, domains: map[string]domainMetadata{}, removed: map[fileKey]Remove{}}
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
	if s.files.at == nil {
		s.files = newFileSet(len(actions))
	}
	for _, a := range actions {
		switch {
		case a.Remove != nil:
			key := keyOf(a.Remove.Path, a.Remove.DeletionVector)
			s.files.remove(key)
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
			delete(s.removed, s.files.set(a.Add))
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
	commits := make([][]action, len(seg.deltas))
	damage := make([]error, len(seg.deltas)) // told in the order of the log
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, file := range seg.deltas {
		group.Go(func() error {
			body, err := t.Store.Read(groupCtx, join(t.Root, logDir, file.String()), 0, -1)
			if err != nil {
				return t.corrupt(file.version, logDir+"/"+file.String(), err)
			}
			if commits[i], err = parseActions(body); err != nil {
				damage[i] = t.corrupt(file.version, logDir+"/"+file.String(), err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, file := range seg.deltas {
		s.fail(damage[i])
		if file.kind == compactedFile {
			commits[i] = newestFirst(commits[i])
		}
		s.apply(commits[i])
		commits[i] = nil
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
	live := s.files.byPath()
	files := make([]Add, len(live))
	for i, file := range live {
		files[i] = *file.add
		if file.refused != nil {
			return nil, t.corrupt(seg.version, file.add.Path, file.refused)
		}
		if i > 0 && file.path == live[i-1].path {
			return nil, t.corrupt(seg.version, file.add.Path, errors.New("in the table twice"))
		}
	}
	snapshot := &Snapshot{table: t, version: seg.version, state: s, files: files, at: seg.modified}
	if ms, ok := s.info.number("inCommitTimestamp"); ok && s.metadata.flag("delta.enableInCommitTimestamps") {
		snapshot.at = time.UnixMilli(ms)
	}
	return snapshot, nil
}
