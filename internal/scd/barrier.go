package scd

import (
	"slices"

	"varve/internal/value"
)

// Barriers are what stands for a whole target, known and unknown keys alike.
type Barriers struct {
	Truncates []Truncate
	Extracts  []Extract
}

// Truncate is a barrier between what is below Seq and what is at Seq or above.
type Truncate struct{ Seq, By value.Value }

// Extract is a full extract as of Seq: a barrier for every key that has no row in it.
type Extract struct {
	Seq, By value.Value
	// Silent is the texts of the keys of which the extract makes no statement.
	Silent []string
	// NoBarriers says that the extract speaks of no key that is not in it.
	NoBarriers bool
}

// Union is the barriers of both. The parts of an extract are one: it is silent about the keys of which any part is, and
// speaks of no other key if any part does not.
func (b Barriers) Union(c Barriers) Barriers {
	out := Barriers{Truncates: slices.Clone(b.Truncates), Extracts: slices.Clone(b.Extracts)}
	for _, t := range c.Truncates {
		i := slices.IndexFunc(out.Truncates, func(o Truncate) bool { return value.Compare(o.Seq, t.Seq) == 0 })
		if i < 0 {
			out.Truncates = append(out.Truncates, t)
			continue
		}
		out.Truncates[i].By = least(out.Truncates[i].By, t.By)
	}
	for _, e := range c.Extracts {
		i := slices.IndexFunc(out.Extracts, func(o Extract) bool { return value.Compare(o.Seq, e.Seq) == 0 })
		if i < 0 {
			out.Extracts = append(out.Extracts, e)
			continue
		}
		o := &out.Extracts[i]
		o.By = least(o.By, e.By)
		o.NoBarriers = o.NoBarriers || e.NoBarriers
		o.Silent = slices.Compact(slices.Sorted(slices.Values(slices.Concat(o.Silent, e.Silent))))
	}
	return out
}

// truncated is the highest truncate; what is below it has no say in what is current. It is nil where there is none.
func (b Barriers) truncated() value.Value {
	var top value.Value
	for _, t := range b.Truncates {
		if value.Compare(t.Seq, top) > 0 {
			top = t.Seq
		}
	}
	return top
}

// of gives the barriers that stand for one key, whose rows of extracts are among the events.
func (b Barriers) of(key string, events []Event) []Event {
	var out []Event
	for _, t := range b.Truncates {
		out = append(out, Event{Seq: t.Seq, Op: barrier, By: t.By})
	}
	for _, x := range (Barriers{}).Union(b).Extracts {
		isRow := func(e Event) bool { return e.Extract && value.Compare(e.Seq, x.Seq) == 0 }
		if !x.NoBarriers && !slices.Contains(x.Silent, key) && !slices.ContainsFunc(events, isRow) {
			out = append(out, Event{Seq: x.Seq, Op: barrier, By: x.By})
		}
	}
	return out
}

// least is the smaller of two bounds; nil is no bound.
func least(a, b value.Value) value.Value {
	if a == nil || b != nil && value.Compare(b, a) < 0 {
		return b
	}
	return a
}
