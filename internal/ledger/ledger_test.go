package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"varve/internal/delta"
	"varve/internal/format"
	"varve/internal/ledger"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
)

// at is a moment, minutes after a fixed one.
func at(minutes int) time.Time {
	return time.Date(2026, 9, 15, 3, 30, 0, 0, time.UTC).Add(time.Duration(minutes) * time.Minute)
}

// run is a run that went well.
func run(id, day string, minutes int) ledger.Run {
	return ledger.Run{
		ID: id, Dataset: "customer", Day: day, Workflow: "Day", Status: "succeeded", Contract: 2, Batches: []int64{int64(minutes)},
		Started: at(minutes), Ended: at(minutes + 1),
		Counts:   map[string]int64{"events": 4, "inserted": 2, "quarantined": 1, "models": 3},
		Versions: map[string]int64{"silver.customer_current": int64(minutes)},
	}
}

// versions gives the table versions of the ledger.
func versions(ctx context.Context, t *testing.T, store object.Store) [2]int64 {
	t.Helper()
	var out [2]int64
	for i, root := range []string{ledger.RunsRoot, ledger.DaysRoot} {
		snap, err := delta.At(store, root).Latest(ctx)
		require.NoError(t, err)
		out[i] = snap.Version()
	}
	return out
}

func TestNothingRecordedIsNoRuns(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	runs, err := ledger.Runs(t.Context(), store, "")
	require.NoError(t, err)
	require.Empty(t, runs)
	days, err := ledger.Days(t.Context(), store, "customer")
	require.NoError(t, err)
	require.Empty(t, days)
}

func TestRecordedRunIsReadBackWhole(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	full, bare := run("one", "2026-09-14", 5), ledger.Run{ID: "two", Dataset: "order", Status: "failed", Reason: "no folder", Ended: at(9)}
	require.NoError(t, ledger.Record(t.Context(), store, full))
	require.NoError(t, ledger.Record(t.Context(), store, bare))
	runs, err := ledger.Runs(t.Context(), store, "customer")
	require.NoError(t, err)
	require.Equal(t, []ledger.Run{full}, runs)
	runs, err = ledger.Runs(t.Context(), store, "")
	require.NoError(t, err)
	bare.Counts, bare.Versions = map[string]int64{}, map[string]int64{}
	require.Equal(t, []ledger.Run{full, bare}, runs)
}

func TestDayIsTheSumOfItsRuns(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	failed := run("one", "2026-09-14", 5)
	failed.Status, failed.Reason = "failed", "disk full"
	require.NoError(t, ledger.Record(t.Context(), store, failed))
	require.NoError(t, ledger.Record(t.Context(), store, run("two", "2026-09-14", 50)))
	require.NoError(t, ledger.Record(t.Context(), store, run("three", "2026-09-15", 20)))
	days, err := ledger.Days(t.Context(), store, "customer")
	require.NoError(t, err)
	require.Len(t, days, 2)
	require.Equal(t, ledger.Day{
		Dataset: "customer", Day: "2026-09-14", Status: "succeeded", Contract: 2, Run: "two", Runs: 2, Batches: []int64{5, 50},
		Started: at(5), Ended: at(51), Duration: 2 * time.Minute,
		Counts:   map[string]int64{"events": 8, "inserted": 4, "quarantined": 2, "models": 6},
		Versions: map[string]int64{"silver.customer_current": 50},
	}, days[0])
	require.Equal(t, "2026-09-15", days[1].Day)
}

func TestRecordingARunAgainMakesNoVersion(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	r := run("one", "2026-09-14", 5)
	require.NoError(t, ledger.Record(t.Context(), store, r))
	before := versions(t.Context(), t, store)
	require.NoError(t, ledger.Record(t.Context(), store, r))
	r.Ended = r.Ended.Add(time.Hour) // a retry of the activity reads the clock again
	require.NoError(t, ledger.Record(t.Context(), store, r))
	require.Equal(t, before, versions(t.Context(), t, store))
}

func TestResumedRunReplacesItsRowAndALateReportDoesNot(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	failed, resumed := run("one", "2026-09-14", 5), run("one", "2026-09-14", 5)
	failed.Status = "failed"
	resumed.Ended = resumed.Ended.Add(time.Hour)
	for _, r := range []ledger.Run{failed, resumed, failed} {
		require.NoError(t, ledger.Record(t.Context(), store, r))
	}
	runs, err := ledger.Runs(t.Context(), store, "customer")
	require.NoError(t, err)
	require.Equal(t, []ledger.Run{resumed}, runs)
	days, err := ledger.Days(t.Context(), store, "customer")
	require.NoError(t, err)
	require.Equal(t, "succeeded", days[0].Status)
	require.Equal(t, int64(1), days[0].Runs)
}

// TestReplacedRowLeavesTheOthersOfItsFile replaces a row in a file that another writer compacted.
func TestReplacedRowLeavesTheOthersOfItsFile(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	prefix := strings.Repeat("a very long name of a run ", 3) // statistics keep 32 characters
	want := make([]ledger.Run, 5)
	for i := range want {
		want[i] = run(fmt.Sprint(prefix, i), "2026-09-14", i)
		require.NoError(t, ledger.Record(t.Context(), store, want[i]))
	}
	table := delta.At(store, ledger.RunsRoot)
	snap, err := table.Latest(t.Context())
	require.NoError(t, err)
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: snap.Schema()}, snap.Scan(t.Context(), nil))
	require.NoError(t, err)
	add.DataChange = false
	c := delta.Commit{ID: uuid.NewString(), Operation: "OPTIMIZE", Adds: []delta.Add{add}}
	for _, a := range snap.Files() {
		c.Removes = append(c.Removes, delta.RemoveOf(a, at(0), false))
	}
	_, err = table.Commit(t.Context(), snap.Version(), c)
	require.NoError(t, err)

	want[2].Status, want[2].Ended = "failed", at(100)
	require.NoError(t, ledger.Record(t.Context(), store, want[2]))
	require.NoError(t, ledger.Record(t.Context(), store, want[1]))
	runs, err := ledger.Runs(t.Context(), store, "customer")
	require.NoError(t, err)
	require.ElementsMatch(t, want, runs)
	days, err := ledger.Days(t.Context(), store, "customer")
	require.NoError(t, err)
	require.Equal(t, "failed", days[0].Status)
	require.Equal(t, int64(5), days[0].Runs)
}

func TestARunNeedsANameADatasetAStatusAndARealDay(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*ledger.Run){
		"no ID": func(r *ledger.Run) { r.ID = "" }, "no dataset": func(r *ledger.Run) { r.Dataset = "" },
		"no status": func(r *ledger.Run) { r.Status = "" }, "bad day": func(r *ledger.Run) { r.Day = "2026-02-30" },
	} {
		r := run("one", "2026-09-14", 0)
		spoil(&r)
		require.Error(t, ledger.Record(t.Context(), memstore.New(), r), name)
	}
}

func TestUnknownFormatIsRefusedByName(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	require.NoError(t, ledger.Record(t.Context(), store, run("one", "2026-09-14", 0)))
	table := delta.At(store, ledger.DaysRoot)
	snap, err := table.Latest(t.Context())
	require.NoError(t, err)
	m := snap.Metadata()
	m.Configuration = maps.Clone(m.Configuration)
	m.Configuration["varve.format"] = "99"
	_, err = table.Commit(t.Context(), snap.Version(), delta.Commit{ID: uuid.NewString(), Operation: "SET TBLPROPERTIES", Metadata: &m})
	require.NoError(t, err)
	var refused *format.Error
	_, err = ledger.Days(t.Context(), store, "")
	require.ErrorAs(t, err, &refused)
	require.ErrorAs(t, ledger.Record(t.Context(), store, run("two", "2026-09-14", 5)), &refused)
	require.Equal(t, format.Error{Key: ledger.DaysRoot, Format: 99, Known: 1}, *refused)
}

// TestRecordersAtOnceLoseNothing has many recorders, some of the same run.
func TestRecordersAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	const recorders = 8
	group, ctx := errgroup.WithContext(t.Context())
	for i := range recorders {
		group.Go(func() error {
			for j := range 3 {
				n := (i + j) % recorders
				if err := ledger.Record(ctx, store, run(fmt.Sprint("run ", n), fmt.Sprintf("2026-09-%02d", 10+n%3), n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	runs, err := ledger.Runs(t.Context(), store, "customer")
	require.NoError(t, err)
	require.Len(t, runs, recorders)
	days, err := ledger.Days(t.Context(), store, "customer")
	require.NoError(t, err)
	counted := make([]int64, 0, len(days))
	for _, d := range days {
		counted = append(counted, d.Runs)
	}
	require.Equal(t, []int64{3, 3, 2}, counted)
}

// TestADeathAtAnyOperationIsMadeUp lets the recorder die at each operation in turn. Another run's record makes up what it
// left out of the days; recorded again, the run itself is there once.
func TestADeathAtAnyOperationIsMadeUp(t *testing.T) {
	t.Parallel()
	first, second, third := run("one", "2026-09-14", 5), run("two", "2026-09-15", 10), run("three", "2026-09-16", 15)
	start := memstore.New()
	require.NoError(t, ledger.Record(t.Context(), start, first))
	prepared := func() *objecttest.Faults {
		store := memstore.New()
		for info, err := range start.List(t.Context(), "", "") {
			require.NoError(t, err)
			body, err := start.Read(t.Context(), info.Key, 0, -1)
			require.NoError(t, err)
			require.NoError(t, store.Put(t.Context(), info.Key, body))
		}
		return objecttest.NewFaults(store)
	}
	whole := prepared()
	require.NoError(t, ledger.Record(t.Context(), whole, second))
	for n := 1; n <= whole.Count(); n++ {
		for _, after := range []bool{false, true} {
			f := prepared()
			f.DieAt(n, after)
			err := ledger.Record(t.Context(), f, second) // nil where only a checksum of the log fell victim
			require.True(t, err == nil || errors.Is(err, objecttest.ErrDead), "operation %d, after %t: %v", n, after, err)
			f.Reset()
			runs, err := ledger.Runs(t.Context(), f, "")
			require.NoError(t, err)
			require.NoError(t, ledger.Record(t.Context(), f, third))
			days, err := ledger.Days(t.Context(), f, "")
			require.NoError(t, err)
			made := slices.ContainsFunc(days, func(d ledger.Day) bool { return d.Run == "two" })
			require.Equal(t, len(runs) == 2, made, "operation %d, after %t", n, after)
			require.NoError(t, ledger.Record(t.Context(), f, second))
			runs, err = ledger.Runs(t.Context(), f, "")
			require.NoError(t, err)
			require.Equal(t, []ledger.Run{first, second, third}, runs, "operation %d, after %t", n, after)
		}
	}
}

// TestDaysAreAFunctionOfRuns records random runs, some again and again: every day has the count of its runs and the
// status of the last one.
func TestDaysAreAFunctionOfRuns(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) ledger.Run {
		n := rapid.IntRange(0, 3).Draw(t, "run")
		r := run(fmt.Sprint("run ", n), []string{"2026-09-14", "2026-09-15", ""}[n%3], n)
		r.Dataset = []string{"customer", "order"}[n/2]
		r.Status = rapid.SampledFrom([]string{"succeeded", "failed"}).Draw(t, "status")
		r.Ended = r.Ended.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "later")) * time.Minute)
		return r
	})
	type figures struct {
		status string
		runs   int64
	}
	rapid.Check(t, func(rt *rapid.T) {
		store := memstore.New()
		for _, r := range rapid.SliceOfN(draw, 1, 4).Draw(rt, "runs") {
			require.NoError(rt, ledger.Record(t.Context(), store, r))
		}
		runs, err := ledger.Runs(t.Context(), store, "")
		require.NoError(rt, err)
		want, got := map[string]figures{}, map[string]figures{}
		for _, r := range runs {
			if name := r.Dataset + r.Day; r.Day != "" {
				want[name] = figures{r.Status, want[name].runs + 1}
			}
		}
		days, err := ledger.Days(t.Context(), store, "")
		require.NoError(rt, err)
		for _, d := range days {
			got[d.Dataset+d.Day] = figures{d.Status, d.Runs}
		}
		require.Equal(rt, want, got)
	})
}

// TestTotalsAreSumsOverTheTargets reads the columns that queries use; Runs gives the counts as they came.
func TestTotalsAreSumsOverTheTargets(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	r := run("one", "2026-09-14", 5)
	r.Counts = map[string]int64{"events": 4, "silver.current.inserted": 2, "silver.history.inserted": 3, "silver.history.events": 9}
	require.NoError(t, ledger.Record(t.Context(), store, r))
	for _, root := range []string{ledger.RunsRoot, ledger.DaysRoot} {
		snap, err := delta.At(store, root).Latest(t.Context())
		require.NoError(t, err)
		for row, err := range snap.Scan(t.Context(), nil) {
			require.NoError(t, err)
			require.Equal(t, int64(4), row[snap.Schema().Index("events")])
			require.Equal(t, int64(5), row[snap.Schema().Index("inserted")])
			require.Nil(t, row[snap.Schema().Index("deleted")])
		}
	}
	runs, err := ledger.Runs(t.Context(), store, "customer")
	require.NoError(t, err)
	require.Equal(t, r.Counts, runs[0].Counts)
}

func ExampleRecord() {
	store := memstore.New()
	err := ledger.Record(context.Background(), store, ledger.Run{
		ID: "day/customer/2026-09-14", Dataset: "customer", Day: "2026-09-14", Status: "succeeded", Ended: at(0),
		Counts: map[string]int64{"inserted": 2},
	})
	if err != nil {
		fmt.Println(err)
	}
	days, err := ledger.Days(context.Background(), store, "customer")
	for _, d := range days {
		fmt.Println(d.Dataset, d.Day, d.Status, d.Counts["inserted"], err)
	}
	// Output: customer 2026-09-14 succeeded 2 <nil>
}
