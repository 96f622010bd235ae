package merge

import (
	"fmt"
	"slices"

	"varve/internal/scd"
	"varve/internal/state"
	"varve/internal/value"
)

// positions tells where in a table's row the parts of a target's row stand; -1 where the target has no such part.
type positions struct {
	keys, columns               []int
	start, end, isCurrent, gone int
}

// positions finds the target's columns in the table's schema; a column of the table that the target does not know is
// refused, since rewriting a row would lose it.
func (t Target) positions(schema value.Schema) (positions, error) {
	at := positions{start: -1, end: -1, isCurrent: -1, gone: -1}
	for _, f := range schema {
		if t.Schema.Index(f.Name) < 0 {
			return at, &DriftError{Table: t.Table, Reason: fmt.Sprintf("column %q is in the table and no longer in the contract", f.Name)}
		}
	}
	find := func(name string) int {
		if name == "" {
			return -1
		}
		return schema.Index(name)
	}
	for _, f := range t.State.Keys {
		at.keys = append(at.keys, find(f.Name))
	}
	for _, f := range t.State.Columns {
		at.columns = append(at.columns, find(f.Name))
	}
	at.start, at.end, at.isCurrent, at.gone = find(t.Start), find(t.End), find(t.Current), find(t.Deleted)
	if i := slices.Index(slices.Concat(at.keys, at.columns), -1); i >= 0 {
		return at, fmt.Errorf("target %q: its schema lacks a column that its state has", t.Table)
	}
	return at, nil
}

func (p *preparation) hidden() value.Schema {
	return value.Schema{{Name: state.SequenceColumn, Type: p.Target.State.Sequence, Nullable: true}}
}

func (p *preparation) keyOf(row value.Row) value.Row {
	out := make(value.Row, len(p.positions.keys))
	for i, at := range p.positions.keys {
		out[i] = row[at]
	}
	return out
}

// current says whether a row is a key's current one: what the guard counts as alive.
func (p *preparation) current(row value.Row) bool {
	switch {
	case p.end >= 0:
		return row[p.end] == nil
	case p.gone >= 0:
		return row[p.gone] != true
	default:
		return true
	}
}

// decode takes a table's row apart.
func (p *preparation) decode(row value.Row, seq value.Value) scd.Row {
	out := scd.Row{Values: make(value.Row, len(p.columns)), Seq: seq}
	for i, at := range p.columns {
		out.Values[i] = row[at]
	}
	if p.start >= 0 {
		out.Start, out.End = row[p.start], row[p.end]
	}
	if p.gone >= 0 {
		out.Deleted = row[p.gone] == true
	}
	return out
}

// encode puts a table's row together.
func (p *preparation) encode(parts value.Row, r scd.Row) value.Row {
	row := make(value.Row, len(p.schema))
	for i, at := range p.positions.keys {
		row[at] = parts[i]
	}
	for i, at := range p.columns {
		row[at] = r.Values[i]
	}
	if p.start >= 0 {
		row[p.start], row[p.end] = r.Start, r.End
	}
	if p.isCurrent >= 0 {
		row[p.isCurrent] = r.End == nil
	}
	if p.gone >= 0 {
		row[p.gone] = r.Deleted
	}
	return row
}

// sameRow says whether two rows are equal in every visible column and in their sequence.
func sameRow(a, b scd.Row) bool {
	return value.Equal(a.Seq, b.Seq) && value.Equal(a.Start, b.Start) && value.Equal(a.End, b.End) && a.Deleted == b.Deleted &&
		slices.EqualFunc(a.Values, b.Values, value.Equal)
}

// sameEvents says whether two lists hold the same events, in any order.
func sameEvents(a, b []scd.Event) bool {
	if len(a) != len(b) {
		return false
	}
	left := map[string]int{}
	for _, e := range a {
		left[eventText(e)]++
	}
	for _, e := range b {
		left[eventText(e)]--
	}
	for _, n := range left {
		if n != 0 {
			return false
		}
	}
	return true
}

// eventText is an event as one text, for comparing.
func eventText(e scd.Event) string {
	authored := make(value.Struct, 0, len(e.Authored))
	for p, v := range e.Authored {
		authored = append(authored, value.Member{Name: p, Value: v})
	}
	slices.SortFunc(authored, func(a, b value.Member) int { return value.Compare(a.Name, b.Name) })
	return value.KeyText([]value.Value{e.Seq, int64(e.Op), e.Extract, e.By, authored})
}
