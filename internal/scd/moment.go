package scd

import (
	"slices"

	"varve/internal/value"
)

// moment is what a key is told at one sequence: a barrier, then upserts, then a delete.
type moment struct {
	seq value.Value
	// barriers and deletes have one event at most, which has the smallest bound of all.
	barriers, deletes []Event
	// upserts are distinct and in content order. A delete wins over them.
	upserts []Event
	// repeats is how many events were exact repeats of another.
	repeats int
}

// live is the upserts that no delete wins over.
func (m moment) live() []Event {
	if len(m.deletes) > 0 {
		return nil
	}
	return m.upserts
}

// moments puts events in order.
func moments(events []Event) []moment {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return value.Compare(a.Seq, b.Seq) })
	var out []moment
	for start := 0; start < len(events); {
		end := start + 1
		for end < len(events) && value.Compare(events[end].Seq, events[start].Seq) == 0 {
			end++
		}
		out = append(out, newMoment(events[start:end]))
		start = end
	}
	return out
}

// newMoment takes events of one sequence.
func newMoment(events []Event) moment {
	m := moment{seq: events[0].Seq}
	for _, e := range events {
		switch e.Op {
		case Delete:
			m.deletes, m.repeats = repeat(m.deletes, e, m.repeats)
		case barrier:
			m.barriers, m.repeats = repeat(m.barriers, e, m.repeats)
		default:
			m.upserts = append(m.upserts, e)
		}
	}
	if len(m.upserts) > 1 {
		distinct := distinguish(m.upserts)
		m.repeats += len(m.upserts) - len(distinct)
		m.upserts = distinct
	}
	return m
}

// repeat adds an event of no content: all of them are the same, with the smallest bound.
func repeat(have []Event, e Event, repeats int) ([]Event, int) {
	if len(have) == 0 {
		return []Event{e}, repeats
	}
	have[0].By = least(have[0].By, e.By)
	return have, repeats + 1
}

// distinguish gives upserts in content order, exact repeats made one with the smallest bound.
func distinguish(upserts []Event) []Event {
	type told struct {
		content
		Event
	}
	all := make([]told, len(upserts))
	for i, e := range upserts {
		all[i] = told{content: contentOf(e.Authored), Event: e}
	}
	slices.SortStableFunc(all, func(a, b told) int { return a.compare(b.content) })
	out := make([]Event, 0, len(all))
	for i, e := range all {
		if i > 0 && all[i-1].compare(e.content) == 0 {
			last := &out[len(out)-1]
			last.By = least(last.By, e.By)
			last.Extract = last.Extract || e.Extract
			continue
		}
		out = append(out, e.Event)
	}
	return out
}
