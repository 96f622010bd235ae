package layout_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"varve/internal/delta"
	"varve/internal/layout"
	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
	"varve/internal/value"
)

func TestSmallFilesBecomeOneAndStayIt(t *testing.T) {
	t.Parallel()
	table := newTable(t, memstore.New())
	for i := range int64(8) {
		put(t, table, person(i, "Ann", false))
	}
	r := optimize(t, table, options())
	require.Equal(t, int64(9), r.Version)
	require.Equal(t, 8, r.FilesRemoved)
	require.Equal(t, 1, r.FilesAdded)
	require.Equal(t, "8 files became 1", r.Reason)
	files := latest(t, table).Files()
	require.Len(t, files, 1)
	require.Equal(t, [2]int64{0, 7}, rangeOf(t, files[0]))
	require.Equal(t, r.BytesAdded, files[0].Size)

	again := optimize(t, table, options())
	require.Equal(t, layout.Result{Version: 9, Reason: "nothing to do"}, again)
}

func TestCommitSaysThatNoRowChanged(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	table := newTable(t, store)
	put(t, table, person(1, "Ann", false))
	put(t, table, person(2, "Bob", false))
	o := options()
	o.ZOrder = "id"
	r := optimize(t, table, o)
	body, err := store.Read(t.Context(), fmt.Sprintf("silver/people/_delta_log/%020d.json", r.Version), 0, -1)
	require.NoError(t, err)
	for line := range strings.Lines(string(body)) {
		var action struct {
			CommitInfo *struct {
				Operation  string            `json:"operation"`
				Parameters map[string]any    `json:"operationParameters"`
				Metrics    map[string]string `json:"operationMetrics"`
			} `json:"commitInfo"`
			Add    *delta.Add    `json:"add"`
			Remove *delta.Remove `json:"remove"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &action))
		switch {
		case action.CommitInfo != nil:
			require.Equal(t, "OPTIMIZE", action.CommitInfo.Operation)
			require.Equal(t, map[string]any{"predicate": "[]", "zOrderBy": `["id"]`, "auto": false}, action.CommitInfo.Parameters)
			require.Equal(t, "2", action.CommitInfo.Metrics["numRemovedFiles"])
		case action.Add != nil:
			require.False(t, action.Add.DataChange)
		default:
			require.False(t, action.Remove.DataChange)
			require.Equal(t, clock().UnixMilli(), action.Remove.DeletionTimestamp)
		}
	}
}

func TestBigFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	table := newTable(t, memstore.New())
	put(t, table, person(1, "Ann", false))
	put(t, table, person(2, "Bob", false))
	o := options()
	o.TargetFileSize = latest(t, table).Files()[0].Size
	require.Equal(t, "nothing to do", optimize(t, table, o).Reason)
}

func TestPartitionsNeverShareAFile(t *testing.T) {
	t.Parallel()
	table := newTable(t, memstore.New(), "name")
	for i := range int64(6) {
		name := []string{"Ann", "Bob", "Cy"}[i%3]
		require.NoError(t, tryPut(t, table, map[string]value.Value{"name": name}, person(i, name, false)))
	}
	require.Equal(t, "6 files became 3", optimize(t, table, options()).Reason)
	for _, a := range latest(t, table).Files() {
		require.Contains(t, []string{"Ann", "Bob", "Cy"}, *a.PartitionValues["name"])
	}
}

// ordered fills a table with files that all span the whole range, and orders it into files of about that many rows.
func ordered(t *testing.T) (delta.Table, layout.Options) {
	t.Helper()
	table := newTable(t, memstore.New())
	const rows = 4000
	for part := range int64(4) {
		var some []value.Row
		for i := part; i < rows; i += 4 {
			some = append(some, person(i, fmt.Sprintf("%x", i*i*7919), false))
		}
		put(t, table, some...)
	}
	o := options()
	o.ZOrder = "id"
	o.TargetFileSize = latest(t, table).Files()[0].Size
	r := optimize(t, table, o)
	require.Equal(t, 4, r.FilesRemoved)
	require.Greater(t, r.FilesAdded, 2)
	return table, o
}

// ranges gives the ranges of a table's files in order.
func ranges(t *testing.T, table delta.Table) [][2]int64 {
	t.Helper()
	files := latest(t, table).Files()
	out := make([][2]int64, 0, len(files))
	for _, a := range files {
		out = append(out, rangeOf(t, a))
	}
	slices.SortFunc(out, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	return out
}

func TestZOrderGivesEachFileItsRange(t *testing.T) {
	t.Parallel()
	table, o := ordered(t)
	all := ranges(t, table)
	for i := 1; i < len(all); i++ {
		require.Less(t, all[i-1][1], all[i][0])
	}
	require.Equal(t, "nothing to do", optimize(t, table, o).Reason)
}

func TestZOrderRewritesOnlyWhatOverlaps(t *testing.T) {
	t.Parallel()
	table, o := ordered(t)
	before := latest(t, table).Files()
	first := ranges(t, table)[0]
	put(t, table, person(first[0]+1, "late", false), person(first[1], "late", false))
	r := optimize(t, table, o)
	require.Equal(t, 2, r.FilesRemoved)
	kept := 0
	for _, a := range latest(t, table).Files() {
		if slices.ContainsFunc(before, func(b delta.Add) bool { return a.Path == b.Path }) {
			kept++
		}
	}
	require.Equal(t, len(before)-1, kept)
	require.Equal(t, "nothing to do", optimize(t, table, o).Reason)
}

func TestZOrderCutsAFileThatWasNeverOrdered(t *testing.T) {
	t.Parallel()
	table := newTable(t, memstore.New())
	rows := make([]value.Row, 3000)
	for i := range int64(3000) {
		rows[i] = person(i*7919%3000, fmt.Sprintf("%x", i*i*7919), false)
	}
	put(t, table, rows...)
	o := options()
	o.ZOrder, o.TargetFileSize = "id", latest(t, table).Files()[0].Size/3
	require.Greater(t, optimize(t, table, o).FilesAdded, 2)
}

// TestZOrderEndsOnTextsThatStatisticsCutShort has texts that are equal as far as statistics go.
func TestZOrderEndsOnTextsThatStatisticsCutShort(t *testing.T) {
	t.Parallel()
	table := newTable(t, memstore.New())
	for part := range int64(3) {
		var rows []value.Row
		for i := part; i < 900; i += 3 {
			rows = append(rows, person(i, fmt.Sprintf("%s%06d%x", strings.Repeat("the same beginning ", 3), i, i*i*7919), false))
		}
		put(t, table, rows...)
	}
	o := options()
	o.ZOrder, o.TargetFileSize = "name", latest(t, table).Files()[0].Size
	require.Greater(t, optimize(t, table, o).FilesAdded, 1)
	require.Equal(t, "nothing to do", optimize(t, table, o).Reason)
}

func TestGroupsNeverShareAFile(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"", "id"} {
		table := newTable(t, memstore.New())
		put(t, table, person(1, "Ann", true), person(2, "Bob", false)) // another engine mixed them
		put(t, table, person(3, "Cy", true))
		put(t, table, person(4, "Dee", false))
		o := options()
		o.ZOrder, o.Split = column, closed
		require.Equal(t, "3 files became 2", optimize(t, table, o).Reason)
		snap := latest(t, table)
		for _, a := range snap.Files() {
			groups := map[int]bool{}
			for row, err := range snap.ReadFile(t.Context(), a, hidden()) {
				require.NoError(t, err)
				groups[closed(row)] = true
			}
			require.Len(t, groups, 1)
		}
		require.Equal(t, "nothing to do", optimize(t, table, o).Reason)
	}
}

// TestAChangedSplitLosesNoRow optimizes by other groups than the tags of the files speak of.
func TestAChangedSplitLosesNoRow(t *testing.T) {
	t.Parallel()
	table := newTable(t, memstore.New())
	for i := range int64(4) {
		put(t, table, person(i, "Ann", i%2 == 0))
	}
	o := options()
	o.Split = closed
	optimize(t, table, o)
	o.Split = func(row value.Row) int { return int(row[atID].(int64) / 2) } //nolint:forcetypeassert // ids are numbers
	for range 3 {
		optimize(t, table, o)
		put(t, table, person(1, "Bob", false))
	}
	optimize(t, table, o)
}

func TestFileWithoutAHiddenColumnIsLeftAlone(t *testing.T) {
	t.Parallel()
	table := newTable(t, memstore.New())
	put(t, table, person(1, "Ann", false))
	put(t, table, person(2, "Bob", false))
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: columns()}, each([]value.Row{person(3, "Cy", false)[:atSeq]}))
	require.NoError(t, err)
	_, err = table.Commit(t.Context(), 2, delta.Commit{ID: uuid.NewString(), Operation: "WRITE", Adds: []delta.Add{add}})
	require.NoError(t, err)
	require.Equal(t, "2 files became 1", optimize(t, table, options()).Reason)
	require.True(t, slices.ContainsFunc(latest(t, table).Files(), func(a delta.Add) bool { return a.Path == add.Path }))
}

func TestColumnThatNoFileIsFoundByIsRefused(t *testing.T) {
	t.Parallel()
	table := newTable(t, memstore.New(), "name")
	for column, reason := range map[string]string{"nobody": "no column", "closed": "boolean", "name": "partition column"} {
		_, err := layout.Optimize(t.Context(), table, layout.Options{ZOrder: column})
		require.ErrorContains(t, err, reason)
	}
}

func TestNoTableIsTold(t *testing.T) {
	t.Parallel()
	_, err := layout.Optimize(t.Context(), delta.At(memstore.New(), "silver/people"), options())
	require.ErrorIs(t, err, delta.ErrNoTable)
}

// TestOptimizeGivesWayToAMerge lets somebody replace a file while it is being rewritten.
func TestOptimizeGivesWayToAMerge(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	table := newTable(t, store)
	put(t, table, person(1, "Ann", false))
	put(t, table, person(2, "Bob", false))
	merged := false
	o := options()
	o.Split = func(value.Row) int {
		if !merged {
			merged = true
			replaceOne(t, table)
		}
		return 0
	}
	r, err := layout.Optimize(t.Context(), table, o)
	require.NoError(t, err)
	require.Equal(t, "gave way to version 3 (MERGE)", r.Reason)
	require.Equal(t, int64(2), r.Version)
	require.Equal(t, int64(3), latest(t, table).Version())
	left := 0
	for info, err := range store.List(t.Context(), "silver/people/part", "") {
		require.NoError(t, err)
		require.NotEmpty(t, info.Key)
		left++
	}
	require.Equal(t, 3, left, "the files that gave way are deleted")
}

// replaceOne changes a row of the first file, as a merge does.
func replaceOne(t *testing.T, table delta.Table) {
	t.Helper()
	snap := latest(t, table)
	old := snap.Files()[0]
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: columns(), Hidden: hidden()}, each([]value.Row{person(9, "merged", false)}))
	require.NoError(t, err)
	_, err = table.Commit(t.Context(), snap.Version(), delta.Commit{
		ID: uuid.NewString(), Operation: "MERGE", Adds: []delta.Add{add}, Removes: []delta.Remove{delta.RemoveOf(old, clock(), true)},
	})
	require.NoError(t, err)
}

// TestAppendersAndOptimizersLoseNothing races appends against two optimizers.
func TestAppendersAndOptimizersLoseNothing(t *testing.T) {
	t.Parallel()
	table := newTable(t, memstore.New())
	group, ctx := errgroup.WithContext(t.Context())
	for writer := range int64(2) {
		group.Go(func() error {
			for i := range int64(10) {
				if err := tryPut(t, table, nil, person(writer*100+i, "Ann", i%2 == 0)); err != nil {
					return err
				}
			}
			return nil
		})
		group.Go(func() error {
			o := options()
			o.ZOrder, o.Split = "id", closed
			for range 8 {
				if _, err := layout.Optimize(ctx, table, o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	want := make([]string, 0, 20)
	for writer := range int64(2) {
		for i := range int64(10) {
			want = append(want, value.KeyText(person(writer*100+i, "Ann", i%2 == 0)))
		}
	}
	slices.Sort(want)
	require.Equal(t, want, contents(t, table))
}

// TestADeathAtAnyOperationChangesNoRow lets the optimizer die at each operation in turn, and runs it again.
func TestADeathAtAnyOperationChangesNoRow(t *testing.T) {
	t.Parallel()
	start := memstore.New()
	table := newTable(t, start)
	for i := range int64(3) {
		put(t, table, person(i, "Ann", i%2 == 0), person(i+10, "Bob", i%2 == 0))
	}
	want := contents(t, table)
	prepared := func() (*objecttest.Faults, delta.Table) {
		store := memstore.New()
		for info, err := range start.List(t.Context(), "", "") {
			require.NoError(t, err)
			body, err := start.Read(t.Context(), info.Key, 0, -1)
			require.NoError(t, err)
			require.NoError(t, store.Put(t.Context(), info.Key, body))
		}
		f := objecttest.NewFaults(store)
		return f, delta.At(f, "silver/people")
	}
	o := options()
	o.ZOrder, o.Split = "id", closed
	whole, table := prepared()
	optimize(t, table, o)
	for n := 1; n <= whole.Count(); n++ {
		for _, after := range []bool{false, true} {
			f, table := prepared()
			f.DieAt(n, after)
			_, err := layout.Optimize(t.Context(), table, o)
			require.True(t, err == nil || errors.Is(err, objecttest.ErrDead), "operation %d, after %t: %v", n, after, err)
			f.Reset()
			require.Equal(t, want, contents(t, table), "operation %d, after %t", n, after)
			optimize(t, table, o)
			require.Len(t, latest(t, table).Files(), 2, "operation %d, after %t", n, after)
		}
	}
}

// TestOptimizeEndsAndKeepsEveryRow lays out random tables again and again, until nothing is left to do.
func TestOptimizeEndsAndKeepsEveryRow(t *testing.T) {
	t.Parallel()
	row := rapid.Custom(func(t *rapid.T) value.Row {
		var id value.Value
		if rapid.IntRange(0, 9).Draw(t, "null") > 0 {
			id = rapid.Int64Range(0, 30).Draw(t, "id")
		}
		return value.Row{id, rapid.StringN(0, 40, 50).Draw(t, "name"), rapid.Bool().Draw(t, "closed"), rapid.Int64().Draw(t, "seq")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		table := newTable(t, memstore.New())
		o := options()
		o.ZOrder = rapid.SampledFrom([]string{"", "id", "name"}).Draw(rt, "zorder")
		o.TargetFileSize = rapid.Int64Range(500, 20000).Draw(rt, "target")
		if rapid.Bool().Draw(rt, "split") {
			o.Split = closed
		}
		for _, rows := range rapid.SliceOfN(rapid.SliceOfN(row, 1, 20), 1, 6).Draw(rt, "files") {
			put(t, table, rows...)
		}
		for range 6 {
			if optimize(t, table, o).Reason == "nothing to do" {
				return
			}
		}
		rt.Fatal("still not done")
	})
}
