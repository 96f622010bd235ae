package scd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/scd"
	"varve/internal/value"
)

// plain is the spec of a whole feed of one tracked column a and one untracked column b.
func plain() scd.Spec {
	return scd.Spec{Columns: []scd.Column{{Name: "a", Tracked: true}, {Name: "b"}}}
}

func upsert(seq int64, authored ...any) scd.Event {
	e := scd.Event{Seq: seq, Authored: map[scd.Path]value.Value{}}
	for i := 0; i < len(authored); i += 2 {
		path, _ := authored[i].(string)
		e.Authored[path] = authored[i+1]
	}
	return e
}

func del(seq int64) scd.Event { return scd.Event{Seq: seq, Op: scd.Delete} }

// remembered is the sequences remembered of events, folded at once.
func remembered(spec scd.Spec, kind scd.Type, b scd.Barriers, events ...scd.Event) []value.Value {
	rows := visible(kind, spec.Fold(theKey, events, b))
	events = spec.Remember(kind, theKey, events, b, rows)
	out := make([]value.Value, len(events))
	for i, e := range events {
		out[i] = e.Seq
	}
	return out
}

func TestRowsOfAWholeFeedNeedNoMemory(t *testing.T) {
	t.Parallel()
	events := []scd.Event{upsert(1, "a", "x", "b", "x"), upsert(2, "a", "y", "b", "x"), upsert(2, "a", "y", "b", "x"), upsert(3, "a", "z", "b", nil)}
	require.Empty(t, remembered(plain(), scd.Type1, scd.Barriers{}, events...))
	require.Empty(t, remembered(plain(), scd.Type2, scd.Barriers{}, events...))
}

func TestADeleteIsRememberedAndEndsWhatIsBelow(t *testing.T) {
	t.Parallel()
	events := []scd.Event{upsert(1, "a", "x"), del(2), upsert(2, "a", "x"), del(1)}
	require.Equal(t, []value.Value{int64(2)}, remembered(plain(), scd.Type1, scd.Barriers{}, events...))
	require.Equal(t, []value.Value{int64(1), int64(2)}, remembered(plain(), scd.Type2, scd.Barriers{}, events...), "no dead upsert")
}

func TestATruncatedKeyLeavesNothing(t *testing.T) {
	t.Parallel()
	b := scd.Barriers{Truncates: []scd.Truncate{{Seq: int64(3)}}}
	require.Empty(t, remembered(plain(), scd.Type1, b, upsert(1, "a", "x"), del(2), upsert(2, "b", "x")))
}

func TestOnlyTheNewestAuthorOfALeafIsRemembered(t *testing.T) {
	t.Parallel()
	events := []scd.Event{upsert(1, "a", "x"), upsert(2, "b", "x"), upsert(3, "a", "y"), upsert(4)}
	require.Equal(t, []value.Value{int64(2), int64(3), int64(4)}, remembered(plain(), scd.Type1, scd.Barriers{}, events...))
}

func TestAnUnchangedExtractIsRememberedOnce(t *testing.T) {
	t.Parallel()
	const versions = 5
	events := make([]scd.Event, 0, versions)
	var b scd.Barriers
	for v := range int64(versions) {
		e := upsert(v, "a", "x", "b", "x")
		e.Extract = true
		events = append(events, e)
		b.Extracts = append(b.Extracts, scd.Extract{Seq: v})
	}
	require.Equal(t, []value.Value{int64(4)}, remembered(plain(), scd.Type1, b, events...))
}

func TestAnEventThatChangesNothingRewritesNoRow(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		table := newTable(plain(), kind)
		table.apply(map[string][]scd.Event{theKey: {upsert(1, "a", "x", "b", "x")}}, scd.Barriers{})
		before := rowTexts(table.rows[theKey], true)
		table.apply(map[string][]scd.Event{theKey: {upsert(5, "a", "x", "b", "x")}}, scd.Barriers{})
		require.Equal(t, before, rowTexts(table.rows[theKey], true))
		require.Len(t, table.remembered[theKey], 1)
		table.apply(map[string][]scd.Event{theKey: {upsert(4, "a", "y", "b", "y")}}, scd.Barriers{})
		rows := table.rows[theKey]
		require.Equal(t, "x", rows[len(rows)-1].Values[0], "the later event still counts")
	}
}

func TestALogicalDeleteKeepsTheLastUpsert(t *testing.T) {
	t.Parallel()
	spec := plain()
	spec.Logical = true
	row, ok := spec.Fold(theKey, []scd.Event{upsert(1, "a", "x"), upsert(2, "a", "y"), del(2), del(3)}, scd.Barriers{}).Current()
	require.True(t, ok)
	require.True(t, row.Deleted)
	require.Equal(t, value.Row{"x", nil}, row.Values)
	require.Equal(t, int64(1), row.Seq)
	row, _ = spec.Fold(theKey, []scd.Event{upsert(1, "a", "x"), del(2), upsert(3, "b", "z")}, scd.Barriers{}).Current()
	require.False(t, row.Deleted)
	require.Equal(t, value.Row{nil, "z"}, row.Values)
}

func TestCountsTellWhatWasNotNew(t *testing.T) {
	t.Parallel()
	line := plain().Fold(theKey, []scd.Event{
		upsert(1, "a", "x"), upsert(1, "a", "x"), upsert(1, "a", "y"), upsert(2, "b", "x"), del(3), del(3),
	}, scd.Barriers{})
	require.Equal(t, 2, line.Duplicates())
	require.Equal(t, 1, line.Ties())
	require.Equal(t, 1, line.Absorbed())
	require.Zero(t, line.NotShown())
	require.Equal(t, 1, scd.Late([]scd.Event{upsert(2), del(4)}, []scd.Event{upsert(3), upsert(4), upsert(5)}))
	require.Zero(t, scd.Late(nil, []scd.Event{upsert(3)}))

	spec := plain()
	spec.By = true
	early, late := upsert(1, "a", "x"), upsert(2, "a", "y")
	early.By, late.By = int64(5), int64(3)
	line = spec.Fold(theKey, []scd.Event{early, late}, scd.Barriers{})
	require.Equal(t, 1, line.NotShown())
	require.Equal(t, int64(3), line.History()[0].Start)
}

func TestAuthorTellsAbsentFromNull(t *testing.T) {
	t.Parallel()
	spec := scd.Spec{Columns: []scd.Column{
		{Name: "a"}, {Name: "b"}, {Name: "i", IgnoreNull: true}, {Name: "c", Leaves: []string{"p", "q"}}, {Name: "d", Leaves: []string{"p"}},
	}}
	got := spec.Author(map[string]value.Value{
		"a": nil, "i": nil, "c": value.Struct{{Name: "q", Value: nil}, {Name: "unknown", Value: "x"}}, "d": nil, "unknown": "x",
	})
	require.Equal(t, map[scd.Path]value.Value{"a": nil, "c.": true, "c.q": nil, "d.": nil, "d.p": nil}, got)
}

func TestPartsOfAnExtractAreOne(t *testing.T) {
	t.Parallel()
	one := scd.Barriers{Extracts: []scd.Extract{{Seq: int64(1), By: int64(5), Silent: []string{"b"}}}, Truncates: []scd.Truncate{{Seq: int64(2), By: int64(4)}}}
	two := scd.Barriers{Extracts: []scd.Extract{{Seq: int64(1), By: int64(3), Silent: []string{"a", "b"}, NoBarriers: true}}, Truncates: []scd.Truncate{{Seq: int64(2), By: int64(6)}}}
	want := scd.Barriers{
		Extracts:  []scd.Extract{{Seq: int64(1), By: int64(3), Silent: []string{"a", "b"}, NoBarriers: true}},
		Truncates: []scd.Truncate{{Seq: int64(2), By: int64(4)}},
	}
	require.Equal(t, want, one.Union(two))
	require.Equal(t, want, two.Union(one))
}
