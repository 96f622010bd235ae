package delta_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"varve/internal/delta"
	"varve/internal/value"
)

// withVectors are a protocol and properties that allow deletion vectors.
func withVectors() (delta.Protocol, map[string]string) {
	return delta.Protocol{
		MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"deletionVectors"},
		WriterFeatures: []string{"deletionVectors", "appendOnly", "invariants"},
	}, map[string]string{"delta.enableDeletionVectors": "true"}
}

// numbered makes a table that allows deletion vectors, with a file of so many rows, of which every third has no name.
func numbered(t *testing.T, rows int64) (delta.Table, []value.Row) {
	t.Helper()
	table := delta.At(newPeople(t, nil).Store, "silver/numbered")
	table.Now = clock
	protocol, config := withVectors()
	metadata := delta.NewMetadata(people(), nil, config)
	all := make([]value.Row, 0, rows)
	for id := range rows {
		row := value.Row{id, nil}
		if id%3 > 0 {
			row[1] = fmt.Sprintf("name %d", id)
		}
		all = append(all, row)
	}
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: people(), Config: config}, rowsOf(all...))
	require.NoError(t, err)
	_, err = table.Commit(t.Context(), -1, delta.Commit{
		ID: uuid.NewString(), Operation: "CREATE TABLE AS SELECT", Protocol: &protocol, Metadata: &metadata, Adds: []delta.Add{add},
	})
	require.NoError(t, err)
	return table, all
}

// deleteRows deletes positions of a table's only file and gives the new version.
func deleteRows(t *testing.T, table delta.Table, positions ...int64) *delta.Snapshot {
	t.Helper()
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	removes, adds, err := s.DeleteRows(t.Context(), []delta.Deletion{{File: s.Files()[0], Rows: slices.Values(positions)}})
	require.NoError(t, err)
	if len(removes) == 0 {
		return s
	}
	version, err := table.Commit(t.Context(), s.Version(), delta.Commit{
		ID: uuid.NewString(), Operation: "DELETE", Removes: removes, Adds: adds,
	})
	require.NoError(t, err)
	s, err = table.Version(t.Context(), version)
	require.NoError(t, err)
	return s
}

// statsOf reads the statistics of a table's only file.
func statsOf(t *testing.T, s *delta.Snapshot) (stats struct {
	NumRecords  int64            `json:"numRecords"`
	MinValues   map[string]any   `json:"minValues"`
	NullCount   map[string]int64 `json:"nullCount"`
	TightBounds bool             `json:"tightBounds"`
},
) {
	t.Helper()
	require.Len(t, s.Files(), 1)
	require.NoError(t, json.Unmarshal([]byte(s.Files()[0].Stats), &stats))
	return stats
}

// TestDeletedRowsStayDeleted deletes random rows of one file in random steps: every version has the rows that are left.
func TestDeletedRowsStayDeleted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		const rows = 300
		table, all := numbered(t, rows)
		gone := map[int64]bool{}
		for range rapid.IntRange(1, 4).Draw(r, "steps") {
			positions := rapid.SliceOfN(rapid.Int64Range(0, rows-2), 0, 120).Draw(r, "positions")
			for _, p := range positions {
				gone[p] = true
			}
			s := deleteRows(t, table, positions...)
			want := slices.DeleteFunc(slices.Clone(all), func(row value.Row) bool { return gone[row[0].(int64)] })
			require.Equal(r, want, scan(t.Context(), t, s, nil))
			require.EqualValues(r, rows, statsOf(t, s).NumRecords)
		}
	})
}

func TestStatisticsOfAFileWithDeletedRowsAreWide(t *testing.T) {
	t.Parallel()
	table, _ := numbered(t, 4)
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.True(t, statsOf(t, s).TightBounds)

	s = deleteRows(t, table, 1) // ids 0, 2 and 3 are left, of which 0 and 3 have no name
	stats := statsOf(t, s)
	require.False(t, stats.TightBounds)
	require.EqualValues(t, 4, stats.NumRecords)
	require.Equal(t, map[string]any{"id": 0.0, "name": "name 1"}, stats.MinValues)
	require.Equal(t, map[string]int64{"id": 0, "name": 2}, stats.NullCount)
}

// TestNullsOnlyStaysNullsOnly has a column of nulls only: its count must go on to say so, for all physical rows.
func TestNullsOnlyStaysNullsOnly(t *testing.T) {
	t.Parallel()
	table, _ := numbered(t, 1)
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: people()}, rowsOf(value.Row{int64(1), nil}, value.Row{int64(2), nil}))
	require.NoError(t, err)
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	version, err := table.Commit(t.Context(), 0, delta.Commit{
		ID: uuid.NewString(), Operation: "WRITE", Adds: []delta.Add{add}, Removes: []delta.Remove{delta.RemoveOf(s.Files()[0], clock(), true)},
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, version)
	require.Equal(t, map[string]int64{"id": 0, "name": 2}, statsOf(t, deleteRows(t, table, 0)).NullCount)
}

func TestFileWithoutRowsLeftIsRemoved(t *testing.T) {
	t.Parallel()
	table, _ := numbered(t, 3)
	deleteRows(t, table, 0)
	s := deleteRows(t, table, 1, 2)
	require.Empty(t, s.Files())
}

func TestWhatIsDeletedAlreadyNeedsNoCommit(t *testing.T) {
	t.Parallel()
	table, _ := numbered(t, 3)
	version := deleteRows(t, table, 1).Version()
	require.Equal(t, version, deleteRows(t, table, 1).Version())
}

func TestVectorsOfManyFilesShareAFile(t *testing.T) {
	t.Parallel()
	table, _ := numbered(t, 5)
	second, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: people()}, rowsOf(value.Row{int64(9), nil}, value.Row{int64(10), nil}))
	require.NoError(t, err)
	version, err := table.Commit(t.Context(), 0, delta.Commit{ID: "a", Operation: "WRITE", Adds: []delta.Add{second}})
	require.NoError(t, err)
	s, err := table.Version(t.Context(), version)
	require.NoError(t, err)
	deletions := make([]delta.Deletion, 2)
	for i, f := range s.Files() {
		deletions[i] = delta.Deletion{File: f, Rows: slices.Values([]int64{0})}
	}
	_, adds, err := s.DeleteRows(t.Context(), deletions)
	require.NoError(t, err)
	require.Len(t, adds, 2)
	require.Equal(t, adds[0].DeletionVector.PathOrInlineDv, adds[1].DeletionVector.PathOrInlineDv)
	require.EqualValues(t, 1, *adds[0].DeletionVector.Offset)
	require.EqualValues(t, 34, adds[0].DeletionVector.SizeInBytes)
	require.EqualValues(t, 1+8+34, *adds[1].DeletionVector.Offset)
}

func TestDeletionThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	table, _ := numbered(t, 3)
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	for _, beyond := range []int64{-1, 3} {
		_, _, err = s.DeleteRows(t.Context(), []delta.Deletion{{File: s.Files()[0], Rows: slices.Values([]int64{beyond})}})
		require.ErrorContains(t, err, fmt.Sprintf("delete position %d", beyond))
	}
	plain := newPeople(t, map[string]string{"delta.enableDeletionVectors": "true"})
	version, _ := appendRow(t, plain, 0, value.Row{int64(1), "one"})
	s, err = plain.Version(t.Context(), version)
	require.NoError(t, err)
	_, _, err = s.DeleteRows(t.Context(), []delta.Deletion{{File: s.Files()[0], Rows: slices.Values([]int64{0})}})
	require.ErrorContains(t, err, `need the feature "deletionVectors"`)
}

func TestCommitWithAWrongVectorIsRefused(t *testing.T) {
	t.Parallel()
	table, _ := numbered(t, 4)
	s := deleteRows(t, table, 0, 1)
	live := s.Files()[0]
	gone := delta.RemoveOf(live, clock(), true)
	for name, c := range map[string]struct {
		change func(*delta.Add)
		words  string
	}{
		"rows come back":      {func(a *delta.Add) { a.DeletionVector = nil }, "would come back"},
		"fewer rows":          {func(a *delta.Add) { a.DeletionVector.Cardinality = 1; a.DeletionVector.Offset = nil }, "would come back"},
		"no record count":     {func(a *delta.Add) { a.Stats = "" }, "without the number of records"},
		"tight bounds":        {func(a *delta.Add) { a.Stats = `{"numRecords":4}` }, "tight"},
		"all rows":            {func(a *delta.Add) { a.DeletionVector.Cardinality = 4 }, "every row"},
		"a vector of no kind": {func(a *delta.Add) { a.DeletionVector.StorageType = "x" }, "storage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			add := live
			vector := *live.DeletionVector
			add.DeletionVector = &vector
			c.change(&add)
			_, err := table.Commit(t.Context(), s.Version(), delta.Commit{
				ID: name, Operation: "DELETE", Removes: []delta.Remove{gone}, Adds: []delta.Add{add},
			})
			require.ErrorContains(t, err, c.words)
		})
	}
}
