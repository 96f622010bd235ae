package stage_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"varve/internal/object"
	"varve/internal/object/filestore"
	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
	"varve/internal/object/s3store"
	"varve/internal/stage"
	"varve/schemas/demo"
)

// wanted is what the requirements say that the demo's tables show.
func wanted() map[string][]string {
	return map[string][]string{
		"gold.dim_customer": {
			`customer_id=501 customer_name="Rahul Mehta" city="Pune" phone="9876543210"`,
			`customer_id=502 customer_name="Anita Sharma" city="Pune" phone="9123456799"`,
			`customer_id=503 customer_name="Karan Verma" city="Hyderabad" phone="9988776655"`,
			`customer_id=504 customer_name="Priya Nair" city="Chennai" phone="9012345678"`,
		},
		"gold.dim_customer_scd2": {
			`customer_id=501 customer_name="Rahul Mehta" city="Bengaluru" phone="9876543210" effective_date="2024-01-01" end_date="2026-01-06" is_current=false`,
			`customer_id=501 customer_name="Rahul Mehta" city="Pune" phone="9876543210" effective_date="2026-01-06" end_date=null is_current=true`,
			`customer_id=502 customer_name="Anita Sharma" city="Pune" phone="9123456799" effective_date="2023-06-15" end_date=null is_current=true`,
			`customer_id=503 customer_name="Karan Verma" city="Hyderabad" phone="9988776655" effective_date="2026-01-05" end_date=null is_current=true`,
			`customer_id=504 customer_name="Priya Nair" city="Chennai" phone="9012345678" effective_date="2026-01-06" end_date=null is_current=true`,
		},
		"silver.customer_current": {
			`customer_id="C100" customer_name="Acme" city="Mumbai"`,
			`customer_id="C300" customer_name="Initech" city="Bengaluru"`,
		},
		"silver.customer_current_flagged": {
			`customer_id="C100" customer_name="Acme" city="Mumbai" is_deleted=false`,
			`customer_id="C200" customer_name="Globex" city="Nagpur" is_deleted=true`,
			`customer_id="C300" customer_name="Initech" city="Bengaluru" is_deleted=false`,
		},
		"silver.customer_history": {
			`customer_id="C100" customer_name="Acme" city="Chennai" __START_AT=15 __END_AT=20 is_current=false`,
			`customer_id="C100" customer_name="Acme" city="Delhi" __START_AT=10 __END_AT=15 is_current=false`,
			`customer_id="C100" customer_name="Acme" city="Mumbai" __START_AT=20 __END_AT=null is_current=true`,
			`customer_id="C200" customer_name="Globex" city="Nagpur" __START_AT=15 __END_AT=40 is_current=false`,
			`customer_id="C200" customer_name="Globex" city="Pune" __START_AT=10 __END_AT=15 is_current=false`,
			`customer_id="C300" customer_name="Initech" city="Bengaluru" __START_AT=30 __END_AT=null is_current=true`,
			`customer_id="C300" customer_name="Initech" city="Delhi" __START_AT=10 __END_AT=20 is_current=false`,
			`customer_id="C300" customer_name="Initech" city="Mumbai" __START_AT=20 __END_AT=30 is_current=false`,
		},
	}
}

func checkDemo(t *testing.T, warehouse object.Store) {
	t.Helper()
	got := content(t, warehouse)
	for table, want := range wanted() {
		if !slices.Equal(got[table], want) {
			t.Errorf("%s:\n got  %s\n want %s", table, strings.Join(got[table], "\n      "), strings.Join(want, "\n      "))
		}
	}
	sales := strings.Join(got["gold.sales_by_city"], "\n")
	for _, want := range []string{`sale_id=9001 sale_date="2024-`, `sale_id=9004 sale_date="2026-`} {
		if !strings.Contains(sales, want) {
			t.Errorf("gold.sales_by_city lacks %s:\n%s", want, sales)
		}
	}
	for line := range strings.SplitSeq(sales, "\n") {
		if strings.Contains(line, "sale_id=9001 ") && !strings.Contains(line, `city="Bengaluru"`) || strings.Contains(line, "sale_id=9004 ") && !strings.Contains(line, `city="Pune"`) {
			t.Errorf("a sale is not of the city of its day: %s", line)
		}
	}
	if n := len(got["quarantine.customers"]); n != 2 {
		t.Errorf("quarantine.customers has %d records, want 2", n)
	}
	if n := len(got["quarantine.customer"]); n != 1 {
		t.Errorf("quarantine.customer has %d records, want 1", n)
	}
}

func TestDemoDaysGiveTheRowsOfTheRequirements(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) object.Store{
		"memory": func(*testing.T) object.Store { return memstore.New() },
		"local disk": func(t *testing.T) object.Store {
			t.Helper()
			s, err := filestore.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		"S3": func(t *testing.T) object.Store {
			t.Helper()
			server := objecttest.StartS3(t)
			config := server.Config()
			config.Bucket = server.NewBucket(t)
			s, err := s3store.Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, open(t))
			w.demoDays(t)
			checkDemo(t, w.warehouse)
		})
	}
}

func TestDaysInAnyOrderGiveTheSameTargets(t *testing.T) {
	t.Parallel()
	want := newWorld(t, memstore.New())
	want.demoDays(t)
	got := newWorld(t, memstore.New())
	days := demo.Days()
	slices.Reverse(days)
	for _, d := range days {
		datasets := slices.Clone(d.Datasets)
		slices.Reverse(datasets)
		for _, dataset := range datasets {
			got.run(t, dataset, d.Day)
		}
	}
	// batches are numbered as they come, and events are quarantined in that order: compare what maintains dimensions
	a, b := content(t, got.warehouse), content(t, want.warehouse)
	for _, c := range []map[string][]string{a, b} {
		for name := range c {
			if strings.HasPrefix(name, "bronze.") || strings.HasPrefix(name, "quarantine.") {
				delete(c, name)
			}
		}
	}
	if diff := differences(a, b); diff != "" {
		t.Fatal(diff)
	}
}

func TestSecondRunOfADayMakesNoVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New())
	w.demoDays(t)
	before := versions(t, w)
	w.demoDays(t)
	for table, v := range versions(t, w) {
		if before[table] != v {
			t.Errorf("%s went from version %d to %d", table, before[table], v)
		}
	}
}

// versions are those of all tables but the ledger's.
func versions(t *testing.T, w world) map[string]int64 {
	t.Helper()
	names, err := stage.Tables(t.Context(), w.warehouse)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, name := range names {
		if strings.HasPrefix(name, "ops.") {
			continue
		}
		snap, err := w.Snapshot(t.Context(), name, -1)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = snap.Version()
	}
	return out
}

func TestMaintainChangesNoRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New())
	w.demoDays(t)
	before := content(t, w.warehouse)
	files := dataFiles(t, w)
	for _, dataset := range []string{"customers", "customer", "sales"} {
		if _, err := w.Maintain(t.Context(), stage.MaintainRequest{Dataset: dataset}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := differences(content(t, w.warehouse), before); diff != "" {
		t.Fatal(diff)
	}
	if now := dataFiles(t, w); now >= files {
		t.Fatalf("%d data files before, %d after", files, now)
	}
	w.demoDays(t) // compacted tables still take days
	if diff := differences(content(t, w.warehouse), before); diff != "" {
		t.Fatal(diff)
	}
}

// dataFiles counts the data files of all tables.
func dataFiles(t *testing.T, w world) int {
	t.Helper()
	n := 0
	for table := range versions(t, w) {
		snap, err := w.Snapshot(t.Context(), table, -1)
		if err != nil {
			t.Fatal(err)
		}
		n += len(snap.Files())
	}
	return n
}

// TestMaintainRemovesScratchThatNobodyUses looks at the scratch of a run that ended, of one that still works, and of one
// that was lost, an hour and then days later.
func TestMaintainRemovesScratchThatNobodyUses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New())
	ended := w.run(t, "customer", "2026-01-05").Run.ID
	if err := w.warehouse.Put(t.Context(), "_varve/work/lost/attempt/plan.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		later time.Duration
		want  []string
	}{
		{time.Minute, []string{"lost", ended}},
		{2 * time.Hour, []string{"lost"}},
		{80 * time.Hour, nil},
	} {
		w.Now = func() time.Time { return newest(t, w).Add(c.later) }
		if _, err := w.Maintain(t.Context(), stage.MaintainRequest{Dataset: "customer"}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(c.want)
		if got := scratch(t, w); !slices.Equal(got, c.want) {
			t.Fatalf("%s later there is scratch of %q, want %q", c.later, got, c.want)
		}
	}
}

// scratch names the runs that have scratch.
func scratch(t *testing.T, w world) []string {
	t.Helper()
	var out []string
	for info, err := range w.warehouse.List(t.Context(), "_varve/work/", "") {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Split(info.Key, "/")[2])
	}
	return slices.Compact(out)
}

// newest is when the last object was written, by the store's clock.
func newest(t *testing.T, w world) time.Time {
	t.Helper()
	var last time.Time
	for info, err := range w.warehouse.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if info.Modified.After(last) {
			last = info.Modified
		}
	}
	return last
}
