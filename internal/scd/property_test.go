package scd_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"varve/internal/scd"
	"varve/internal/value"
)

func kinds() []scd.Type { return []scd.Type{scd.Type1, scd.Type2} }

// same fails unless both lines show the same rows.
func same(t *rapid.T, kind scd.Type, got, want []scd.Row, hidden bool) {
	t.Helper()
	if g, w := rowTexts(got, hidden), rowTexts(want, hidden); !slices.Equal(g, w) {
		t.Fatalf("SCD%d: got %v, want %v", kind, g, w)
	}
}

func TestOrderAndRepetitionMeanNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		events, b := drawEvents(t, spec, 8), drawBarriers(t, spec)
		again := rapid.Permutation(events).Draw(t, "again")
		if len(events) > 0 {
			again = append(again, rapid.SliceOfN(rapid.SampledFrom(events), 0, 3).Draw(t, "repeated")...)
		}
		for _, kind := range kinds() {
			want := visible(kind, spec.Fold(theKey, events, b))
			same(t, kind, visible(kind, spec.Fold(theKey, again, b)), want, true)
		}
	})
}

func TestFoldLeavesItsEventsAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		events, b := drawEvents(t, spec, 8), drawBarriers(t, spec)
		before := make([]string, 0, len(events))
		for _, e := range events {
			before = append(before, eventText(e))
		}
		for _, kind := range kinds() {
			rows := visible(kind, spec.Fold(theKey, events, b))
			spec.Recall(kind, rows, spec.Remember(kind, theKey, events, b, rows))
		}
		for i, e := range events {
			if eventText(e) != before[i] {
				t.Fatalf("event %d was %s, is %s", i, before[i], eventText(e))
			}
		}
	})
}

// TestApplyIsUnion applies batches to a table that keeps rows, remembered events and barriers only, and then extends it.
func TestApplyIsUnion(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		rapid.Check(t, func(t *rapid.T) {
			spec := drawSpec(t)
			table := newTable(spec, kind)
			batches := rapid.IntRange(1, 5).Draw(t, "batches")
			all := make([]scd.Event, 0, batches)
			for range batches {
				events := drawEvents(t, spec, 4)
				if len(all) > 0 && rapid.IntRange(0, 3).Draw(t, "replayed") == 0 {
					events = append(events, rapid.SampledFrom(all).Draw(t, "known"))
				}
				all = append(all, events...)
				table.apply(map[string][]scd.Event{theKey: events}, drawBarriers(t, spec))
				same(t, kind, table.rows[theKey], visible(kind, spec.Fold(theKey, all, table.barriers)), false)
			}
		})
	}
}

// TestRememberedAndRowsFoldLikeAllEvents is the law of the store: what is recalled has the same fold as all events under
// every extension. Truncates stay for ever; what an extract says of a key may change with a further part of it.
func TestRememberedAndRowsFoldLikeAllEvents(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		rapid.Check(t, func(t *rapid.T) {
			spec := drawSpec(t)
			table := newTable(spec, kind)
			batches := rapid.IntRange(1, 3).Draw(t, "batches")
			all := make([]scd.Event, 0, batches)
			for range batches {
				events := drawEvents(t, spec, 5)
				all = append(all, events...)
				table.apply(map[string][]scd.Event{theKey: events}, drawBarriers(t, spec))
			}
			recalled := spec.Recall(kind, table.rows[theKey], table.remembered[theKey])
			for range 4 {
				further := drawEvents(t, spec, 3)
				b := scd.Barriers{Truncates: table.barriers.Truncates}.Union(scd.Barriers{Truncates: drawTruncates(t, spec)})
				b.Extracts = drawExtracts(t, spec)
				want := visible(kind, spec.Fold(theKey, slices.Concat(all, further), b))
				same(t, kind, visible(kind, spec.Fold(theKey, slices.Concat(recalled, further), b)), want, true)
			}
		})
	}
}

func TestNothingIsRememberedTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		events, b := drawEvents(t, spec, 8), drawBarriers(t, spec)
		for _, kind := range kinds() {
			rows := visible(kind, spec.Fold(theKey, events, b))
			remembered := spec.Remember(kind, theKey, events, b, rows)
			again := spec.Remember(kind, theKey, spec.Recall(kind, rows, remembered), b, rows)
			if len(again) != len(remembered) {
				t.Fatalf("SCD%d: %d events remembered, then %d", kind, len(remembered), len(again))
			}
		}
	})
}

func TestCurrentHistoryIsCurrentState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		line := spec.Fold(theKey, drawEvents(t, spec, 8), drawBarriers(t, spec))
		var open []value.Row
		for _, r := range line.History() {
			if r.End == nil {
				open = append(open, r.Values)
			}
		}
		row, ok := line.Current()
		alive := ok && !row.Deleted
		if len(open) > 1 || alive != (len(open) == 1) {
			t.Fatalf("alive %v, %d open rows", alive, len(open))
		}
		if alive && value.KeyText(open[0]) != value.KeyText(row.Values) {
			t.Fatalf("open %s, current %s", value.KeyText(open[0]), value.KeyText(row.Values))
		}
	})
}

func TestRowsAreHalfOpenAndNeverOverlap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		rows := spec.Fold(theKey, drawEvents(t, spec, 8), drawBarriers(t, spec)).History()
		for i, r := range rows {
			if r.End != nil && value.Compare(r.Start, r.End) >= 0 {
				t.Fatalf("row %d has no width: %s", i, rowText(r, true))
			}
			if i > 0 && (rows[i-1].End == nil || value.Compare(rows[i-1].End, r.Start) > 0) {
				t.Fatalf("row %d overlaps the one before: %v", i, rowTexts(rows, true))
			}
		}
	})
}

// TestValidTimeShowsTheNewestEffectiveEvent is the meaning of bounds of one's own, where no two events share a sequence.
func TestValidTimeShowsTheNewestEffectiveEvent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		spec.By = true
		for i := range spec.Columns {
			spec.Columns[i].Tracked = true
		}
		events := make([]scd.Event, 0, maxSeq)
		for seq := range int64(maxSeq) {
			e := drawEvent(t, spec, true)
			e.Seq = seq
			events = append(events, e)
		}
		rows := spec.Fold(theKey, events, scd.Barriers{}).History()
		for at := range int64(6) {
			var newest *scd.Event
			for i, e := range events {
				if value.Compare(e.By, at) <= 0 {
					newest = &events[i]
				}
			}
			var seen []scd.Row
			for _, r := range rows {
				if value.Compare(r.Start, at) <= 0 && (r.End == nil || value.Compare(at, r.End) < 0) {
					seen = append(seen, r)
				}
			}
			if want := newest != nil && newest.Op == scd.Upsert; len(seen) > 1 || (len(seen) == 1) != want {
				t.Fatalf("at %d: %v, want a row: %v", at, rowTexts(seen, true), want)
			}
		}
	})
}
