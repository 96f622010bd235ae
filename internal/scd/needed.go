package scd

import (
	"slices"

	"varve/internal/value"
)

// needed reduces events to those that some extension by further events and barriers can make matter. More than that does
// no harm: what it keeps is always of the set, so the upserts at the sequence of a row are kept, that a row which stands
// for one never stands for what was not.
func (s Spec) needed(t Type, events []Event, b Barriers, rows []Row) []moment {
	all := moments(events)
	for i := range all {
		all[i].upserts = decisive(all[i])
	}
	if t != Type1 || s.Logical {
		return all // an event below can end a stretch, or be the last upsert once those above are deleted
	}
	return s.current(all, b.truncated(), rows)
}

// decisive gives the upserts of a moment that some other one at its sequence cannot hide: the last authors of each leaf and
// the last of all, in content order. None counts where a delete wins, but a row of an extract tells that there is no barrier.
func decisive(m moment) []Event {
	dead := len(m.deletes) > 0
	if !dead && len(m.upserts) < 2 {
		return m.upserts
	}
	var out []Event
	covered := map[Path]bool{}
	for i, e := range slices.Backward(m.upserts) {
		last := i == len(m.upserts)-1
		if e.Extract || !dead && (cover(covered, e) || last) {
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	return out
}

// cover marks the leaves that an event authors, and says whether one of them was not marked.
func cover(covered map[Path]bool, e Event) bool {
	fresh := false
	for path := range e.Authored {
		fresh = fresh || !covered[path]
		covered[path] = true
	}
	return fresh
}

// current reduces moments to what a current row can come to depend on: down to the highest delete or truncate, the newest
// author of each leaf and the last upsert. Whatever is cut off by a later delete or barrier, it takes older authors with it.
func (s Spec) current(all []moment, truncated value.Value, rows []Row) []moment {
	var out []moment
	covered := map[Path]bool{}
	last := true
	for _, m := range slices.Backward(all) {
		if value.Compare(m.seq, truncated) < 0 {
			break
		}
		if len(m.deletes) > 0 {
			m.upserts = nil
			out = append(out, m)
			break
		}
		claimed := slices.ContainsFunc(rows, func(r Row) bool { return value.Compare(r.Seq, m.seq) == 0 })
		whole := s.covers(covered)
		var keep []Event
		for _, e := range slices.Backward(m.upserts) {
			if cover(covered, e) || claimed || last || e.Extract && !whole {
				keep = append(keep, e)
			}
			last = false
		}
		slices.Reverse(keep)
		m.upserts = keep
		out = append(out, m)
	}
	slices.Reverse(out)
	return out
}

// covers says whether every leaf is covered: then no barrier below can matter.
func (s Spec) covers(covered map[Path]bool) bool {
	for _, c := range s.Columns {
		if c.Leaves == nil && !covered[c.Name] || c.Leaves != nil && !covered[c.presence()] {
			return false
		}
		for _, name := range c.Leaves {
			if !covered[c.leaf(name)] {
				return false
			}
		}
	}
	return true
}
