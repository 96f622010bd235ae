package merge_test

import (
	"testing"

	"pgregory.net/rapid"

	"varve/internal/delta"
	"varve/internal/delta/deltatest"
	"varve/internal/object/memstore"
	"varve/internal/value"
)

// TestChangeFeedLeadsFromVersionToVersion merges random histories into tables whose feed is on.
func TestChangeFeedLeadsFromVersionToVersion(t *testing.T) {
	t.Parallel()
	updates := 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		target := target(s)
		store := memstore.New()
		apply(t, store, target, 1, drawEvents(t, s, target))
		table := delta.At(store, target.Root)
		from := deltatest.TurnOnFeed(t, table)
		for batch := int64(2); batch < 5; batch++ {
			apply(t, store, target, batch, drawEvents(t, s, target))
		}
		updates += deltatest.RequireFeed(t, table, from)[delta.RowAfter]
	})
	if updates == 0 {
		t.Fatal("no history had an update")
	}
}

// TestFilesWrittenAnewForAWiderColumnAreNoChanges has a widening change no row, and one row change beside it.
func TestFilesWrittenAnewForAWiderColumnAreNoChanges(t *testing.T) {
	t.Parallel()
	store, base := memstore.New(), target(shape{})
	base.Schema[1].Type, base.State.Columns[0].Type = value.Type{Kind: value.Integer}, value.Type{Kind: value.Integer}
	for id := range int64(3) {
		mustApply(t, store, base, id+1, number(base, id, 1, id))
	}
	table := delta.At(store, base.Root)
	from := deltatest.TurnOnFeed(t, table)
	wider := target(shape{})
	wider.Schema[1].Type, wider.State.Columns[0].Type = value.Type{Kind: value.Long}, value.Type{Kind: value.Long}
	mustApply(t, store, wider, 4, number(wider, 1, 1, 1)) // a duplicate
	if types := deltatest.RequireFeed(t, table, from); len(types) != 0 {
		t.Fatalf("%v", types)
	}
	mustApply(t, store, wider, 5, number(wider, 1, 2, 1<<40))
	if n := deltatest.RequireFeed(t, table, from)[delta.RowAfter]; n != 1 {
		t.Fatalf("%d updates", n)
	}
}
