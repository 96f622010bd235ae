package scd

import (
	"slices"

	"varve/internal/value"
)

// Remember gives what must be stored beside the rows that the key shows: the known events that can still matter, without
// those that the rows give back. The rows carry the sequences they will be stored with; each must be that of an event
// among events, as the rows of a fold are, settled or not.
//
// A row stands for an upsert at its sequence that authors the whole row, with the row's start as bound, unless an event at
// that sequence is remembered.
func (s Spec) Remember(t Type, key string, events []Event, b Barriers, rows []Row) []Event {
	var out []Event
	for _, m := range s.needed(t, events, b, rows) {
		if !s.given(t, m, rows) {
			out = append(out, m.upserts...)
		}
		out = append(out, m.deletes...)
	}
	return out
}

// Recall gives an event set that has the same fold as the one that was known to Remember, now and with any further events
// and barriers.
func (s Spec) Recall(t Type, rows []Row, remembered []Event) []Event {
	out := slices.Clone(remembered)
	for _, r := range rows {
		if !slices.ContainsFunc(remembered, func(e Event) bool { return value.Compare(e.Seq, r.Seq) == 0 }) {
			out = append(out, s.standsFor(t, r))
		}
	}
	return out
}

// Settle gives the folded rows with the sequence of the old row where an equal one was visible: an event that changes
// nothing rewrites no row, and its own sequence is remembered. The events folded must include all that the old rows stood for.
func (s Spec) Settle(t Type, old, folded []Row) []Row {
	out := slices.Clone(folded)
	for i := range out {
		if at := slices.IndexFunc(old, out[i].same); at >= 0 {
			out[i].Seq = old[at].Seq
		}
	}
	return out
}

// standsFor is the event that a row gives back.
func (s Spec) standsFor(t Type, r Row) Event {
	e := Event{Seq: r.Seq, Op: Upsert, Authored: s.authorRow(r.Values)}
	if s.bounded(t) {
		e.By = r.Start
	}
	return e
}

// bounded says whether the events' own bounds mean anything.
func (s Spec) bounded(t Type) bool { return s.By && t == Type2 }

// given says whether the rows give back exactly the upserts of a moment. If two rows claim one sequence both must.
func (s Spec) given(t Type, m moment, rows []Row) bool {
	if len(m.upserts) != 1 || m.upserts[0].Extract {
		return false
	}
	claims := 0
	for _, r := range rows {
		if value.Compare(r.Seq, m.seq) != 0 {
			continue
		}
		e := s.standsFor(t, r)
		if !sameContent(e.Authored, m.upserts[0].Authored) || s.bounded(t) && !value.Equal(e.By, m.upserts[0].By) {
			return false
		}
		claims++
	}
	return claims > 0
}
