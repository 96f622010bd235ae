package source_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/object/filestore"
	"varve/internal/object/objecttest"
	"varve/internal/source"
	"varve/internal/value"
)

func TestLandKeepsEveryRecordGoodOrBadWithItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/part-1.json", "\xEF\xBB\xBF{\"a\": 1}\r\n\n{bad\n\xff\xfe\n{\"a\": 2}")
	w.put(t, "customer/2026-09-14/part-2.json", ` [ {"a": "]},["}, 7 ,[1,{}]] `)
	w.put(t, "customer/2026-09-14/empty.json", "")
	w.put(t, "customer/2026-09-14/notes.txt", "not this one")
	w.put(t, "customer/2026-09-14/.part-3.json", "not yet")
	w.put(t, "customer/2026-09-14/_marks.json", "not at all")
	w.put(t, "customer/2026-09-15/part-9.json", "nor this one")
	require.Equal(t, []int64{1}, numbers(w.claim(t, contract())))
	landed := w.land(t, contract())
	require.Equal(t, source.Landed{Batches: []int64{1}, Files: 3, Records: 7}, landed)
	one, two := "customer/2026-09-14/part-1.json", "customer/2026-09-14/part-2.json"
	require.Equal(t, [][4]any{
		{int64(1), one, int64(1), `{"a": 1}`},
		{int64(1), one, int64(3), `{bad`},
		{int64(1), one, int64(4), value.Binary("\xff\xfe")},
		{int64(1), one, int64(5), `{"a": 2}`},
		{int64(1), two, int64(1), `{"a": "]},["}`},
		{int64(1), two, int64(2), `7`},
		{int64(1), two, int64(3), `[1,{}]`},
	}, w.bronze(t.Context(), t))
}

func TestCSVRecordsEndAtLineEndsOutsideOfQuotes(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/a.csv", "\xEF\xBB\xBF\r\nid,name\r\n1,\"two\nlines, \"\"quoted\"\"\"\r\n\r\n2,5\" pipe\r\n3,\"open\n4,never\n")
	w.claim(t, csvContract())
	require.Equal(t, int64(3), w.land(t, csvContract()).Records)
	file := "customer/2026-09-14/a.csv"
	require.Equal(t, [][4]any{
		{int64(1), file, int64(0), "id,name"},
		{int64(1), file, int64(1), "1,\"two\nlines, \"\"quoted\"\"\""},
		{int64(1), file, int64(3), "2,5\" pipe"},
		{int64(1), file, int64(4), "3,\"open\n4,never\n"},
	}, w.bronze(t.Context(), t))
}

func TestLandingTwiceIsLandingOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/1.json", "{}")
	w.claim(t, contract())
	require.Empty(t, w.claim(t, contract()))
	w.land(t, contract())
	before := w.bronze(t.Context(), t)
	require.Empty(t, w.claim(t, contract()))
	require.Equal(t, source.Landed{}, w.land(t, contract()))
	require.Equal(t, before, w.bronze(t.Context(), t))
	w.put(t, "customer/2026-09-14/2.json", "{}")
	require.Equal(t, []int64{2}, numbers(w.claim(t, contract())))
	require.Equal(t, []int64{2}, w.land(t, contract()).Batches)
	require.Len(t, w.bronze(t.Context(), t), 2)
}

func TestRacingClaimersNeverClaimOneFileTwice(t *testing.T) {
	t.Parallel()
	w := newWorld()
	var files sync.WaitGroup
	for i := range 20 {
		w.put(t, fmt.Sprintf("customer/2026-09-14/%02d.json", i), "{}\n{}")
		for range 2 {
			files.Go(func() {
				if _, err := source.Claim(t.Context(), w.warehouse, w.landing, contract(), day, clock); err != nil {
					t.Error(err)
				}
				if _, err := source.Land(t.Context(), w.warehouse, w.landing, contract(), clock); err != nil {
					t.Error(err)
				}
			})
		}
	}
	files.Wait()
	w.claim(t, contract())
	w.land(t, contract())
	all, err := source.Batches(t.Context(), w.warehouse, "customer")
	require.NoError(t, err)
	owner := map[string]int64{}
	for i, s := range all {
		require.Equal(t, int64(i+1), s.Batch.Number)
		for _, f := range s.Batch.Files {
			require.NotContains(t, owner, f.Path)
			owner[f.Path] = s.Batch.Number
		}
	}
	require.Len(t, owner, 20)
	require.Len(t, w.bronze(t.Context(), t), 40)
}

func TestAMissingFolderIsNamedWithTheNewestDayThere(t *testing.T) {
	t.Parallel()
	w := newWorld()
	_, err := source.Claim(t.Context(), w.warehouse, w.landing, contract(), day, clock)
	missing, ok := errors.AsType[*source.MissingError](err)
	require.True(t, ok, err)
	require.Equal(t, "customer/2026-09-14", missing.Path)
	w.put(t, "customer/2026-09-12/1.json", "{}")
	w.put(t, "customer/2026-09-13/1.json", "{}")
	_, err = source.Claim(t.Context(), w.warehouse, w.landing, contract(), day, clock)
	require.ErrorContains(t, err, "the newest day there is 2026-09-13")
	_, err = source.Claim(t.Context(), w.warehouse, w.landing, contract(), "14.9.2026", clock)
	require.ErrorContains(t, err, "is not a date")
}

func TestAnEmptyFolderIsNoBatch(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	landing, err := filestore.Open(root)
	require.NoError(t, err)
	w := newWorld()
	w.landing = landing
	_, err = source.Claim(t.Context(), w.warehouse, w.landing, contract(), day, clock)
	_, ok := errors.AsType[*source.MissingError](err)
	require.True(t, ok, err)
	folder := filepath.Join(root, "customer", day)
	require.NoError(t, os.MkdirAll(folder, 0o750))
	require.Empty(t, w.claim(t, contract()))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "readme.txt"), []byte("no record"), 0o600))
	require.Empty(t, w.claim(t, contract()))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "1.json"), []byte("{}"), 0o600))
	require.Equal(t, []int64{1}, numbers(w.claim(t, contract())))
	require.Equal(t, int64(1), w.land(t, contract()).Records)
}

func TestFilesThatASourceTakesAwayAfterLandingAreNoFault(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/1.json", "{}")
	w.claim(t, contract())
	w.land(t, contract())
	require.NoError(t, w.landing.Delete(t.Context(), "customer/2026-09-14/1.json"))
	require.Empty(t, w.claim(t, contract()))
}

func TestAReplacedFileIsRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/1.json", `{"a": 1}`)
	w.claim(t, contract())
	w.land(t, contract())
	w.put(t, "customer/2026-09-14/1.json", `{"a": 1}`)
	require.Empty(t, w.claim(t, contract()), "the same content is the same file")
	w.put(t, "customer/2026-09-14/1.json", `{"a": 2}`)
	w.put(t, "customer/2026-09-14/2.json", `{"a": 2}`)
	_, err := source.Claim(t.Context(), w.warehouse, w.landing, contract(), day, clock)
	replaced, ok := errors.AsType[*source.ReplacedError](err)
	require.True(t, ok, err)
	require.Equal(t, source.ReplacedError{File: "customer/2026-09-14/1.json", Batch: 1}, *replaced)
	require.Len(t, states(t, w), 1, "nothing is claimed beside it")
}

func TestABatchWhoseFilesChangedIsRejectedAndClaimedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/1.json", "{}")
	w.put(t, "customer/2026-09-14/2.json", "{}")
	w.claim(t, contract())
	w.put(t, "customer/2026-09-14/1.json", "{\"a\": 1}\n{}")
	require.Equal(t, source.Landed{Batches: []int64{2}, Files: 2, Records: 3, Rejected: []int64{1}}, w.land(t, contract()))
	require.Equal(t, map[int64]source.State{1: source.Rejected, 2: source.Open}, states(t, w))
	require.Len(t, w.bronze(t.Context(), t), 3)
}

// TestAFileThatChangesBetweenClaimAndLandingIsClaimedAnew has a run that died after its claim, and a source that went on
// writing: nothing of the old content was kept.
func TestAFileThatChangesBetweenClaimAndLandingIsClaimedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/1.json", "{}")
	w.claim(t, contract())
	w.put(t, "customer/2026-09-14/1.json", "{}\n{}")
	require.Empty(t, w.claim(t, contract()), "the old claim is not decided yet")
	require.Equal(t, source.Landed{Batches: []int64{2}, Files: 1, Records: 2, Rejected: []int64{1}}, w.land(t, contract()))
}

// TestBatchesThatAreGoneAreMissed takes the claims away that bronze was landed from: their numbers mean those files.
func TestBatchesThatAreGoneAreMissed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/1.json", "{}")
	w.claim(t, contract())
	w.land(t, contract())
	require.NoError(t, w.warehouse.Delete(t.Context(), "bronze/customer/_batches/1.json"))
	_, err := source.Claim(t.Context(), w.warehouse, w.landing, contract(), day, clock)
	var lost *source.LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, source.LostError{Dataset: "customer", Batch: 1, Table: "bronze.customer"}, *lost)
}

func TestABatchWhoseFilesVanishedIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/1.json", "{}")
	w.claim(t, contract())
	require.NoError(t, w.landing.Delete(t.Context(), "customer/2026-09-14/1.json"))
	require.Equal(t, source.Landed{Rejected: []int64{1}}, w.land(t, contract()))
	_, err := delta.At(w.warehouse, "bronze/customer").Latest(t.Context())
	require.ErrorIs(t, err, delta.ErrNoTable)
}

// deny refuses to read one key.
type deny struct {
	object.Store
	key string
}

func (d deny) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if key == d.key {
		return nil, fmt.Errorf("open %q: %w", key, object.ErrDenied)
	}
	return d.Store.Read(ctx, key, offset, length)
}

func TestAnUnreadableFileIsNamedAndNothingIsClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	readable := w.landing
	w.put(t, "customer/2026-09-14/1.json", "{}")
	w.put(t, "customer/2026-09-14/2.json", "{}")
	w.landing = deny{Store: readable, key: "customer/2026-09-14/2.json"}
	_, err := source.Claim(t.Context(), w.warehouse, w.landing, contract(), day, clock)
	unreadable, ok := errors.AsType[*source.UnreadableError](err)
	require.True(t, ok, err)
	require.Equal(t, "customer/2026-09-14/2.json", unreadable.File)
	require.Empty(t, states(t, w))

	w.landing = readable
	w.claim(t, contract())
	w.landing = deny{Store: readable, key: "customer/2026-09-14/2.json"}
	_, err = source.Land(t.Context(), w.warehouse, w.landing, contract(), clock)
	require.ErrorContains(t, err, `"customer/2026-09-14/2.json"`)
	require.Equal(t, map[int64]source.State{1: source.Rejected}, states(t, w))
	w.landing = readable
	require.Equal(t, []int64{2}, numbers(w.claim(t, contract())))
	require.Equal(t, []int64{2}, w.land(t, contract()).Batches)
}

func TestDecisionsAreFinalOrRepeatable(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/1.json", "{}")
	w.claim(t, contract())
	decide := func(batch int64, kind source.Kind) error {
		return source.Decide(t.Context(), w.warehouse, "customer", batch, kind, "a reason", "a test", clock)
	}
	require.NoError(t, decide(1, source.Reopened), "an open batch is open")
	for range 2 {
		require.NoError(t, decide(1, source.SetAsideDecision))
		require.Equal(t, map[int64]source.State{1: source.SetAside}, states(t, w))
	}
	require.NoError(t, decide(1, source.Reopened))
	require.NoError(t, decide(1, source.RejectedDecision))
	require.NoError(t, decide(1, source.RejectedDecision))
	require.ErrorContains(t, decide(1, source.Reopened), "batch 1 of customer is rejected for ever")
	require.ErrorContains(t, decide(7, source.Reopened), "no batch 7")
	all, err := source.Batches(t.Context(), w.warehouse, "customer")
	require.NoError(t, err)
	require.Len(t, all[0].Decisions, 3)
	require.Equal(t, 3, all[0].Decisions[2].Number)
}

func TestABatchSetAsideBeforeItLandedIsEvidenceAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(t, "customer/2026-09-14/1.json", "{}")
	w.claim(t, contract())
	require.NoError(t, source.Decide(t.Context(), w.warehouse, "customer", 1, source.SetAsideDecision, "", "", clock))
	w.put(t, "customer/2026-09-14/2.json", "{}")
	w.claim(t, contract())
	require.Equal(t, []int64{1, 2}, w.land(t, contract()).Batches)
}

func TestANewerFormatIsRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld()
	require.NoError(t, w.warehouse.Put(t.Context(), "bronze/customer/_batches/1.json", []byte(`{"format": 2, "number": 1}`)))
	_, err := source.Batches(t.Context(), w.warehouse, "customer")
	require.ErrorContains(t, err, "has format 2")
}

func TestPatternsMatchWithinFolders(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, key := range []string{"a/2026-09-14.csv", "a/2026-09-14-b.csv", "a/x/2026-09-14.csv", "a/x/y/2026-09-14.csv", "b/2026-09-14.csv"} {
		w.put(t, key, "id\n1\n")
	}
	for pattern, want := range map[string]int{
		"a/{day}*.csv": 2, "a/**/{day}.csv": 3, "a/*/{day}.csv": 1, "**/*.csv": 5, "a/{day}.csv": 1, "[ab]/{day}.csv": 2, "*/?/{day}.csv": 1,
	} {
		c := csvContract()
		c.Source.Path, c.Dataset = pattern, "d"
		each := world{warehouse: newWorld().warehouse, landing: w.landing}
		batches := each.claim(t, c)
		require.Len(t, batches, 1, pattern)
		require.Len(t, batches[0].Files, want, pattern)
	}
}

func TestACrashAtAnyStoreOperationLandsEveryRecordOnce(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at, done := 1, false; !done; at++ {
			w := newWorld()
			w.put(t, "customer/2026-09-14/1.json", "{}\n{}")
			w.claim(t, contract())
			w.put(t, "customer/2026-09-14/2.json", "{}\n{}\n{}")
			faults := objecttest.NewFaults(w.warehouse)
			faults.DieAt(at, after)
			_, err := source.Claim(t.Context(), faults, w.landing, contract(), day, clock)
			if err == nil {
				_, err = source.Land(t.Context(), faults, w.landing, contract(), clock)
			}
			done = faults.Count() < at
			if done {
				require.NoError(t, err)
			}
			w.claim(t, contract())
			w.land(t, contract())
			require.Len(t, w.bronze(t.Context(), t), 5, "operation %d, after %t", at, after)
			require.Equal(t, map[int64]source.State{1: source.Open, 2: source.Open}, states(t, w))
		}
	}
}
