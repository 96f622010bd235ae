package stage_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/stage"
	"varve/internal/value"
	"varve/schemas"
	"varve/schemas/demo"
)

// clock stands still: nothing that a stage makes present may hang on it.
func clock() time.Time { return time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC) }

// world is a project in memory.
type world struct {
	*stage.Engine
	warehouse object.Store
}

// newWorld makes a world with the demo's landing files, contracts and models on the given warehouse.
func newWorld(t *testing.T, warehouse object.Store) world {
	t.Helper()
	landing := memstore.New()
	files := demo.Files()
	plant(t, landing, files)
	w := on(t, warehouse, landing)
	for _, name := range matches(t, files, "datasets/*.yaml") {
		c, err := schemas.Parse(read(t, files, name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := stage.PublishContract(t.Context(), warehouse, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range matches(t, files, "models/*.sql") {
		if _, err := w.PublishModel(t.Context(), strings.TrimSuffix(path.Base(name), ".sql"), string(read(t, files, name))); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// on gives an engine on two stores.
func on(t *testing.T, warehouse, landing object.Store) world {
	t.Helper()
	return world{
		Engine:    stage.New(stage.Options{Warehouse: warehouse, Landing: landing, Dir: t.TempDir(), MemoryMiB: 256, Now: clock}),
		warehouse: warehouse,
	}
}

// plant puts the files below landing/ into a store.
func plant(t *testing.T, store object.Store, files fs.FS) {
	t.Helper()
	err := fs.WalkDir(files, "landing", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return store.Put(t.Context(), strings.TrimPrefix(name, "landing/"), read(t, files, name))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, files fs.FS, name string) []byte {
	t.Helper()
	body, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func matches(t *testing.T, files fs.FS, pattern string) []string {
	t.Helper()
	names, err := fs.Glob(files, pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	return names
}

// run does a day and fails the test if that fails.
func (w world) run(t *testing.T, dataset, day string) stage.DayResult {
	t.Helper()
	r, err := w.Day(t.Context(), stage.DayRequest{Dataset: dataset, Day: day, Run: uuid.NewString()})
	if err != nil {
		t.Fatalf("%s %s: %v", dataset, day, err)
	}
	return r
}

// demoDays does every day of the demo, in order.
func (w world) demoDays(t *testing.T) {
	t.Helper()
	for _, d := range demo.Days() {
		for _, dataset := range d.Datasets {
			w.run(t, dataset, d.Day)
		}
	}
}

// content is every table's rows as sorted text, but for the ledger and the clock's columns.
func content(t *testing.T, store object.Store) map[string][]string {
	t.Helper()
	names, err := stage.Tables(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, name := range names {
		if strings.HasPrefix(name, "ops.") {
			continue
		}
		out[name] = rows(t, store, name)
	}
	return out
}

// rows is one table's rows as sorted text.
func rows(t *testing.T, store object.Store, table string) []string {
	t.Helper()
	snap, err := stage.New(stage.Options{Warehouse: store}).Snapshot(t.Context(), table, -1)
	if err != nil {
		t.Fatal(err)
	}
	shape := snap.Schema()
	at := shape.Index("_landed_at")
	out := []string{}
	for row, err := range snap.Scan(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if at >= 0 {
			row[at] = nil
		}
		cells := make([]string, len(shape))
		for i, f := range shape {
			cells[i] = f.Name + "=" + string(value.AppendJSON(nil, f.Type, row[i]))
		}
		out = append(out, strings.Join(cells, " "))
	}
	slices.Sort(out)
	return out
}

// differences says where two contents differ, or nothing.
func differences(got, want map[string][]string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !slices.Equal(got[name], want[name]) {
			fmt.Fprintf(&out, "%s:\n got  %s\n want %s\n", name, strings.Join(got[name], "\n      "), strings.Join(want[name], "\n      "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[name]; !known {
			fmt.Fprintf(&out, "%s: is not in the other\n", name)
		}
	}
	return out.String()
}

// clone copies a store.
func clone(ctx context.Context, t *testing.T, from object.Store) object.Store {
	t.Helper()
	to := memstore.New()
	for info, err := range from.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		body, err := from.Read(ctx, info.Key, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Put(ctx, info.Key, body); err != nil {
			t.Fatal(err)
		}
	}
	return to
}
