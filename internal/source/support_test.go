package source_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/source"
	"varve/internal/value"
	"varve/schemas"
)

const day = "2026-09-14"

// clock gives one moment, later than what the stores of the tests were written at.
func clock() time.Time { return time.Date(2099, 9, 15, 3, 30, 0, 0, time.UTC) }

func contract() schemas.Contract {
	return schemas.Contract{
		Dataset: "customer", Source: schemas.Source{Path: "customer/{day}/*.json", Format: schemas.FormatJSON}, MaxInvalidShare: 1,
	}
}

func csvContract() schemas.Contract {
	c := contract()
	c.Source = schemas.Source{
		Path: "customer/{day}/*.csv", Format: schemas.FormatCSV, CSV: schemas.Dialect{Delimiter: ",", Quote: `"`, Header: true},
	}
	return c
}

type world struct{ warehouse, landing object.Store }

func newWorld() world { return world{warehouse: memstore.New(), landing: memstore.New()} }

func (w world) put(t *testing.T, key, body string) {
	t.Helper()
	require.NoError(t, w.landing.Put(t.Context(), key, []byte(body)))
}

func (w world) claim(t *testing.T, c schemas.Contract) []source.Batch {
	t.Helper()
	got, err := source.Claim(t.Context(), w.warehouse, w.landing, c, day, clock)
	require.NoError(t, err)
	return got
}

func (w world) land(t *testing.T, c schemas.Contract) source.Landed {
	t.Helper()
	got, err := source.Land(t.Context(), w.warehouse, w.landing, c, clock)
	require.NoError(t, err)
	return got
}

// bronze gives the rows of bronze: batch, file, row, and the record as text.
func (w world) bronze(ctx context.Context, t *testing.T) [][4]any {
	t.Helper()
	snap, err := delta.At(w.warehouse, "bronze/customer").Latest(ctx)
	require.NoError(t, err)
	var rows [][4]any
	for row, err := range snap.Scan(ctx, nil) {
		require.NoError(t, err)
		record := row[5]
		if record == nil {
			record = row[6]
		}
		require.Equal(t, value.Date(20710), row[3])
		require.Equal(t, value.Timestamp(clock().UnixMicro()), row[4])
		rows = append(rows, [4]any{row[0], row[1], row[2], record})
	}
	return rows
}

func numbers(batches []source.Batch) []int64 {
	out := make([]int64, 0, len(batches))
	for _, b := range batches {
		out = append(out, b.Number)
	}
	return out
}

func states(t *testing.T, w world) map[int64]source.State {
	t.Helper()
	all, err := source.Batches(t.Context(), w.warehouse, "customer")
	require.NoError(t, err)
	out := map[int64]source.State{}
	for _, s := range all {
		out[s.Batch.Number] = s.State
	}
	return out
}
