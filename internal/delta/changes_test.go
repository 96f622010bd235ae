package delta_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/delta/deltatest"
	"varve/internal/object"
	"varve/internal/object/objecttest"
	"varve/internal/value"
)

// TestChangeFeedsOfTheCorpusAreReadAsItsAuthorsReadThem compares every change of the corpus.
func TestChangeFeedsOfTheCorpusAreReadAsItsAuthorsReadThem(t *testing.T) {
	t.Parallel()
	corpusTables(t)
	found, err := filepath.Glob(filepath.Join(corpus, "*", "expected", "cdf.jsonl"))
	require.NoError(t, err)
	require.Greater(t, len(found), 5)
	for _, file := range found {
		folder := filepath.Dir(filepath.Dir(file))
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			e := expected(t, folder)
			feed, err := delta.At(load(t, filepath.Join(folder, "delta")), "").Changes(t.Context(), e.CDF.StartVersion, -1)
			require.NoError(t, err)
			want, err := expectedRows(namedChanges(feed), file)
			require.NoError(t, err)
			got := changeLines(t, feed)
			require.Equal(t, want, got)
			require.Len(t, got, e.CDF.Rows)
		})
	}
}

// namedChanges is the columns of a feed without the time, which the corpus does not tell.
func namedChanges(feed *delta.ChangeFeed) value.Schema {
	columns := feed.Columns()
	return columns[:len(columns)-1]
}

// changeLines gives the changes of a feed as sorted JSON lines, without their times.
func changeLines(t *testing.T, feed *delta.ChangeFeed) []string {
	t.Helper()
	schema := namedChanges(feed)
	var lines []string
	for c, err := range feed.Rows(t.Context()) {
		require.NoError(t, err)
		require.False(t, c.At.IsZero())
		line := []byte("{")
		for i, v := range append(slices.Clone(c.Row), string(c.Type), c.Version) {
			if i > 0 {
				line = append(line, ',')
			}
			line = append(strconv.AppendQuote(line, schema[i].Name), ':')
			line = value.AppendJSON(line, schema[i].Type, v)
		}
		normal, err := normalLine(schema, append(line, '}'))
		require.NoError(t, err)
		lines = append(lines, normal)
	}
	slices.Sort(lines)
	return lines
}

// feedProtocol is the least that a table with a change data feed and deletion vectors asks for.
func feedProtocol() *delta.Protocol {
	return &delta.Protocol{
		MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"deletionVectors"},
		WriterFeatures: []string{"appendOnly", "changeDataFeed", "deletionVectors", "invariants"},
	}
}

// newFed makes a table of people with a change data feed, and people 0 to n-1 in its version 1.
func newFed(t *testing.T, n int64) (delta.Table, delta.Add) {
	t.Helper()
	table := newTable(t, delta.NewMetadata(people(), nil, nil))
	metadata := delta.NewMetadata(people(), nil, map[string]string{
		"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true",
	})
	rows := make([]value.Row, 0, n)
	for id := range n {
		rows = append(rows, value.Row{id, "p" + strconv.FormatInt(id, 10)})
	}
	add := write(t, table, rows...)
	commit(t, table, 0, delta.Commit{Operation: "WRITE", Metadata: &metadata, Protocol: feedProtocol(), Adds: []delta.Add{add}})
	return table, add
}

// commit makes a commit that nothing comes between.
func commit(t *testing.T, table delta.Table, read int64, c delta.Commit) {
	t.Helper()
	c.ID = uuid.NewString()
	version, err := table.Commit(t.Context(), read, c)
	require.NoError(t, err)
	require.Equal(t, read+1, version)
}

func changes(all ...delta.Change) iter.Seq2[delta.Change, error] {
	return func(yield func(delta.Change, error) bool) {
		for _, c := range all {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// requireChanges checks a range of a feed against texts of version, type, id and name.
func requireChanges(t *testing.T, table delta.Table, from, to int64, want ...string) {
	t.Helper()
	feed, err := table.Changes(t.Context(), from, to)
	require.NoError(t, err)
	var got []string
	for c, err := range feed.Rows(t.Context()) {
		require.NoError(t, err)
		got = append(got, fmt.Sprint(c.Version, " ", c.Type, " ", c.Row))
	}
	require.Equal(t, want, got)
}

func TestChangesFollowFromDataFilesOrAreWritten(t *testing.T) {
	t.Parallel()
	table, first := newFed(t, 3)
	requireChanges(t, table, 1, -1, "1 insert [0 p0]", "1 insert [1 p1]", "1 insert [2 p2]")

	// A deletion vector alone tells what it deletes.
	snap, err := table.Latest(t.Context())
	require.NoError(t, err)
	removes, adds, err := snap.DeleteRows(t.Context(), []delta.Deletion{{File: first, Rows: slices.Values([]int64{1})}})
	require.NoError(t, err)
	commit(t, table, 1, delta.Commit{Operation: "DELETE", Removes: removes, Adds: adds})
	requireChanges(t, table, 2, 2, "2 delete [1 p1]")

	// Files that are only moved change nothing.
	whole := write(t, table, value.Row{int64(0), "p0"}, value.Row{int64(2), "p2"})
	whole.DataChange = false
	commit(t, table, 2, delta.Commit{Operation: "OPTIMIZE", Removes: []delta.Remove{delta.RemoveOf(adds[0], clock(), false)}, Adds: []delta.Add{whole}})
	requireChanges(t, table, 3, 3)

	// A file that is written anew with what it keeps needs a change file, and what that says counts.
	anew := write(t, table, value.Row{int64(0), "p0"}, value.Row{int64(2), "new"})
	c := delta.Commit{Operation: "UPDATE", Removes: []delta.Remove{delta.RemoveOf(whole, clock(), true)}, Adds: []delta.Add{anew}}
	c.ID = uuid.NewString()
	_, err = table.Commit(t.Context(), 3, c)
	require.ErrorContains(t, err, "no change file that says")
	file, err := table.WriteChanges(t.Context(), delta.FileOptions{Schema: people()}, changes(
		delta.Change{Type: delta.RowBefore, Row: value.Row{int64(2), "p2"}}, delta.Change{Type: delta.RowAfter, Row: value.Row{int64(2), "new"}}))
	require.NoError(t, err)
	require.Regexp(t, `^_change_data/cdc-00000-[0-9a-f-]{36}\.c000\.zstd\.parquet$`, file.Path)
	c.Changes = []delta.ChangeFile{file}
	commit(t, table, 3, c)
	requireChanges(t, table, 4, 4, "4 update_preimage [2 p2]", "4 update_postimage [2 new]")

	// A file that goes takes its live rows with it.
	commit(t, table, 4, delta.Commit{Operation: "DELETE", Removes: []delta.Remove{delta.RemoveOf(anew, clock(), true)}})
	requireChanges(t, table, 5, -1, "5 delete [0 p0]", "5 delete [2 new]")

	// A change file without rows says that nothing changed, whatever the data files say.
	back := write(t, table, value.Row{int64(7), "x"})
	none, err := table.WriteChanges(t.Context(), delta.FileOptions{Schema: people()}, changes())
	require.NoError(t, err)
	commit(t, table, 5, delta.Commit{Operation: "MERGE", Adds: []delta.Add{back}, Changes: []delta.ChangeFile{none}})
	requireChanges(t, table, 6, 6)

	// So does a MERGE whose metrics say so.
	more := write(t, table, value.Row{int64(8), "y"})
	commit(t, table, 6, delta.Commit{
		Operation: "MERGE", Adds: []delta.Add{more},
		Metrics: map[string]string{"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"},
	})
	requireChanges(t, table, 7, 7)
	requireChanges(t, table, 2, 5, "2 delete [1 p1]", "4 update_preimage [2 p2]", "4 update_postimage [2 new]", "5 delete [0 p0]", "5 delete [2 new]")
}

func TestChangeFeedIsRefusedWhereThereIsNone(t *testing.T) {
	t.Parallel()
	table, _ := newFed(t, 1)
	refused := func(from, to, version int64) {
		t.Helper()
		_, err := table.Changes(t.Context(), from, to)
		var off *delta.NoChangeFeedError
		require.ErrorAs(t, err, &off)
		require.Equal(t, version, off.Version)
	}
	refused(0, -1, 0)
	for _, out := range [][2]int64{{2, -1}, {-1, -1}, {1, 9}, {1, 0}} {
		_, err := table.Changes(t.Context(), out[0], out[1])
		require.ErrorIs(t, err, delta.ErrNoVersion, out)
	}

	off := delta.NewMetadata(people(), nil, nil)
	on := off
	on.Configuration = map[string]string{"delta.enableChangeDataFeed": "true"}
	commit(t, table, 1, delta.Commit{Operation: "SET TBLPROPERTIES", Metadata: &off})
	refused(1, 2, 2)
	commit(t, table, 2, delta.Commit{Operation: "SET TBLPROPERTIES", Metadata: &on})
	feed, err := table.Changes(t.Context(), 1, 3)
	require.NoError(t, err)
	var last error
	for _, err := range feed.Rows(t.Context()) {
		last = err
	}
	var gap *delta.NoChangeFeedError
	require.ErrorAs(t, last, &gap)
	require.EqualValues(t, 2, gap.Version)

	// The log has no commit of a version any longer.
	require.NoError(t, table.Checkpoint(t.Context(), 3))
	require.NoError(t, table.Store.Delete(t.Context(), "silver/people/_delta_log/00000000000000000003.json"))
	_, err = table.Changes(t.Context(), 3, 3)
	require.ErrorIs(t, err, delta.ErrNoVersion)
}

func TestChangesAreReadAsTheLastVersionsColumns(t *testing.T) {
	t.Parallel()
	table, _ := newFed(t, 1)
	wider := people()
	wider = append(wider, value.Field{Name: "age", Type: kind(value.Long), Nullable: true})
	snap, err := table.Latest(t.Context())
	require.NoError(t, err)
	metadata := snap.Metadata()
	metadata.Schema = wider
	commit(t, table, 1, delta.Commit{Operation: "ADD COLUMNS", Metadata: &metadata})
	requireChanges(t, table, 1, 2, "1 insert [0 p0 <nil>]")
	metadata.Schema = wider[:1:1]
	commit(t, table, 2, delta.Commit{Operation: "DROP COLUMNS", Metadata: &metadata})
	feed, err := table.Changes(t.Context(), 1, 3)
	require.NoError(t, err)
	for _, err := range feed.Rows(t.Context()) {
		var unsupported *delta.UnsupportedError
		require.ErrorAs(t, err, &unsupported)
		require.Contains(t, unsupported.Feature, `"name"`)
	}
}

func TestTableWithAFeedHasNoColumnsOfItsNames(t *testing.T) {
	t.Parallel()
	schema := append(people(), value.Field{Name: delta.ChangeTypeColumn, Type: kind(value.StringKind), Nullable: true})
	metadata := delta.NewMetadata(schema, nil, map[string]string{"delta.enableChangeDataFeed": "true"})
	for protocol, want := range map[*delta.Protocol]string{feedProtocol(): delta.ChangeTypeColumn, {MinReaderVersion: 1, MinWriterVersion: 2}: "changeDataFeed"} {
		table := delta.At(load(t, t.TempDir()), "t")
		_, err := table.Commit(t.Context(), -1, delta.Commit{ID: "a", Operation: "CREATE TABLE", Metadata: &metadata, Protocol: protocol})
		require.ErrorContains(t, err, want)
	}
	table := newPeople(t, nil)
	file, err := table.WriteChanges(t.Context(), delta.FileOptions{Schema: people()}, changes())
	require.NoError(t, err)
	_, err = table.Commit(t.Context(), 0, delta.Commit{ID: "a", Operation: "WRITE", Changes: []delta.ChangeFile{file}})
	require.ErrorContains(t, err, "without a change data feed")
}

func TestDamagedChangeFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, table delta.Table, file *delta.ChangeFile){
		"gone": func(t *testing.T, table delta.Table, file *delta.ChangeFile) {
			t.Helper()
			require.NoError(t, table.Store.Delete(t.Context(), "silver/people/"+file.Path))
		},
		"cut": func(t *testing.T, table delta.Table, file *delta.ChangeFile) {
			t.Helper()
			body, err := table.Store.Read(t.Context(), "silver/people/"+file.Path, 0, file.Size-9)
			require.NoError(t, err)
			require.NoError(t, table.Store.Put(t.Context(), "silver/people/"+file.Path, body))
		},
		"outside the table":   func(_ *testing.T, _ delta.Table, file *delta.ChangeFile) { file.Path = "../a.parquet" },
		"of a size that lies": func(_ *testing.T, _ delta.Table, file *delta.ChangeFile) { file.Size-- },
		"of no type of change": func(t *testing.T, table delta.Table, file *delta.ChangeFile) {
			t.Helper()
			odd, err := table.WriteChanges(t.Context(), delta.FileOptions{Schema: people()}, changes(delta.Change{Type: "upsert", Row: value.Row{int64(1), "x"}}))
			require.NoError(t, err)
			*file = odd
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, _ := newFed(t, 1)
			file, err := table.WriteChanges(t.Context(), delta.FileOptions{Schema: people()}, changes(delta.Change{Type: delta.RowInserted, Row: value.Row{int64(1), "x"}}))
			require.NoError(t, err)
			damage(t, table, &file)
			line := fmt.Sprintf(`{"cdc":{"path":%q,"partitionValues":{},"size":%d,"dataChange":false}}`, file.Path, file.Size)
			require.NoError(t, table.Store.Put(t.Context(), "silver/people/_delta_log/00000000000000000002.json", []byte(line)))
			feed, err := table.Changes(t.Context(), 2, 2)
			require.NoError(t, err)
			var last error
			for _, err := range feed.Rows(t.Context()) {
				last = err
			}
			require.ErrorContains(t, last, `"silver/people", version 2: `)
			require.ErrorContains(t, last, file.Path)
			if name == "gone" {
				require.ErrorIs(t, last, object.ErrNotFound)
				return
			}
			var broken *delta.CorruptError
			require.ErrorAs(t, last, &broken)
		})
	}
}

// TestEveryStoreOperationOfAChangeMayFail fails each operation of a change by deletion vector, data file and change file, before
// its effect and after, with the process dead from then on. Once it is prepared, the same commit called again ends it; before,
// it is prepared anew. The rows and the feed are those of one change.
func TestEveryStoreOperationOfAChangeMayFail(t *testing.T) {
	t.Parallel()
	base, first := newFed(t, 4)
	prepare := func(ctx context.Context, table delta.Table) (*delta.Commit, error) {
		snap, err := table.Latest(ctx)
		if err != nil {
			return nil, err
		}
		c := delta.Commit{ID: uuid.NewString(), Operation: "UPDATE"}
		if c.Removes, c.Adds, err = snap.DeleteRows(ctx, []delta.Deletion{{File: first, Rows: slices.Values([]int64{2})}}); err != nil {
			return nil, err
		}
		add, err := table.WriteFile(ctx, delta.FileOptions{Schema: people()}, rowsOf(value.Row{int64(2), "new"}))
		if err != nil {
			return nil, err
		}
		file, err := table.WriteChanges(ctx, delta.FileOptions{Schema: people()}, changes(
			delta.Change{Type: delta.RowBefore, Row: value.Row{int64(2), "p2"}}, delta.Change{Type: delta.RowAfter, Row: value.Row{int64(2), "new"}}))
		if err != nil {
			return nil, err
		}
		c.Adds, c.Changes = append(c.Adds, add), []delta.ChangeFile{file}
		return &c, nil
	}
	for operation := 1; ; operation++ {
		for _, after := range []bool{false, true} {
			faults := objecttest.NewFaults(copyOf(t, base.Store, &hands{at: clock()}))
			faults.DieAt(operation, after)
			table := delta.Table{Store: faults, Root: base.Root, Now: clock}
			c, err := prepare(t.Context(), table)
			if err == nil {
				_, err = table.Commit(t.Context(), 1, *c)
			}
			if err == nil { // beyond the last operation that anything depends on
				require.Greater(t, operation, 8, "the count must be wrong")
				if faults.Count() < operation {
					return
				}
			} else {
				require.ErrorIs(t, err, objecttest.ErrDead)
			}
			faults.Reset()
			if c == nil {
				c, err = prepare(t.Context(), table)
				require.NoError(t, err)
			}
			version, err := table.Commit(t.Context(), 1, *c)
			require.NoError(t, err)
			require.EqualValues(t, 2, version)
			snap, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.Equal(t, []value.Row{{int64(0), "p0"}, {int64(1), "p1"}, {int64(2), "new"}, {int64(3), "p3"}}, scan(t.Context(), t, snap, nil))
			require.Equal(t, map[delta.ChangeType]int{delta.RowBefore: 1, delta.RowAfter: 1}, deltatest.RequireFeed(t, table, 2))
		}
	}
}
