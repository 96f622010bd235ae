package layout_test

import (
	"encoding/json"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/layout"
	"varve/internal/object"
	"varve/internal/value"
)

// The columns of the tests' table: a key, a text, whether the row is closed; and the hidden one.
const (
	atID = iota
	atName
	atClosed
	atSeq
)

func clock() time.Time { return time.Date(2026, 9, 14, 3, 30, 0, 0, time.UTC) }

func columns() value.Schema {
	return value.Schema{
		{Name: "id", Type: value.Type{Kind: value.Long}, Nullable: true},
		{Name: "name", Type: value.Type{Kind: value.StringKind}, Nullable: true},
		{Name: "closed", Type: value.Type{Kind: value.Boolean}, Nullable: true},
	}
}

func hidden() value.Schema {
	return value.Schema{{Name: "_varve_seq", Type: value.Type{Kind: value.Long}, Nullable: true}}
}

// closed is a Split by the row's own word.
func closed(row value.Row) int {
	if row[atClosed] == true {
		return 1
	}
	return 0
}

// newTable makes an empty table.
func newTable(t *testing.T, store object.Store, partition ...string) delta.Table {
	t.Helper()
	table := delta.At(store, "silver/people")
	table.Now = clock
	m := delta.NewMetadata(columns(), partition, nil)
	_, err := table.Commit(t.Context(), -1, delta.Commit{ID: uuid.NewString(), Operation: "CREATE TABLE", Metadata: &m})
	require.NoError(t, err)
	return table
}

// put appends a file of rows.
func put(t *testing.T, table delta.Table, rows ...value.Row) {
	t.Helper()
	require.NoError(t, tryPut(t, table, nil, rows...))
}

// tryPut is put with partition values and the error.
func tryPut(t *testing.T, table delta.Table, partition map[string]value.Value, rows ...value.Row) error {
	t.Helper()
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: columns(), Hidden: hidden(), Partition: partition}, each(rows))
	if err != nil {
		return err
	}
	snap, err := table.Latest(t.Context())
	if err != nil {
		return err
	}
	_, err = table.Commit(t.Context(), snap.Version(), delta.Commit{
		ID: uuid.NewString(), Operation: "WRITE", Adds: []delta.Add{add}, BlindAppend: true,
	})
	return err
}

func each(rows []value.Row) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// person is a row.
func person(id int64, name string, isClosed bool) value.Row {
	return value.Row{id, name, isClosed, id * 10}
}

// latest reads the newest version.
func latest(t *testing.T, table delta.Table) *delta.Snapshot {
	t.Helper()
	snap, err := table.Latest(t.Context())
	require.NoError(t, err)
	return snap
}

// contents gives all rows with the hidden column as sorted texts.
func contents(t *testing.T, table delta.Table) []string {
	t.Helper()
	var out []string
	for row, err := range latest(t, table).Scan(t.Context(), hidden()) {
		require.NoError(t, err)
		out = append(out, value.KeyText(row))
	}
	slices.Sort(out)
	return out
}

// options are those of most tests.
func options() layout.Options { return layout.Options{Hidden: hidden(), Now: clock} }

// optimize calls Optimize, and checks that no row changed.
func optimize(t *testing.T, table delta.Table, o layout.Options) layout.Result {
	t.Helper()
	before := contents(t, table)
	r, err := layout.Optimize(t.Context(), table, o)
	require.NoError(t, err)
	require.Equal(t, before, contents(t, table))
	return r
}

// rangeOf gives the range of ids in a file by its statistics.
func rangeOf(t *testing.T, a delta.Add) [2]int64 {
	t.Helper()
	var stats struct {
		Min map[string]json.RawMessage `json:"minValues"`
		Max map[string]json.RawMessage `json:"maxValues"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.Stats), &stats))
	var out [2]int64
	require.NoError(t, json.Unmarshal(stats.Min["id"], &out[0]))
	require.NoError(t, json.Unmarshal(stats.Max["id"], &out[1]))
	return out
}
