package merge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/scd"
	"varve/internal/state"
	"varve/internal/value"
)

// preparation is the work of one Prepare.
type preparation struct {
	Request
	table    delta.Table
	snap     *delta.Snapshot // nil for a new table
	manifest state.Manifest
	schema   value.Schema // the table's after the commit
	positions
	keys    map[string]*key
	touched []touched // files that hold a row of an affected key
	live    int64
	records []state.Record // what is remembered of all other keys
	stale   bool           // the remembered events of some key changed
}

// key is a key that the events speak of.
type key struct {
	parts      value.Row
	events     []scd.Event // new ones
	remembered []scd.Event
	old        []oldRow
	rows       []scd.Row // settled
	memory     []scd.Event
	line       scd.Line
	late       int // new events below the highest known sequence
}

// oldRow is a row of an affected key as the table has it.
type oldRow struct {
	row     scd.Row
	whole   value.Row  // as stored, without the hidden sequence
	file    int        // index into touched
	ordinal int64      // among the file's live rows
	lacks   []scd.Path // leaves that the file has not: absent from the row's event, not null
}

// touched is a file that holds a row of an affected key.
type touched struct {
	add     delta.Add
	removed map[int64]bool // ordinals of rows that the commit takes away
}

func (p *preparation) open(ctx context.Context) (done bool, err error) {
	p.snap, err = latest(ctx, p.table)
	if err != nil {
		return false, err
	}
	p.schema = p.Target.Schema
	p.manifest = state.Manifest{TableVersion: -1}
	if p.snap == nil {
		p.positions, err = p.Target.positions(p.schema)
		return false, err
	}
	n, ok := p.snap.Txn(state.AppID)
	if !ok {
		return false, &NotOursError{Table: p.Target.Table}
	}
	if p.manifest, err = state.Load(ctx, p.Store, p.Target.Root, n); err != nil {
		return false, err
	}
	if !slices.ContainsFunc(p.Batches, func(b int64) bool { return !p.manifest.Applied.Has(b) }) {
		return true, nil
	}
	if p.manifest.Source.Dataset != p.Source.Dataset {
		return false, &DriftError{Table: p.Target.Table, Reason: fmt.Sprintf("it is kept by dataset %q", p.manifest.Source.Dataset)}
	}
	if p.manifest.Type != int(p.Target.Type) {
		return false, &DriftError{Table: p.Target.Table, Reason: fmt.Sprintf("it is of SCD type %d, the contract says %d", p.manifest.Type, p.Target.Type)}
	}
	if err := p.foreign(ctx, n); err != nil {
		return false, err
	}
	if p.schema, err = evolve(p.Target, p.snap.Schema()); err != nil {
		return false, err
	}
	p.positions, err = p.Target.positions(p.schema)
	return false, err
}

// foreign looks for commits of others that changed rows since the state was made, and were not undone by putting the table
// back to the files it had before. Where such a commit is cleaned up already, the number of rows has to be that of the state.
func (p *preparation) foreign(ctx context.Context, number int64) error {
	var change *ForeignChangeError
	ours := p.manifest.TableVersion // the newest version whose rows are those of the state
	for v := p.manifest.TableVersion + 1; v <= p.snap.Version(); v++ {
		c, err := p.table.ReadCommit(ctx, v)
		if errors.Is(err, object.ErrNotFound) {
			if rows, ok := delta.LiveRows(p.snap.Files()); !ok || rows != p.manifest.Rows {
				return &ForeignChangeError{Table: p.Target.Table, Version: v, Operation: "its commit is cleaned up", Ours: ours}
			}
			continue
		}
		if err != nil {
			return err
		}
		mine := slices.ContainsFunc(c.Txns, func(t delta.Txn) bool { return t.AppID == state.AppID && t.Version == number })
		switch {
		case mine || (change == nil && !c.DataChange):
			ours = v
		case change == nil:
			change = &ForeignChangeError{Table: p.Target.Table, Version: v, Operation: c.Operation, Ours: ours}
		case c.DataChange:
			undone, err := p.sameFiles(ctx, ours, v)
			if err != nil {
				return err
			}
			if undone {
				change, ours = nil, v
			}
		}
	}
	if change != nil {
		return change
	}
	return nil
}

func (p *preparation) sameFiles(ctx context.Context, a, b int64) (bool, error) {
	first, err := p.table.Version(ctx, a)
	if err != nil {
		return false, err
	}
	second, err := p.table.Version(ctx, b)
	if err != nil {
		return false, err
	}
	return first.SameFiles(second), nil
}

// evolve adds the columns to a table's schema that it lacks and widens those that the contract widens; a column of another
// type is refused.
func evolve(t Target, have value.Schema) (value.Schema, error) {
	out := slices.Clone(have)
	for _, f := range t.Schema {
		i := out.Index(f.Name)
		switch {
		case i < 0:
			f.Nullable = true
			out = append(out, f)
		case out[i].Type.Equal(f.Type):
		case value.Widens(out[i].Type, f.Type):
			out[i].Type = f.Type
		default:
			return nil, &DriftError{Table: t.Table, Reason: fmt.Sprintf("column %q is %s, the contract says %s", f.Name, out[i].Type, f.Type)}
		}
	}
	return out, nil
}

// collect reads the events, then the rows and the remembered events of their keys.
func (p *preparation) collect(ctx context.Context) error {
	p.keys = map[string]*key{}
	for e, err := range p.Events {
		if err != nil {
			return err
		}
		text := value.KeyText(e.Key)
		k := p.keys[text]
		if k == nil {
			k = &key{parts: e.Key}
			p.keys[text] = k
		}
		k.events = append(k.events, e.Event)
	}
	if p.snap == nil {
		return nil
	}
	for _, add := range p.snap.Files() {
		if err := p.scan(ctx, add); err != nil {
			return err
		}
	}
	for r, err := range p.Target.State.Read(ctx, p.Store, p.Target.Root, p.manifest) {
		if err != nil {
			return err
		}
		if k := p.keys[value.KeyText(r.Key)]; k != nil {
			k.remembered = append(k.remembered, r.Event)
			continue
		}
		p.records = append(p.records, r)
	}
	return nil
}

func (p *preparation) scan(ctx context.Context, add delta.Add) error {
	hidden, err := p.snap.HasColumn(ctx, add, state.SequenceColumn)
	if err != nil {
		return err
	}
	file, ordinal, shape := -1, int64(-1), p.snap.Schema()
	var lacks []scd.Path
	for stored, err := range p.snap.ReadFile(ctx, add, p.hidden()) {
		if err != nil {
			return err
		}
		ordinal++
		row := widen(stored, shape, p.schema)
		if p.current(row) {
			p.live++
		}
		k := p.keys[value.KeyText(p.keyOf(row))]
		if k == nil {
			continue
		}
		if !hidden {
			return &SequenceError{Table: p.Target.Table, File: add.Path}
		}
		if file < 0 {
			file = len(p.touched)
			p.touched = append(p.touched, touched{add: add, removed: map[int64]bool{}})
			if lacks, err = p.lacking(ctx, add); err != nil {
				return err
			}
		}
		k.old = append(k.old, oldRow{row: p.decode(row, stored[len(shape)]), whole: row, file: file, ordinal: ordinal, lacks: lacks})
	}
	return nil
}

// lacking gives the leaves of columns that a file does not have, since they came to the table after it.
func (p *preparation) lacking(ctx context.Context, add delta.Add) ([]scd.Path, error) {
	var out []scd.Path
	for _, c := range p.Target.Spec.Columns {
		has, err := p.snap.HasColumn(ctx, add, c.Name)
		if err != nil {
			return nil, err
		}
		if !has {
			out = append(out, slices.Collect(maps.Keys(p.Target.Spec.Author(map[string]value.Value{c.Name: nil})))...)
			out = append(out, c.Name)
		}
	}
	return out, nil
}

// widen gives a stored row the columns and the types that the commit gives the table.
func widen(stored value.Row, have, want value.Schema) value.Row {
	row := make(value.Row, len(want))
	for i := range have {
		row[i] = value.Widen(stored[i], want[i].Type)
	}
	return row
}

// widened says that the commit changes the type of a column, so that every file has to be written anew: files of the old
// type would need a feature of the protocol that few readers have.
func (p *preparation) widened() bool {
	return p.snap != nil && slices.ContainsFunc(p.snap.Schema(), func(f value.Field) bool {
		return !f.Type.Equal(p.schema[p.schema.Index(f.Name)].Type)
	})
}

// fold decides what each key shows and what is remembered of it.
func (p *preparation) fold() error {
	t := p.Target
	for text, k := range p.keys {
		old := make([]scd.Row, len(k.old))
		for i, o := range k.old {
			old[i] = o.row
		}
		if t.Type == scd.Type1 && len(old) > 1 {
			return &DriftError{Table: t.Table, Reason: "a key has more than one row"}
		}
		before := t.Spec.Recall(t.Type, old, k.recollect(t))
		k.late = scd.Late(before, k.events)
		known := slices.Concat(before, k.events)
		k.line = t.Spec.Fold(text, known, scd.Barriers{})
		folded := k.line.History()
		if t.Type == scd.Type1 {
			folded = nil
			if row, ok := k.line.Current(); ok {
				folded = []scd.Row{row}
			}
		}
		k.rows = t.Spec.Settle(t.Type, old, folded)
		k.memory = t.Spec.Remember(t.Type, text, known, scd.Barriers{}, k.rows)
		p.stale = p.stale || !sameEvents(k.memory, k.remembered)
	}
	return nil
}

// recollect gives what is remembered of a key, with an event in words for each row that stands for less than it shows: a
// column that its file lacks is absent from its event, and the row alone would say null.
func (k *key) recollect(t Target) []scd.Event {
	out := slices.Clone(k.remembered)
	for _, o := range k.old {
		told := slices.ContainsFunc(k.remembered, func(e scd.Event) bool { return value.Equal(e.Seq, o.row.Seq) })
		if len(o.lacks) == 0 || told {
			continue
		}
		for _, e := range t.Spec.Recall(t.Type, []scd.Row{o.row}, nil) {
			for _, leaf := range o.lacks {
				delete(e.Authored, leaf)
			}
			out = append(out, e)
		}
	}
	return out
}

// attempt is a name nobody else has.
func attempt() string { return uuid.NewString() }

// ordered gives the affected keys in the order of their text, so that equal work writes equal files.
func (p *preparation) ordered() []*key {
	out := make([]*key, 0, len(p.keys))
	for _, text := range slices.Sorted(maps.Keys(p.keys)) {
		out = append(out, p.keys[text])
	}
	return out
}
