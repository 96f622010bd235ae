package scd

import (
	"maps"
	"slices"

	"varve/internal/value"
)

// Line is what a key went through: its events in order, collapsed and filled.
type Line struct {
	spec             Spec
	steps            []step
	duplicates, ties int
}

// step is all that happened at one sequence, of one operation.
type step struct {
	seq value.Value
	op  Op
	// leaves are the filled leaves after an upsert.
	leaves map[Path]value.Value
	by     value.Value
}

// Fold puts the events of the key with that text in order, makes those of one sequence one, and fills what they do not
// author. The order of events, and repeats of them, mean nothing.
func (s Spec) Fold(key string, events []Event, b Barriers) Line {
	line := Line{spec: s}
	var before map[Path]value.Value
	for _, m := range moments(slices.Concat(events, b.of(key, events))) {
		line.duplicates += m.repeats
		for _, e := range m.barriers {
			before = nil
			line.steps = append(line.steps, step{seq: m.seq, op: barrier, by: e.By})
		}
		if live := m.live(); len(live) > 0 {
			line.ties += len(live) - 1
			before = fill(before, live)
			line.steps = append(line.steps, step{seq: m.seq, op: Upsert, leaves: before, by: live[len(live)-1].By})
		}
		for _, e := range m.deletes {
			before = nil
			line.steps = append(line.steps, step{seq: m.seq, op: Delete, by: e.By})
		}
	}
	return line
}

// fill gives the leaves after upserts of one sequence, in content order, on top of the leaves before.
func fill(before map[Path]value.Value, upserts []Event) map[Path]value.Value {
	if len(before) == 0 && len(upserts) == 1 {
		return upserts[0].Authored
	}
	out := make(map[Path]value.Value, len(before))
	maps.Copy(out, before)
	for _, e := range upserts {
		maps.Copy(out, e.Authored)
	}
	return out
}

// Current is the row that SCD1 shows: of the last event if it is an upsert, and with logical deletes of the last upsert.
func (l Line) Current() (Row, bool) {
	for i, s := range slices.Backward(l.steps) {
		alive := i == len(l.steps)-1
		if !alive && !l.spec.Logical {
			break
		}
		if s.op == Upsert {
			return Row{Values: l.spec.row(s.leaves), Seq: s.seq, Deleted: !alive}, true
		}
	}
	return Row{}, false
}

// History is the rows that SCD2 shows, one a stretch, by their starts.
func (l Line) History() []Row {
	rows, _ := l.stretches()
	return rows
}

// stretches gives the rows, and how many shown upserts another of their stretch hides.
func (l Line) stretches() (rows []Row, absorbed int) {
	open := false
	for _, s := range l.shown() {
		if s.op != Upsert {
			if open {
				rows[len(rows)-1].End = s.bound
			}
			open = false
			continue
		}
		row := Row{Values: l.spec.row(s.leaves), Seq: s.seq, Start: s.bound}
		if open {
			last := &rows[len(rows)-1]
			if l.spec.sameTracked(last.Values, row.Values) {
				last.Values, last.Seq = row.Values, row.Seq
				absorbed++
				continue
			}
			last.End = s.bound
		}
		rows, open = append(rows, row), true
	}
	return rows, absorbed
}

func (s Spec) sameTracked(a, b value.Row) bool {
	for i, c := range s.Columns {
		if c.Tracked && !value.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// shown is a step of which valid time tells, from its bound on.
type shown struct {
	step
	bound value.Value
}

// shown gives the steps with their bounds. With By the bound of a step is the smallest of its own and all later ones; of
// steps with one bound only the last is shown.
func (l Line) shown() []shown {
	out := make([]shown, 0, len(l.steps))
	if !l.spec.By {
		for _, s := range l.steps {
			out = append(out, shown{step: s, bound: s.seq})
		}
		return out
	}
	var bound value.Value
	for i, s := range slices.Backward(l.steps) {
		low := least(s.by, bound)
		if i == len(l.steps)-1 || !value.Equal(low, bound) {
			out = append(out, shown{step: s, bound: low})
		}
		bound = low
	}
	slices.Reverse(out)
	return out
}

// Duplicates is how many events were exact repeats of another.
func (l Line) Duplicates() int { return l.duplicates }

// Ties is how many upserts share their sequence with another of other content.
func (l Line) Ties() int { return l.ties }

// Absorbed is how many shown upserts are part of a row whose values are a later one's.
func (l Line) Absorbed() int {
	_, absorbed := l.stretches()
	return absorbed
}

// NotShown is how many steps valid time hides.
func (l Line) NotShown() int { return len(l.steps) - len(l.shown()) }

// Late is how many fresh events are below the highest sequence that was known before.
func Late(known, fresh []Event) int {
	var top value.Value
	for _, e := range known {
		if value.Compare(e.Seq, top) > 0 {
			top = e.Seq
		}
	}
	late := 0
	for _, e := range fresh {
		if value.Compare(e.Seq, top) < 0 {
			late++
		}
	}
	return late
}
