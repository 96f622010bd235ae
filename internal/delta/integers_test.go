package delta_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/value"
)

// TestIntegersAreThoseOfTheLiveRows compares the fast reading of a column with the rows, on the tables of the corpus:
// deletion vectors, partitions, column mapping, widened types and files of all writers among them.
func TestIntegersAreThoseOfTheLiveRows(t *testing.T) {
	t.Parallel()
	columns := 0
	for _, dir := range corpusTables(t) {
		s, err := delta.At(load(t, dir+"/delta"), "").Latest(t.Context())
		if err != nil {
			continue // refused, or expected to fail
		}
		for _, field := range s.Schema() {
			if !slices.Contains([]value.Kind{
				value.Byte, value.Short, value.Integer, value.Long, value.DateKind, value.TimestampKind, value.TimestampNTZ,
			}, field.Type.Kind) {
				continue
			}
			for _, a := range s.Files() {
				var want, got []value.Value
				for row, err := range s.ReadColumns(t.Context(), a, value.Schema{field}, nil) {
					require.NoError(t, err)
					want = append(want, plain(row[0]))
				}
				for part, err := range s.ReadIntegers(t.Context(), a, field) {
					require.NoError(t, err)
					for i, n := range part.Values {
						if part.Null != nil && part.Null[i] {
							got = append(got, nil)
						} else {
							got = append(got, n)
						}
					}
				}
				require.Equal(t, want, got, "%s: %s of %s", dir, field.Name, a.Path)
				columns++
			}
		}
	}
	require.Greater(t, columns, 100)
}

// plain is the number that stands for a value.
func plain(v value.Value) value.Value {
	switch v := v.(type) {
	case value.Date:
		return int64(v)
	case value.Timestamp:
		return int64(v)
	case value.LocalTimestamp:
		return int64(v)
	default:
		return v
	}
}
