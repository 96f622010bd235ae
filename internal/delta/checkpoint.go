package delta

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"varve/internal/columnar"
	"varve/internal/value"
)

// lastCheckpointName is the file of the log that names a checkpoint.
const lastCheckpointName = "_last_checkpoint"

// lastCheckpointJSON is what it holds.
type lastCheckpointJSON struct {
	Version       int64 `json:"version"`
	Size          int64 `json:"size"`
	SizeInBytes   int64 `json:"sizeInBytes"`
	NumOfAddFiles int64 `json:"numOfAddFiles"`
}

// The defaults of table properties.
const (
	defaultCheckpointInterval = 10
	defaultFileRetention      = 7 * 24 * time.Hour
)

// checkpointAfter makes the checkpoint that is due after a commit, if one is. The commit stands whatever comes of it:
// a checkpoint only saves readers work, and the next one due makes up for it.
func (t Table) checkpointAfter(ctx context.Context, version int64, m Metadata) {
	interval, err := strconv.ParseInt(m.Configuration["delta.checkpointInterval"], 10, 64)
	if err != nil || interval < 1 {
		interval = defaultCheckpointInterval
	}
	if version > 0 && version%interval == 0 {
		_ = t.Checkpoint(ctx, version) // see above
	}
}

// Checkpoint writes the classic checkpoint of a version, and names it in _last_checkpoint unless that names a newer one.
func (t Table) Checkpoint(ctx context.Context, v int64) error {
	snapshot, err := t.Version(ctx, v)
	if err != nil {
		return err
	}
	actions := snapshot.reconciled(t.now())
	columns := checkpointColumns()
	var body bytes.Buffer
	o := columnar.WriteOptions{StatsColumns: []string{}}
	if _, err := columnar.Write(&body, columns, checkpointRows(columns, actions), o); err != nil {
		return fmt.Errorf("delta table %q: checkpoint of version %d: %w", t.Root, v, err)
	}
	name := logName{kind: classicCheckpoint, version: v}
	if err := t.Store.Put(ctx, join(t.Root, logDir, name.String()), body.Bytes()); err != nil {
		return fmt.Errorf("delta table %q: checkpoint of version %d: %w", t.Root, v, err)
	}
	if t.lastCheckpoint(ctx) > v {
		return nil
	}
	hint, err := json.Marshal(lastCheckpointJSON{
		Version: v, Size: int64(len(actions)), SizeInBytes: int64(body.Len()), NumOfAddFiles: int64(len(snapshot.files)),
	})
	if err != nil {
		return err
	}
	if err := t.Store.Put(ctx, join(t.Root, logDir, lastCheckpointName), hint); err != nil {
		return fmt.Errorf("delta table %q: name checkpoint of version %d: %w", t.Root, v, err)
	}
	return nil
}

// reconciled gives the actions of a checkpoint. PROTOCOL.md, Action Reconciliation and Checkpoints.
func (s *Snapshot) reconciled(now time.Time) []action {
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
	for _, a := range s.files {
		a.DataChange = false
		actions = append(actions, action{Add: &a})
	}
	oldest := now.Add(-s.state.metadata.fileRetention()).UnixMilli()
	removed := slices.SortedFunc(maps.Keys(s.state.removed), func(a, b fileKey) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.vector, b.vector))
	})
	for _, key := range removed {
		if r := s.state.removed[key]; r.DeletionTimestamp > oldest {
			r.DataChange, r.Stats, r.Tags = false, "", nil
			actions = append(actions, action{Remove: &r})
		}
	}
	return actions
}

// fileRetention is how long removed files are remembered.
func (m Metadata) fileRetention() time.Duration {
	fields := strings.Fields(strings.ToLower(m.Configuration["delta.deletedFileRetentionDuration"]))
	if len(fields) == 3 && fields[0] == "interval" {
		fields = fields[1:]
	}
	if len(fields) != 2 {
		return defaultFileRetention
	}
	units := map[string]time.Duration{
		"week": 7 * 24 * time.Hour, "day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second,
		"millisecond": time.Millisecond,
	}
	n, err := strconv.ParseInt(fields[0], 10, 32)
	unit, ok := units[strings.TrimSuffix(fields[1], "s")]
	if err != nil || !ok || n < 0 {
		return defaultFileRetention
	}
	return time.Duration(n) * unit
}

// checkpointColumns is the columns of a checkpoint that this package writes: those it reads, but for V2's.
func checkpointColumns() value.Schema {
	return slices.DeleteFunc(checkpointSchema(), func(f value.Field) bool { return f.Name == "sidecar" })
}

// checkpointRows makes a row of each action, by way of the protocol's JSON.
func checkpointRows(columns value.Schema, actions []action) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for _, a := range actions {
			row, err := rowOf(columns, a)
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// rowOf makes a row of an action.
func rowOf(columns value.Schema, a action) (value.Row, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var members map[string]any
	if err := dec.Decode(&members); err != nil {
		return nil, err
	}
	row := make(value.Row, len(columns))
	for i, f := range columns {
		if row[i], err = fromForm(f.Type, members[f.Name]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return row, nil
}

// fromForm is jsonForm the other way.
func fromForm(t value.Type, form any) (value.Value, error) {
	switch form := form.(type) {
	case nil:
		return nil, nil //nolint:nilnil // nil is the null value
	case map[string]any:
		if t.Kind == value.MapKind {
			return mapFromForm(t, form)
		}
		out := make(value.Struct, len(t.Fields))
		for i, f := range t.Fields {
			v, err := fromForm(f.Type, form[f.Name])
			if err != nil {
				return nil, err
			}
			out[i] = value.Member{Name: f.Name, Value: v}
		}
		return out, nil
	case []any:
		out := make(value.List, len(form))
		for i, e := range form {
			v, err := fromForm(*t.Elem, e)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case json.Number:
		return form.Int64()
	default: // text and booleans are values as they are
		return form, nil
	}
}

// mapFromForm makes a map, its keys in order.
func mapFromForm(t value.Type, form map[string]any) (value.Value, error) {
	out := make(value.Map, 0, len(form))
	for _, key := range slices.Sorted(maps.Keys(form)) {
		v, err := fromForm(*t.Elem, form[key])
		if err != nil {
			return nil, err
		}
		out = append(out, value.Entry{Key: key, Value: v})
	}
	return out, nil
}
