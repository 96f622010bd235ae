package delta_test

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/value"
)

// clock is a clock that stands still.
func clock() time.Time { return time.Date(2026, 9, 14, 3, 30, 0, 123456789, time.UTC) }

// people is a plain schema.
func people() value.Schema {
	return value.Schema{
		{Name: "id", Type: value.Type{Kind: value.Long}, Nullable: true},
		{Name: "name", Type: value.Type{Kind: value.StringKind}, Nullable: true},
	}
}

// rowsOf gives rows one by one.
func rowsOf(rows ...value.Row) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// newTable makes an empty table in a fresh store.
func newTable(t *testing.T, metadata delta.Metadata) delta.Table {
	t.Helper()
	table := delta.At(memstore.New(), "silver/people")
	table.Now = clock
	version, err := table.Commit(t.Context(), -1, delta.Commit{
		ID: uuid.NewString(), Operation: "CREATE TABLE", Metadata: &metadata,
	})
	require.NoError(t, err)
	require.Zero(t, version)
	return table
}

// newPeople makes an empty table of people.
func newPeople(t *testing.T, config map[string]string) delta.Table {
	t.Helper()
	return newTable(t, delta.NewMetadata(people(), nil, config))
}

// write writes a file of people.
func write(t *testing.T, table delta.Table, rows ...value.Row) delta.Add {
	t.Helper()
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: people()}, rowsOf(rows...))
	require.NoError(t, err)
	return add
}

// appendRow commits one more person.
func appendRow(t *testing.T, table delta.Table, read int64, row value.Row) (int64, delta.Add) {
	t.Helper()
	add := write(t, table, row)
	version, err := table.Commit(t.Context(), read, delta.Commit{
		ID: uuid.NewString(), Operation: "WRITE", Adds: []delta.Add{add}, BlindAppend: true,
	})
	require.NoError(t, err)
	return version, add
}

// scan reads all rows, ordered.
func scan(ctx context.Context, t *testing.T, s *delta.Snapshot, hidden value.Schema) []value.Row {
	t.Helper()
	var rows []value.Row
	for row, err := range s.Scan(ctx, hidden) {
		require.NoError(t, err)
		rows = append(rows, slices.Clone(row))
	}
	slices.SortFunc(rows, func(a, b value.Row) int { return value.Compare(a[0], b[0]) })
	return rows
}

// load copies a folder into a fresh store.
func load(t *testing.T, folder string) object.Store {
	t.Helper()
	store := memstore.New()
	require.NoError(t, filepath.WalkDir(folder, func(p string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		key, err := filepath.Rel(folder, p)
		if err != nil {
			return err
		}
		return store.Put(t.Context(), filepath.ToSlash(key), body)
	}))
	return store
}
