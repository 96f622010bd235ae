package scd_test

import (
	"maps"
	"slices"

	"varve/internal/scd"
	"varve/internal/value"
)

// table is a target as it is stored: the rows and what is remembered of each key, and the barriers. Nothing else lives from
// one batch to the next.
type table struct {
	spec       scd.Spec
	kind       scd.Type
	rows       map[string][]scd.Row
	remembered map[string][]scd.Event
	barriers   scd.Barriers
}

func newTable(spec scd.Spec, kind scd.Type) *table {
	return &table{spec: spec, kind: kind, rows: map[string][]scd.Row{}, remembered: map[string][]scd.Event{}}
}

// apply folds a batch into the table.
func (t *table) apply(events map[string][]scd.Event, b scd.Barriers) {
	t.barriers = t.barriers.Union(b)
	keys := map[string]bool{}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(events)), slices.Collect(maps.Keys(t.rows)), slices.Collect(maps.Keys(t.remembered))) {
		keys[key] = true
	}
	for key := range keys {
		known := append(t.spec.Recall(t.kind, t.rows[key], t.remembered[key]), events[key]...)
		rows := t.spec.Settle(t.kind, t.rows[key], visible(t.kind, t.spec.Fold(key, known, t.barriers)))
		t.remembered[key] = t.spec.Remember(t.kind, key, known, t.barriers, rows)
		t.rows[key] = rows
	}
}

// visible is the rows that a target of a type shows.
func visible(kind scd.Type, line scd.Line) []scd.Row {
	if kind == scd.Type2 {
		return line.History()
	}
	if row, ok := line.Current(); ok {
		return []scd.Row{row}
	}
	return nil
}

// rowText is a row as one text, with or without the sequence it hides.
func rowText(r scd.Row, hidden bool) string {
	seq := r.Seq
	if !hidden {
		seq = nil
	}
	return value.KeyText([]value.Value{value.List(r.Values), seq, r.Start, r.End, r.Deleted})
}

func rowTexts(rows []scd.Row, hidden bool) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = rowText(r, hidden)
	}
	return out
}
