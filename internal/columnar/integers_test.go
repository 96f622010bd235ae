package columnar_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"varve/internal/columnar"
	"varve/internal/value"
)

// asInteger gives the number that Integers has for a value.
func asInteger(v value.Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case value.Date:
		return int64(v), true
	case value.Timestamp:
		return int64(v), true
	case value.LocalTimestamp:
		return int64(v), true
	default:
		return 0, false
	}
}

// requireIntegers reads a column by its pages and holds it against the column's values in rows. It tells whether the file
// has the column as whole numbers.
func requireIntegers(t require.TestingT, f *columnar.File, field value.Field, column int, rows []value.Row) bool {
	at := 0
	for part, err := range f.Integers(field, "") {
		if typ := (*columnar.TypeError)(nil); errors.As(err, &typ) {
			return false
		}
		require.NoError(t, err)
		require.LessOrEqual(t, at+len(part.Values), len(rows))
		for i, n := range part.Values {
			want, ok := asInteger(rows[at][column])
			if null := part.Null != nil && part.Null[i]; n != want || null == ok {
				require.FailNow(t, "another number", "row %d is %d (null %t), not %d (null %t)", at, n, null, want, !ok)
			}
			at++
		}
	}
	require.Equal(t, len(rows), at)
	return true
}

func TestIntegersAreThoseOfTheRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schema := value.Schema{
			{Name: "required", Type: of(value.Long)},
			nullable("int", of(value.Integer)), nullable("day", of(value.DateKind)),
			nullable("at", of(value.TimestampKind)), nullable("local", of(value.TimestampNTZ)), nullable("text", of(value.StringKind)),
		}
		few := rapid.Bool().Draw(t, "few values") // a dictionary pays
		rows := make([]value.Row, rapid.IntRange(0, 1000).Draw(t, "rows"))
		seed := rapid.Int64().Draw(t, "seed")
		share := rapid.Int64Range(1, 9).Draw(t, "one in so many is null")
		for i := range rows {
			seed = seed*6364136223846793005 + 1442695040888963407
			n := seed >> 33
			if few {
				n %= 7
			}
			rows[i] = value.Row{n, n, value.Date(n), value.Timestamp(n), value.LocalTimestamp(n), "x"}
			for j := 1; j < len(schema); j++ {
				if (seed>>8+int64(j))%share == 0 {
					rows[i][j] = nil
				}
			}
		}
		groups := rapid.IntRange(1, 10).Draw(t, "row groups")
		file, _ := write(t, schema, rows, columnar.WriteOptions{RowGroupRows: len(rows)/groups + 1})
		f := open(t, file)
		for j, field := range schema[:5] {
			require.True(t, requireIntegers(t, f, field, j, rows), field.Name)
		}
		require.False(t, requireIntegers(t, f, schema[5], 5, rows))
		wider := value.Field{Name: "int", Type: of(value.Long), Nullable: true}
		require.True(t, requireIntegers(t, f, wider, 1, rows))
		for _, row := range rows {
			row[0] = nil
		}
		require.True(t, requireIntegers(t, f, nullable("lacking", of(value.Long)), 0, rows))
	})
}

// TestIntegersOfOtherWritersAreThoseOfTheRows goes through the files of the corpus.
func TestIntegersOfOtherWritersAreThoseOfTheRows(t *testing.T) {
	t.Parallel()
	needCorpus(t)
	columns := 0
	require.NoError(t, filepath.WalkDir(corpus, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".parquet") || strings.Contains(path, "_delta_log") {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil || len(body) > 1<<20 {
			return err
		}
		columns += integersOf(t, body)
		return nil
	}))
	require.Greater(t, columns, 100)
}

// integersOf compares what it can of a file and counts the columns; a file that is damaged on purpose has none.
func integersOf(t *testing.T, body []byte) int {
	t.Helper()
	f, err := columnar.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return 0
	}
	rows, err := collect(f.Rows(columnar.ReadOptions{}))
	if err != nil {
		return 0
	}
	columns := 0
	for i, field := range f.Schema() {
		if requireIntegers(t, f, field, i, rows) {
			columns++
		}
	}
	return columns
}
