package stage_test

import (
	"encoding/json"
	"path"
	"slices"
	"testing"
	"time"

	"varve/internal/delta"
	"varve/internal/merge"
	"varve/internal/object/memstore"
	"varve/internal/stage"
	"varve/internal/state"
)

// TestVacuumTakesWhatRunsLeftAndNothingThatTheyNeed vacuums every table of the demo long after its days: rows stay as they
// are, the days can be run again, and what a waiting run has prepared is there.
func TestVacuumTakesWhatRunsLeftAndNothingThatTheyNeed(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	store.Now = clock
	w := newWorld(t, store)
	w.demoDays(t)
	const table = "silver.customer_history"
	root := stage.Root(table)
	put := func(key string, body []byte) {
		if err := store.Put(t.Context(), key, body); err != nil {
			t.Fatal(err)
		}
	}
	plan := merge.Plan{Format: merge.Format, Root: root, State: state.Manifest{Files: []state.File{{Path: "_varve/state/prepared.parquet"}}}}
	plan.Commit.Adds = []delta.Add{{Path: "prepared%20file.parquet"}}
	body, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	put("_varve/work/waiting/1/plan.json", body)
	for _, name := range []string{"prepared file.parquet", "stray.parquet", "_varve/state/prepared.parquet", "_varve/state/stray.parquet"} {
		put(path.Join(root, name), []byte("x"))
	}
	before := content(t, store)
	later := stage.New(stage.Options{
		Warehouse: store, Landing: w.Landing, Dir: t.TempDir(), MemoryMiB: 256,
		Now: func() time.Time { return clock().Add(8 * 24 * time.Hour) },
	})
	tables, err := stage.Tables(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	gone := map[string][]string{}
	for _, name := range tables {
		if r, err := w.Vacuum(t.Context(), name, delta.VacuumOptions{}); err != nil || len(r.Files) > 0 {
			t.Fatalf("%s: a vacuum at once takes %v: %v", name, r.Files, err)
		}
		r, err := later.Vacuum(t.Context(), name, delta.VacuumOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Files {
			gone[name] = append(gone[name], f.Path)
		}
	}
	if !slices.Contains(gone[table], "stray.parquet") || !slices.Contains(gone[table], "_varve/state/stray.parquet") || len(gone[table]) < 5 {
		t.Errorf("vacuum took only %v", gone[table])
	}
	for _, name := range []string{"prepared file.parquet", "_varve/state/prepared.parquet"} {
		if slices.Contains(gone[table], name) {
			t.Errorf("vacuum took %s", name)
		}
	}
	if diff := differences(content(t, store), before); diff != "" {
		t.Errorf("vacuum changed rows:\n%s", diff)
	}
	w.demoDays(t)
	if diff := differences(content(t, store), before); diff != "" {
		t.Errorf("the days run again changed rows:\n%s", diff)
	}
	ours, err := stage.HasState(t.Context(), delta.At(store, root))
	if err != nil || !ours {
		t.Errorf("HasState of %s is %t, %v", table, ours, err)
	}
	if _, err := w.Vacuum(t.Context(), "silver.nothing", delta.VacuumOptions{}); err == nil {
		t.Error("a table that is not there was vacuumed")
	}
}
