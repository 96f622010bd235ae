package delta_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/value"
)

// plant puts an object below the table's root.
func plant(t *testing.T, table delta.Table, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, table.Store.Put(t.Context(), "silver/people/"+name, []byte("x")))
	}
}

// vacuumed runs a vacuum and gives the paths that it deleted.
func vacuumed(t *testing.T, table delta.Table, o delta.VacuumOptions) []string {
	t.Helper()
	result, err := table.Vacuum(t.Context(), o)
	require.NoError(t, err)
	out := make([]string, 0, len(result.Files))
	var bytes int64
	for _, f := range result.Files {
		out = append(out, f.Path)
		bytes += f.Size
	}
	require.Equal(t, bytes, result.Bytes)
	return out
}

// rawCommit puts a commit as other writers make it.
func rawCommit(t *testing.T, table delta.Table, version int64, lines ...string) {
	t.Helper()
	require.NoError(t, table.Store.PutIfAbsent(t.Context(), logKey(fmt.Sprintf("%020d.json", version)), []byte(strings.Join(lines, "\n"))))
}

func TestVacuumDeletesWhatNoVersionNeeds(t *testing.T) {
	t.Parallel()
	table, clock := ticking(t, nil)
	_, kept := appendRow(t, table, 0, value.Row{int64(1), "a"})
	_, gone := appendRow(t, table, 1, value.Row{int64(2), "b"})
	_, err := table.Commit(t.Context(), 2, delta.Commit{ID: "d", Operation: "DELETE", Removes: []delta.Remove{delta.RemoveOf(gone, clock.now(), true)}})
	require.NoError(t, err)
	orphan := write(t, table, value.Row{int64(3), "c"})
	plant(t, table, "_change_data/cdc-0.parquet", "_change_data/name=1/cdc-1.parquet", "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin",
		"ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
	clock.move(days(7))
	require.Empty(t, vacuumed(t, table, delta.VacuumOptions{}), "nothing is older than the retention")
	clock.move(time.Second)
	want := []string{
		"_change_data/cdc-0.parquet", "_change_data/name=1/cdc-1.parquet", "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
		"deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin", gone.Path, orphan.Path,
	}
	slices.Sort(want)
	before := contents(t, table.Store)
	require.Equal(t, want, vacuumed(t, table, delta.VacuumOptions{DryRun: true}))
	require.Equal(t, before, contents(t, table.Store), "a dry run changed something")
	require.Equal(t, want, vacuumed(t, table, delta.VacuumOptions{}))
	for _, name := range want {
		require.NotContains(t, contents(t, table.Store), "silver/people/"+name)
	}
	require.Contains(t, contents(t, table.Store), "silver/people/"+kept.Path)
	require.Empty(t, vacuumed(t, table, delta.VacuumOptions{}))
	require.Len(t, contents(t, table.Store), len(before)-len(want))
}

func TestVacuumRefusesAShortRetention(t *testing.T) {
	t.Parallel()
	table, clock := ticking(t, map[string]string{"delta.deletedFileRetentionDuration": "interval 1 week 2 days"})
	orphan := write(t, table, value.Row{int64(3), "c"})
	clock.move(days(9) - time.Hour)
	week := days(7)
	_, err := table.Vacuum(t.Context(), delta.VacuumOptions{Retention: &week, DryRun: true})
	var tooShort *delta.RetentionError
	require.ErrorAs(t, err, &tooShort)
	require.Equal(t, days(9), tooShort.Least)
	require.ErrorContains(t, err, "silver/people")
	require.Empty(t, vacuumed(t, table, delta.VacuumOptions{}))
	negative := -time.Hour
	_, err = table.Vacuum(t.Context(), delta.VacuumOptions{Retention: &negative, Force: true})
	require.Error(t, err)
	require.Equal(t, []string{orphan.Path}, vacuumed(t, table, delta.VacuumOptions{Retention: &week, Force: true}))

	odd, _ := ticking(t, map[string]string{"delta.deletedFileRetentionDuration": "interval 2 moons"})
	_, err = odd.Vacuum(t.Context(), delta.VacuumOptions{})
	require.ErrorContains(t, err, "delta.deletedFileRetentionDuration")
}

func TestVacuumNeedsAProtocolThatItKnows(t *testing.T) {
	t.Parallel()
	for name, features := range map[string]string{"unknown": `"fromTheFuture"`, "not written by us": `"rowTracking","domainMetadata"`, "managed": `"coordinatedCommits-preview"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, clock := ticking(t, nil)
			plant(t, table, "orphan.parquet")
			rawCommit(t, table, 1, `{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":[`+features+`]}}`)
			clock.move(days(30))
			_, err := table.Vacuum(t.Context(), delta.VacuumOptions{})
			var unsupported *delta.UnsupportedError
			require.ErrorAs(t, err, &unsupported)
			require.True(t, unsupported.Write)
			require.Contains(t, contents(t, table.Store), "silver/people/orphan.parquet")
		})
	}
}

// TestVacuumTouchesNothingElse has one of everything that only looks unneeded.
func TestVacuumTouchesNothingElse(t *testing.T) {
	t.Parallel()
	table, clock := ticking(t, nil)
	metadata := delta.NewMetadata(people(), []string{"name"}, nil)
	table.Root = "silver/parted"
	_, err := table.Commit(t.Context(), -1, delta.Commit{ID: "c", Operation: "CREATE TABLE", Metadata: &metadata})
	require.NoError(t, err)
	parts := []value.Value{`a b/"%=`, "é#?", "_under", nil}
	adds := make([]delta.Add, 0, len(parts))
	for i, name := range parts {
		add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: people(), Partition: map[string]value.Value{"name": name}}, rowsOf(value.Row{int64(i), name}))
		require.NoError(t, err)
		adds = append(adds, add)
	}
	_, err = table.Commit(t.Context(), 0, delta.Commit{ID: "a", Operation: "WRITE", Adds: adds})
	require.NoError(t, err)
	const shared = `"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":%d,"sizeInBytes":34,"cardinality":1}`
	vectors := make([]string, 0, 2)
	for i := range cap(vectors) {
		vectors = append(vectors, fmt.Sprintf(`{"add":{"path":"shared-%d.parquet","partitionValues":{"name":"x"},"size":1,"modificationTime":1,"dataChange":true,`+shared+`}}`, i, 1+i*42))
	}
	rawCommit2 := func(v int64, lines ...string) {
		require.NoError(t, table.Store.PutIfAbsent(t.Context(), "silver/parted/_delta_log/"+fmt.Sprintf("%020d.json", v), []byte(strings.Join(lines, "\n"))))
	}
	rawCommit2(2, vectors...)
	put := func(name string) { require.NoError(t, table.Store.Put(t.Context(), "silver/"+name, []byte("x"))) }
	for _, name := range []string{
		"parted/shared-0.parquet", "parted/shared-1.parquet", "parted/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
		"parted/_hidden/a.parquet", "parted/_a.parquet", "parted/.a.parquet", "parted/.hidden/a.parquet", "parted/sub/_spark_metadata/0",
		"parted/_varve/state/1.json", "parted/_varve/state/a.parquet", "parted/sub/_change_data/a.parquet", "parted/_change_data/_b.parquet",
		"parted/inner/_delta_log/00000000000000000000.json", "parted/inner/data.parquet", "parted/inner/deep/data.parquet",
		"parted/absolute.parquet", "parted/sp ace.parquet", "parted/removed-late.parquet", "parted/_change_data/cdc-kept.parquet",
		"partedX/a.parquet", "other.parquet",
	} {
		put(name)
	}
	put("parted/doomed.parquet")
	put("parted/_p=x.parquet")
	clock.move(days(20))
	// A removal that was prepared long before it was committed, tombstones with paths that lead out of the table, a change file.
	rawCommit2(3, `{"add":{"path":"removed-late.parquet","partitionValues":{"name":"x"},"size":1,"modificationTime":1,"dataChange":true}}`)
	clock.move(time.Hour)
	rawCommit2(4,
		fmt.Sprintf(`{"remove":{"path":"removed-late.parquet","deletionTimestamp":%d,"dataChange":true}}`, clock.now().Add(-days(15)).UnixMilli()),
		fmt.Sprintf(`{"remove":{"path":"file:/w/silver/parted/absolute.parquet","deletionTimestamp":%d,"dataChange":true}}`, clock.now().UnixMilli()),
		fmt.Sprintf(`{"remove":{"path":"s3://b/silver/parted/sp%%20ace.parquet","deletionTimestamp":%d,"dataChange":true}}`, clock.now().UnixMilli()),
		`{"cdc":{"path":"_change_data/cdc-kept.parquet","partitionValues":{"name":"x"},"size":1,"dataChange":false}}`)
	put("parted/uncommitted.parquet")
	clock.move(days(6))
	require.Equal(t, []string{"doomed.parquet"}, vacuumed(t, table, delta.VacuumOptions{}))
	s, err := table.Version(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, scan(t.Context(), t, s, nil), 4)
	clock.move(days(3))
	got := vacuumed(t, table, delta.VacuumOptions{})
	require.Equal(t, []string{"_change_data/cdc-kept.parquet", "absolute.parquet", "removed-late.parquet", "sp ace.parquet", "uncommitted.parquet"}, got)
}

func TestVacuumKeepsPreparedCommitsAndSweepsOwnedFolders(t *testing.T) {
	t.Parallel()
	table, clock := ticking(t, nil)
	prepared := write(t, table, value.Row{int64(1), "a"})
	for i := range int64(4) {
		clock.move(days(3))
		_, err := table.Commit(t.Context(), i, delta.Commit{ID: uuid.NewString(), Operation: "WRITE", Txns: []delta.Txn{{AppID: "w", Version: 10 * i}}})
		require.NoError(t, err)
	}
	plant(t, table, "_own/a", "_own/b", "_other/a")
	clock.move(days(8))
	var asked []int64
	o := delta.VacuumOptions{
		Prepared: []delta.Commit{{Adds: []delta.Add{prepared}}},
		Owned: []delta.OwnedFolder{{Path: "_own", AppID: "w", Needed: func(_ context.Context, marks []int64) (func(string) bool, error) {
			asked = marks
			return func(name string) bool { return name == "_own/a" }, nil
		}}},
	}
	long := days(12) // version 2 was current then
	require.Equal(t, []string{}, vacuumed(t, table, delta.VacuumOptions{Prepared: o.Prepared, Owned: o.Owned, Retention: &long, DryRun: true}))
	require.Equal(t, []int64{10, 20, 30}, asked)
	require.Equal(t, []string{"_own/b"}, vacuumed(t, table, o))
	require.Equal(t, []int64{30}, asked, "only the newest version was current in the last seven days")
	require.Contains(t, contents(t, table.Store), "silver/people/"+prepared.Path)
	o.Owned[0].Needed = func(context.Context, []int64) (func(string) bool, error) { return nil, object.ErrUnavailable }
	_, err := table.Vacuum(t.Context(), o)
	require.ErrorIs(t, err, object.ErrUnavailable)
	require.Equal(t, []string{prepared.Path}, vacuumed(t, table, delta.VacuumOptions{}))
}

// history is what a random life of a table did.
type history struct {
	table delta.Table
	clock *hands
	files [][]string  // of each version, ordered
	since []time.Time // when each version became the newest
	live  []delta.Add
	// written are all data files with their times.
	written map[string]time.Time
}

// newFile puts a data file, whose content nobody reads.
func (h *history) newFile(t *testing.T) delta.Add {
	t.Helper()
	name := fmt.Sprintf("part-%05d.parquet", len(h.written))
	plant(t, h.table, name)
	h.written[name] = h.clock.now()
	return delta.Add{Path: name, Size: 1, PartitionValues: map[string]*string{}, DataChange: true}
}

// step does one random thing.
func (h *history) step(t *testing.T, r *rand.Rand) {
	t.Helper()
	h.clock.move(time.Duration(r.IntN(72)) * time.Hour)
	switch r.IntN(20) {
	case 0, 6, 7:
		h.newFile(t) // never committed
	case 1:
		require.NoError(t, h.table.Checkpoint(t.Context(), int64(len(h.files)-1)))
	case 2:
		_, err := h.table.CleanLog(t.Context())
		require.NoError(t, err)
		h.check(t, days(30), false)
	case 3, 4, 5:
		_, err := h.table.Vacuum(t.Context(), delta.VacuumOptions{})
		require.NoError(t, err)
		h.check(t, days(7), true)
	default:
		h.commit(t, r)
	}
}

// commit adds a file, removes some, or both; a removal may bear the time at which it was prepared, long ago.
func (h *history) commit(t *testing.T, r *rand.Rand) {
	t.Helper()
	c := delta.Commit{ID: uuid.NewString(), Operation: "WRITE"}
	for len(h.live) > 0 && r.IntN(2) == 0 {
		i := r.IntN(len(h.live))
		c.Removes = append(c.Removes, delta.RemoveOf(h.live[i], h.clock.now().Add(-days(r.IntN(20))), true))
		h.live = slices.Delete(h.live, i, i+1)
	}
	if len(c.Removes) == 0 || r.IntN(2) == 0 {
		c.Adds = []delta.Add{h.newFile(t)}
		h.live = append(h.live, c.Adds...)
	}
	_, err := h.table.Commit(t.Context(), int64(len(h.files)-1), c)
	require.NoError(t, err)
	h.files, h.since = append(h.files, paths(h.live)), append(h.since, h.clock.now())
}

// paths gives the paths of files, ordered.
func paths(files []delta.Add) []string {
	out := make([]string, 0, len(files))
	for _, a := range files {
		out = append(out, a.Path)
	}
	slices.Sort(out)
	return out
}

// check claims that every version within a retention is there with its files, and so are young files.
func (h *history) check(t *testing.T, retention time.Duration, files bool) {
	t.Helper()
	cutoff := h.clock.now().Add(-retention)
	there := names(t, h.table.Store, "silver/people/")
	for v := range h.files {
		if v+1 < len(h.files) && !h.since[v+1].After(cutoff) {
			continue
		}
		s, err := h.table.Version(t.Context(), int64(v))
		require.NoError(t, err)
		require.Equal(t, h.files[v], paths(s.Files()), "version %d", v)
		if files {
			require.Subset(t, there, h.files[v], "version %d", v)
		}
	}
	for name, at := range h.written {
		if files && !at.Before(cutoff) {
			require.Contains(t, there, name)
		}
	}
}

func TestEveryVersionWithinTheRetentionStaysReadable(t *testing.T) {
	t.Parallel()
	deleted, cleaned := 0, 0
	for seed := range uint64(4) {
		t.Logf("seed %d", seed)
		table, clock := ticking(t, map[string]string{"delta.checkpointInterval": strconv.FormatUint(5+seed, 10)})
		h := &history{
			table: table, clock: clock, files: [][]string{{}}, since: []time.Time{clock.now()}, written: map[string]time.Time{},
		}
		r := rand.New(rand.NewPCG(seed, 7))
		for range 40 {
			h.step(t, r)
		}
		deleted += len(h.written) - len(names(t, table.Store, "silver/people/part-"))
		cleaned += len(h.files) - len(slices.DeleteFunc(names(t, table.Store, logKey("")), func(name string) bool {
			return strings.Count(name, ".") != 1 || !strings.HasSuffix(name, ".json")
		}))
	}
	require.Greater(t, deleted, 20, "vacuum deleted next to nothing")
	require.Greater(t, cleaned, 8, "the log was hardly cleaned")
}
