package delta

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"varve/internal/columnar"
)

// defaultCheckpointInterval is how many versions apart checkpoints are where delta.checkpointInterval does not say.
const defaultCheckpointInterval = 10

// checkpointAfter makes what is due after a commit: the version's checksum and, now and then, its checkpoint, after which
// the expired part of the log goes. The commit stands whatever comes of it: these only save readers work, and the next
// ones due make up for it.
func (t Table) checkpointAfter(ctx context.Context, version int64, m Metadata) {
	interval, err := strconv.ParseInt(m.Configuration["delta.checkpointInterval"], 10, 64)
	if err != nil || interval < 1 {
		interval = defaultCheckpointInterval
	}
	if version == 0 || version%interval != 0 {
		_ = t.checksumAfter(ctx, version) // see above
		return
	}
	snapshot, err := t.checkpoint(ctx, version)
	if err == nil {
		_, _ = t.cleanLog(ctx, snapshot) // see above
	}
}

// Checkpoint writes the classic checkpoint of a version with its checksum, and names it in _last_checkpoint unless that
// names a newer one. PROTOCOL.md, Checkpoints.
func (t Table) Checkpoint(ctx context.Context, v int64) error {
	_, err := t.checkpoint(ctx, v)
	return err
}

// checkpoint is Checkpoint that gives the snapshot that it read.
func (t Table) checkpoint(ctx context.Context, v int64) (*Snapshot, error) {
	snapshot, err := t.Version(ctx, v)
	if err != nil {
		return nil, err
	}
	if err := snapshot.checkUpkeep(); err != nil {
		return nil, err
	}
	w := newCheckpointWriter(snapshot)
	var body bytes.Buffer
	o := columnar.WriteOptions{StatsColumns: []string{}}
	if _, err := columnar.Write(&body, w.columns, w.rows(snapshot.reconciled(t.now())), o); err != nil {
		return nil, fmt.Errorf("delta table %q: checkpoint of version %d: %w", t.Root, v, err)
	}
	name := logName{kind: classicCheckpoint, version: v}
	if err := t.Store.Put(ctx, join(t.Root, logDir, name.String()), body.Bytes()); err != nil {
		return nil, fmt.Errorf("delta table %q: checkpoint of version %d: %w", t.Root, v, err)
	}
	hint := lastCheckpointJSON{
		Version: v, Size: w.written, SizeInBytes: int64(body.Len()), NumOfAddFiles: int64(len(snapshot.files)),
	}
	if err := t.nameCheckpoint(ctx, hint, w.columns); err != nil {
		return nil, fmt.Errorf("delta table %q: name checkpoint of version %d: %w", t.Root, v, err)
	}
	return snapshot, t.putChecksum(ctx, v, snapshot.Checksum())
}

// checkUpkeep tells whether a table's log may be rewritten: not where a feature that this package never heard of might have
// put something there that a rewrite loses, nor where a catalog has the say.
func (s *Snapshot) checkUpkeep() error {
	refuse := func(what string) error {
		return &UnsupportedError{Table: s.table.Root, Feature: what, Write: true}
	}
	p := s.state.protocol
	if p.MinWriterVersion > featureWriter {
		return refuse("minWriterVersion " + strconv.Itoa(p.MinWriterVersion))
	}
	for _, name := range p.WriterFeatures {
		if f, ok := featureNamed(name); !ok || f.managed {
			return refuse("feature " + strconv.Quote(name))
		}
	}
	return nil
}

// reconciled gives the actions of a checkpoint. PROTOCOL.md, Action Reconciliation and Checkpoints.
func (s *Snapshot) reconciled(now time.Time) iter.Seq[action] {
	return func(yield func(action) bool) {
		for _, part := range []iter.Seq[action]{s.describing(), s.adds(), s.tombstones(now)} {
			for a := range part {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// describing gives the actions of a checkpoint that are not of files.
func (s *Snapshot) describing() iter.Seq[action] {
	actions := []action{{Protocol: s.state.protocol}, {Metadata: s.state.metadata}}
	for _, appID := range slices.Sorted(maps.Keys(s.state.txns)) {
		txn := s.state.txns[appID]
		actions = append(actions, action{Txn: &txn})
	}
	for _, name := range slices.Sorted(maps.Keys(s.state.domains)) {
		if domain := s.state.domains[name]; !domain.Removed {
			actions = append(actions, action{DomainMetadata: &domain})
		}
	}
	return slices.Values(actions)
}

// adds gives the live files as a checkpoint has them.
func (s *Snapshot) adds() iter.Seq[action] {
	return func(yield func(action) bool) {
		for _, a := range s.files {
			a.DataChange = false
			if !yield(action{Add: &a}) {
				return
			}
		}
	}
}

// tombstones gives the removals that are not expired, ordered. Where the retention is not understood none is.
func (s *Snapshot) tombstones(now time.Time) iter.Seq[action] {
	retention, err := s.state.metadata.fileRetention()
	oldest := now.Add(-retention).UnixMilli()
	keys := slices.SortedFunc(maps.Keys(s.state.removed), func(a, b fileKey) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.vector, b.vector))
	})
	return func(yield func(action) bool) {
		for _, key := range keys {
			r := s.state.removed[key]
			if err == nil && r.DeletionTimestamp <= oldest {
				continue
			}
			r.DataChange, r.Stats, r.Tags = false, "", nil
			if !yield(action{Remove: &r}) {
				return
			}
		}
	}
}
