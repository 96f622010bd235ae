package sql

import (
	"os"
	"path/filepath"
	"testing"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"

	"varve/internal/value"
)

func TestViewFillsConstantsAndMissingColumns(t *testing.T) {
	t.Parallel()
	db, err := Open(Options{Dir: t.TempDir(), Threads: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	odd := filepath.Join(t.TempDir(), "day=[1]*", "part'1.parquet")
	plain := filepath.Join(t.TempDir(), "plain.parquet")
	write := func(path, query string) {
		require.NoError(t, db.raw(t.Context(), func(c *duckdb.Conn) error {
			return exec(t.Context(), c, "COPY ("+query+") TO "+Text(path)+" (FORMAT parquet)")
		}))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(odd), 0o750))
	write(odd, `SELECT 1::BIGINT AS id, 7::BIGINT AS _varve_seq, {'a': 1} AS s`)
	write(plain, `SELECT 2::BIGINT AS id, 'x' AS name, TIMESTAMPTZ '2026-09-14 03:30:00+02' AS "at"`)
	dec := value.Type{Kind: value.DecimalKind, Precision: 9, Scale: 2}
	st := value.Type{Kind: value.StructKind, Fields: []value.Field{
		{Name: "b", Type: value.Type{Kind: value.StringKind}, Nullable: true}, {Name: "a", Type: value.Type{Kind: value.Long}, Nullable: true},
	}}
	schema := value.Schema{
		{Name: "id", Type: value.Type{Kind: value.Long}, Nullable: true},
		{Name: "name", Type: value.Type{Kind: value.StringKind}, Nullable: true},
		{Name: "day", Type: value.Type{Kind: value.DateKind}, Nullable: true},
		{Name: "at", Type: value.Type{Kind: value.TimestampKind}, Nullable: true},
		{Name: "amount", Type: dec, Nullable: true},
		{Name: "s", Type: st, Nullable: true},
	}
	amount := value.Decimal{Unscaled: tenTo(3), Scale: 2}
	parts := []Part{
		{Path: odd, Constants: map[string]value.Value{"day": value.Date(20710), "name": "it's", "at": value.Timestamp(-5), "amount": amount}},
		{Path: plain, Constants: map[string]value.Value{"day": nil}},
	}
	require.NoError(t, db.View(t.Context(), "silver.t", parts, schema))
	require.NoError(t, db.View(t.Context(), "silver.t", parts, schema))
	got, err := db.Query(t.Context(), `SELECT * FROM silver.t ORDER BY id`)
	require.NoError(t, err)
	require.Equal(t, schema, got.Schema)
	require.Equal(t, []value.Row{
		{int64(1), "it's", value.Date(20710), value.Timestamp(-5), amount, value.Struct{{Name: "b"}, {Name: "a", Value: int64(1)}}},
		{int64(2), "x", nil, value.Timestamp(1789349400000000), nil, nil},
	}, got.Rows)
}
