package stage_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"varve/internal/delta"
	"varve/internal/delta/deltatest"
	"varve/internal/object/memstore"
	"varve/internal/source"
	"varve/internal/stage"
	"varve/schemas"
)

func TestModelThatClosesACircleIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New())
	if _, err := w.PublishModel(t.Context(), "gold.hen", "SELECT customer_id FROM gold.egg"); err != nil {
		t.Fatal(err)
	}
	_, err := w.PublishModel(t.Context(), "gold.egg", "SELECT customer_id FROM gold.hen")
	if _, circle := errors.AsType[*stage.CycleError](err); !circle {
		t.Fatalf("got %v, want the circle", err)
	}
	w.run(t, "customer", "2026-01-05")
}

func TestModelIsNoTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New())
	_, err := w.PublishModel(t.Context(), "silver.customer_current", "SELECT 1 AS one")
	if err == nil || !strings.Contains(err.Error(), `dataset "customer" keeps a target of that name`) {
		t.Fatalf("got %v, want the dataset that keeps the table", err)
	}
}

func TestModelThatCannotBeMadeYetIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New())
	query := "SELECT customer_id FROM silver.customer_current JOIN silver.custmer USING (customer_id)"
	if _, err := w.PublishModel(t.Context(), "gold.joined", query); err != nil {
		t.Fatal(err)
	}
	r := w.run(t, "customer", "2026-01-05")
	published, err := w.Publish(t.Context(), stage.PublishRequest{Run: r.Run, Versions: r.Versions})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"gold.joined waits for silver.custmer"}; !slices.Equal(published.Waiting, want) {
		t.Fatalf("got %q, want %q", published.Waiting, want)
	}
}

// TestLatePublishLeavesTheNewerRows calls the stage again for a run that others have overtaken.
func TestLatePublishLeavesTheNewerRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New())
	w.run(t, "customers", "2026-01-05")
	overtaken := w.run(t, "sales", "2026-01-05")
	w.demoDays(t)
	before := versions(t, w)
	if _, ok := overtaken.Versions["gold.sales_by_city"]; !ok {
		t.Fatalf("the run made no model: %v", overtaken.Versions)
	}
	if _, err := w.Publish(t.Context(), stage.PublishRequest{Run: overtaken.Run, Versions: overtaken.Versions}); err != nil {
		t.Fatal(err)
	}
	if after := versions(t, w); !maps.Equal(after, before) {
		t.Fatalf("versions went from %v to %v", before, after)
	}
	checkDemo(t, w.warehouse)
}

// TestCountsAreOfTheRunsOwnDay has a day whose files another day's run brings into bronze.
func TestCountsAreOfTheRunsOwnDay(t *testing.T) {
	t.Parallel()
	alone := newWorld(t, memstore.New())
	want := map[string]map[string]int64{}
	days := []string{"2026-01-05", "2026-01-06"}
	for _, day := range days {
		want[day] = alone.run(t, "customer", day).Counts
	}
	w := newWorld(t, memstore.New())
	p, err := stage.LoadContract(t.Context(), w.warehouse, "customer", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range days { // as a run that died after its claim leaves it
		if _, err := source.Claim(t.Context(), w.warehouse, w.Landing, p.Contract, day, clock); err != nil {
			t.Fatal(err)
		}
	}
	for _, day := range days {
		got := w.run(t, "customer", day).Counts
		for _, name := range []string{"files", "records", "events", "quarantined"} {
			if got[name] != want[day][name] {
				t.Errorf("%s: %d %s, want %d", day, got[name], name, want[day][name])
			}
		}
	}
}

const tracked = `dataset: thing
source: {path: "thing/{day}/*.json", format: json}
columns: {id: {type: bigint}, name: {type: string}, city: {type: string}, seq: {type: bigint}}
keys: [id]
sequence_by: seq
targets:
  - {table: silver.thing}
`

// TestColumnThatNoTableHasMayBeTakenBack adds a column, and takes it back before and after a day with it.
func TestColumnThatNoTableHasMayBeTakenBack(t *testing.T) {
	t.Parallel()
	w := on(t, memstore.New(), memstore.New())
	publish := func(text string) error {
		c, err := schemas.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = stage.PublishContract(t.Context(), w.warehouse, c)
		return err
	}
	day := func(day string) {
		if err := w.Landing.Put(t.Context(), "thing/"+day+"/a.json", []byte(`{"id": 1, "seq": 1, "phone": "1"}`)); err != nil {
			t.Fatal(err)
		}
		w.run(t, "thing", day)
	}
	wider := strings.Replace(tracked, "city: {type: string}", "city: {type: string}, phone: {type: int}", 1)
	for _, text := range []string{tracked, wider, tracked, wider} {
		if err := publish(text); err != nil {
			t.Fatal(err)
		}
		if text == tracked {
			day("2026-01-01")
		}
	}
	day("2026-01-02")
	if err := publish(tracked); err == nil || !strings.Contains(err.Error(), `"phone" is gone`) {
		t.Fatalf("got %v, want that the table has the column", err)
	}
}

// TestTargetThatWasLeftOutGoesOnAsItWas leaves a target out of one contract and brings it back with another rule.
func TestTargetThatWasLeftOutGoesOnAsItWas(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	publish := func(targets string) error {
		c, err := schemas.Parse([]byte(tracked + targets))
		if err != nil {
			t.Fatal(err)
		}
		_, err = stage.PublishContract(t.Context(), store, c)
		return err
	}
	history := func(column string) string {
		return "  - {table: silver.history, stored_as_scd_type: 2, track_history_column_list: [" + column + "]}\n"
	}
	for _, targets := range []string{history("name"), history("city")} { // no table has it yet: anything goes
		if err := publish(targets); err != nil {
			t.Fatal(err)
		}
	}
	w := on(t, store, memstore.New())
	if err := w.Landing.Put(t.Context(), "thing/2026-01-01/a.json", []byte(`{"id": 1, "seq": 1}`)); err != nil {
		t.Fatal(err)
	}
	w.run(t, "thing", "2026-01-01")
	if err := publish(""); err != nil {
		t.Fatal(err)
	}
	if err := publish(history("name")); err == nil || !strings.Contains(err.Error(), "opens a version") {
		t.Fatalf("got %v, want that the tracked columns stay", err)
	}
	if err := publish(history("city")); err != nil {
		t.Fatal(err)
	}
}

// TestChangeFeedsOfADaysTablesTellWhatChanged turns the feed of every target's and model's table on after the first day.
func TestChangeFeedsOfADaysTablesTellWhatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New())
	for _, dataset := range []string{"customer", "customers", "sales"} {
		w.run(t, dataset, "2026-01-05")
	}
	names, err := stage.Maintainable(t.Context(), w.warehouse)
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]int64{}
	for _, name := range names {
		from[name] = deltatest.TurnOnFeed(t, delta.At(w.warehouse, stage.Root(name)))
	}
	w.demoDays(t)
	checkDemo(t, w.warehouse)
	types := map[delta.ChangeType]int{}
	for _, name := range names {
		for kind, n := range deltatest.RequireFeed(t, delta.At(w.warehouse, stage.Root(name)), from[name]) {
			types[kind] += n
		}
	}
	if len(types) != 4 {
		t.Fatalf("the days have no changes of some type: %v", types)
	}
}
