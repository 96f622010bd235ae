package delta_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object/filestore"
	"varve/internal/value"
)

// benchTables is the variable that names the folder where the benchmarks' tables lie, so that others may be measured on them.
const benchTables = "VARVE_BENCH_TABLES"

// benchTable opens the table of that name, made by build where it is not there yet.
func benchTable(b *testing.B, name string, build func(delta.Table)) delta.Table {
	b.Helper()
	dir := os.Getenv(benchTables)
	if dir == "" {
		dir = b.TempDir()
	}
	store, err := filestore.Open(dir)
	require.NoError(b, err)
	table := delta.At(store, name)
	if _, err := table.Latest(b.Context()); errors.Is(err, delta.ErrNoTable) {
		build(table)
	}
	return table
}

// BenchmarkOpen opens a table of 1,000 commits and 100,000 files, of which a checkpoint has all but the last 5,000.
func BenchmarkOpen(b *testing.B) {
	const commits, files, checkpoint = 1000, 100, 950
	table := benchTable(b, "many", func(table delta.Table) {
		metadata := delta.NewMetadata(people(), nil, nil)
		_, err := table.Commit(b.Context(), -1, delta.Commit{ID: "create", Operation: "CREATE TABLE", Metadata: &metadata})
		require.NoError(b, err)
		folder, ok := table.Store.(interface{ LocalPath(string) (string, bool) })
		require.True(b, ok)
		log, ok := folder.LocalPath("many/_delta_log")
		require.True(b, ok)
		for v := 1; v <= commits; v++ {
			var body bytes.Buffer
			fmt.Fprintf(&body, `{"commitInfo":{"timestamp":%d,"operation":"WRITE"}}`+"\n", v)
			for f := range files {
				n := v*files + f
				fmt.Fprintf(&body, `{"add":{"path":"part-%05d-%s.c000.zstd.parquet","partitionValues":{},"size":%d,"modificationTime":%d,"dataChange":true,`+
					`"stats":"{\"numRecords\":%d,\"minValues\":{\"id\":%d,\"name\":\"a\"},\"maxValues\":{\"id\":%d,\"name\":\"z\"},\"nullCount\":{\"id\":0,\"name\":0}}"}}`+"\n",
					f, uuid.NewString(), n, v, n, n, n+1)
			}
			require.NoError(b, os.WriteFile(filepath.Join(log, fmt.Sprintf("%020d.json", v)), body.Bytes(), 0o600))
		}
		require.NoError(b, table.Checkpoint(b.Context(), checkpoint))
	})
	for b.Loop() {
		s, err := table.Latest(b.Context())
		require.NoError(b, err)
		require.Len(b, s.Files(), commits*files)
	}
}

// BenchmarkScan reads one int64 column of 10 million rows.
func BenchmarkScan(b *testing.B) {
	const rows, files = 10_000_000, 8
	schema := value.Schema{{Name: "id", Type: kind(value.Long)}, {Name: "name", Type: kind(value.StringKind), Nullable: true}}
	table := benchTable(b, "long", func(table delta.Table) {
		metadata := delta.NewMetadata(schema, nil, nil)
		c := delta.Commit{ID: "create", Operation: "CREATE TABLE AS SELECT", Metadata: &metadata}
		for f := range int64(files) {
			add, err := table.WriteFile(b.Context(), delta.FileOptions{Schema: schema}, func(yield func(value.Row, error) bool) {
				for id := f * rows / files; id < (f+1)*rows/files; id++ {
					if !yield(value.Row{id, "somebody"}, nil) {
						return
					}
				}
			})
			require.NoError(b, err)
			c.Adds = append(c.Adds, add)
		}
		_, err := table.Commit(b.Context(), -1, c)
		require.NoError(b, err)
	})
	s, err := table.Latest(b.Context())
	require.NoError(b, err)
	for b.Loop() {
		n, sum := 0, int64(0)
		for _, a := range s.Files() {
			for part, err := range s.ReadIntegers(b.Context(), a, schema[0]) {
				require.NoError(b, err)
				n += len(part.Values)
				for _, id := range part.Values {
					sum += id
				}
			}
		}
		require.Equal(b, rows, n)
		require.EqualValues(b, rows*(rows-1)/2, sum)
	}
}
