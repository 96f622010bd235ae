package stage_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"varve/internal/merge"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/source"
	"varve/internal/stage"
	"varve/schemas"
)

// one publishes a contract with one target for a dataset and plants a file of one day.
func one(t *testing.T, w world, dataset, day, line string) {
	t.Helper()
	text := strings.Replace(tracked, "dataset: thing", "dataset: "+dataset, 1)
	c, err := schemas.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stage.PublishContract(t.Context(), w.warehouse, c); err != nil {
		t.Fatal(err)
	}
	if err := w.Landing.Put(t.Context(), "thing/"+day+"/"+dataset+".json", []byte(line)); err != nil {
		t.Fatal(err)
	}
}

// TestTargetThatMovesToAnotherDatasetIsRefused has a dataset under a new name: its first batch is not the old one's first.
func TestTargetThatMovesToAnotherDatasetIsRefused(t *testing.T) {
	t.Parallel()
	w := on(t, memstore.New(), memstore.New())
	one(t, w, "thing", "2026-01-01", `{"id": 1, "seq": 1}`)
	w.run(t, "thing", "2026-01-01")
	one(t, w, "renamed", "2026-01-02", `{"id": 2, "seq": 1}`)
	_, err := w.Day(t.Context(), stage.DayRequest{Dataset: "renamed", Day: "2026-01-02", Run: uuid.NewString()})
	if drift, ok := errors.AsType[*merge.DriftError](err); !ok || !strings.Contains(drift.Error(), `kept by dataset "thing"`) {
		t.Fatalf("got %v, want a refusal that names the dataset", err)
	}
}

// TestBronzeThatIsOlderThanItsTargetsIsRefused puts bronze back to what it was before, or away: the numbers of its next
// batches are those of batches that the target has.
func TestBronzeThatIsOlderThanItsTargetsIsRefused(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]bool{"restored": true, "gone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := on(t, memstore.New(), memstore.New())
			one(t, w, "thing", "2026-01-01", `{"id": 1, "seq": 1}`)
			w.run(t, "thing", "2026-01-01")
			before := clone(t.Context(), t, w.warehouse)
			one(t, w, "thing", "2026-01-02", `{"id": 2, "seq": 1}`)
			w.run(t, "thing", "2026-01-02")
			replace(t, w.warehouse, before, "bronze/", keep)
			if err := w.Landing.Delete(t.Context(), "thing/2026-01-02/thing.json"); err != nil {
				t.Fatal(err)
			}
			one(t, w, "thing", "2026-01-03", `{"id": 3, "seq": 1}`)
			_, err := w.Day(t.Context(), stage.DayRequest{Dataset: "thing", Day: "2026-01-03", Run: uuid.NewString()})
			if lost, ok := errors.AsType[*source.LostError](err); !ok || lost.Batch != 2 || lost.Table != "silver.thing" {
				t.Fatalf("got %v, want that batch 2 is missed", err)
			}
		})
	}
}

// replace makes what a store has below a prefix what another has there, or nothing.
func replace(t *testing.T, store, with object.Store, prefix string, keep bool) {
	t.Helper()
	for info, err := range store.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		body, err := with.Read(t.Context(), info.Key, 0, -1)
		if keep && err == nil {
			err = store.Put(t.Context(), info.Key, body)
		} else {
			err = store.Delete(t.Context(), info.Key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
