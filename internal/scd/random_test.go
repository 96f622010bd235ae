package scd_test

import (
	"pgregory.net/rapid"

	"varve/internal/scd"
	"varve/internal/value"
)

// maxSeq is small, so that events collide.
const maxSeq = 6

// drawSpec draws a spec of two plain columns and perhaps a struct.
func drawSpec(t *rapid.T) scd.Spec {
	spec := scd.Spec{
		Columns: []scd.Column{{Name: "a"}, {Name: "b"}, {Name: "c", Leaves: []string{"p", "q"}}},
		By:      rapid.Bool().Draw(t, "by"), Logical: rapid.Bool().Draw(t, "logical"),
	}
	spec.Columns = spec.Columns[:rapid.IntRange(1, len(spec.Columns)).Draw(t, "columns")]
	ignore := rapid.Bool().Draw(t, "ignore null")
	for i := range spec.Columns {
		spec.Columns[i].Tracked = rapid.IntRange(0, 3).Draw(t, "tracked") > 0
		spec.Columns[i].IgnoreNull = ignore && rapid.Bool().Draw(t, "ignored")
	}
	return spec
}

func drawSeq(t *rapid.T) value.Value { return rapid.Int64Range(1, maxSeq).Draw(t, "seq") }

func drawBy(t *rapid.T, spec scd.Spec) value.Value {
	if !spec.By {
		return nil
	}
	return rapid.Int64Range(1, 4).Draw(t, "by")
}

// drawColumns draws what a record says: values, nulls, and absent ones where it is not whole.
func drawColumns(t *rapid.T, spec scd.Spec, whole bool) map[string]value.Value {
	absent := func() bool { return !whole && rapid.IntRange(0, 2).Draw(t, "absent") == 0 }
	scalar := func() value.Value { return rapid.SampledFrom([]value.Value{"x", "y", nil}).Draw(t, "value") }
	out := map[string]value.Value{}
	for _, c := range spec.Columns {
		switch {
		case absent():
		case c.Leaves == nil:
			out[c.Name] = scalar()
		case rapid.IntRange(0, 4).Draw(t, "null struct") == 0:
			out[c.Name] = nil
		default:
			s := value.Struct{}
			for _, leaf := range c.Leaves {
				if !absent() {
					s = append(s, value.Member{Name: leaf, Value: scalar()})
				}
			}
			out[c.Name] = s
		}
	}
	return out
}

func drawEvent(t *rapid.T, spec scd.Spec, whole bool) scd.Event {
	e := scd.Event{Seq: drawSeq(t), By: drawBy(t, spec)}
	switch rapid.IntRange(0, 9).Draw(t, "operation") {
	case 0, 1, 2:
		e.Op = scd.Delete
	case 3:
		e.Extract = true
		e.Authored = spec.Author(drawColumns(t, spec, true))
	default:
		e.Authored = spec.Author(drawColumns(t, spec, whole))
	}
	return e
}

func drawEvents(t *rapid.T, spec scd.Spec, most int) []scd.Event {
	whole := rapid.Bool().Draw(t, "whole")
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scd.Event { return drawEvent(t, spec, whole) }), 0, most).Draw(t, "events")
}

func drawTruncates(t *rapid.T, spec scd.Spec) []scd.Truncate {
	out := make([]scd.Truncate, rapid.IntRange(0, 4).Draw(t, "truncates")/3)
	for i := range out {
		out[i] = scd.Truncate{Seq: drawSeq(t), By: drawBy(t, spec)}
	}
	return out
}

// drawExtracts draws extracts. An extract has bounds like every barrier.
func drawExtracts(t *rapid.T, spec scd.Spec) []scd.Extract {
	out := make([]scd.Extract, max(rapid.IntRange(0, 4).Draw(t, "extracts")-2, 0))
	for i := range out {
		x := scd.Extract{Seq: drawSeq(t), By: drawBy(t, spec), NoBarriers: rapid.IntRange(0, 5).Draw(t, "no barriers") == 0}
		if rapid.IntRange(0, 4).Draw(t, "silent") == 0 {
			x.Silent = []string{theKey}
		}
		out[i] = x
	}
	return out
}

func drawBarriers(t *rapid.T, spec scd.Spec) scd.Barriers {
	return scd.Barriers{}.Union(scd.Barriers{Truncates: drawTruncates(t, spec), Extracts: drawExtracts(t, spec)})
}

// theKey is the key of the histories: a fold is about one key.
const theKey = `[1]`
