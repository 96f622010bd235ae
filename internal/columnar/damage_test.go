package columnar_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/columnar"
	"varve/internal/value"
)

func sample(t require.TestingT) (value.Schema, []value.Row, []byte) {
	long, text := of(value.Long), of(value.StringKind)
	schema := value.Schema{
		{Name: "n", Type: long},
		nullable("s", text), nullable("d", decimalOf(30, 3)), nullable("f", of(value.Double)),
		nullable("l", arrayOf(structOf(nullable("a", long), nullable("b", text)))), nullable("m", mapOf(text, arrayOf(long))),
	}
	rows := make([]value.Row, 0, 100)
	for i := range int64(50) {
		item := value.Struct{{Name: "a", Value: i}, {Name: "b"}}
		rows = append(rows, value.Row{
			i, "text", decimal(-i, 3), float64(i), value.List{item, nil, item}, value.Map{{Key: "k", Value: value.List{i}}, {Key: "e", Value: value.List{}}},
		}, value.Row{i, nil, nil, nil, nil, nil})
	}
	file, _ := write(t, schema, rows, columnar.WriteOptions{RowGroupRows: 40})
	return schema, rows, file
}

// attempt reads what may be damaged: any error must be typed.
func attempt(t require.TestingT, file []byte, o columnar.ReadOptions) ([]value.Row, error) {
	f, err := columnar.OpenFile(bytes.NewReader(file), int64(len(file)))
	var rows []value.Row
	if err == nil {
		rows, err = collect(f.Rows(o))
	}
	if err == nil && o.Columns == nil {
		for i, field := range f.Schema() {
			requireIntegers(t, f, field, i, rows)
		}
	}
	if err != nil {
		var format *columnar.FormatError
		var typ *columnar.TypeError
		require.True(t, errors.As(err, &format) || errors.As(err, &typ), "%T: %v", err, err)
	}
	return rows, err
}

func TestGarbageIsRefused(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", "PAR1", "PAR1PAR1", "PAR1\x00\x00\x00\x00PAR1", "PAR1\xff\xff\xff\xffPAR1", "PAR1\x10\x00\x00\x00PAR1", "not a parquet file at all"} {
		_, err := attempt(t, []byte(file), columnar.ReadOptions{})
		require.Error(t, err, "%q", file)
	}
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	t.Parallel()
	_, _, file := sample(t)
	for size := range file {
		_, err := attempt(t, file[:size], columnar.ReadOptions{})
		require.Error(t, err, size)
		_, err = attempt(t, file[size+1:], columnar.ReadOptions{})
		require.Error(t, err, size)
	}
}

// Pages carry checksums, so damage to them is always found. The footer and page headers carry none: what is read of a
// file whose footer is damaged is only required not to crash.
func TestDamagedPagesNeverGiveOtherRows(t *testing.T) {
	t.Parallel()
	schema, rows, file := sample(t)
	want := canonical(rows)
	f := bytes.LastIndex(file, []byte("spark_schema"))
	require.Positive(t, f)
	random := rand.New(rand.NewPCG(1, 2))
	for at := 4; at < f-64; at += 1 + random.IntN(9) {
		damaged := bytes.Clone(file)
		damaged[at] ^= byte(1 << random.IntN(8))
		got, err := attempt(t, damaged, columnar.ReadOptions{Columns: schema})
		if err == nil {
			require.Equal(t, want, canonical(got), at)
		} else {
			require.Equal(t, want[:len(got)], canonical(got), at)
		}
	}
}

func TestDamagedFootersNeverCrash(t *testing.T) {
	t.Parallel()
	schema, _, file := sample(t)
	random := rand.New(rand.NewPCG(3, 4))
	for at := bytes.LastIndex(file, []byte("spark_schema")) - 16; at < len(file); at += 1 + random.IntN(4) {
		damaged := bytes.Clone(file)
		damaged[at] ^= byte(1 + random.IntN(255))
		_, err := attempt(t, damaged, columnar.ReadOptions{Columns: schema})
		_, own := attempt(t, damaged, columnar.ReadOptions{})
		_ = errors.Join(err, own) // either may succeed: some bytes of a footer tell nothing about rows
	}
}

type outage struct {
	inner *bytes.Reader
	left  int
	err   error
}

func (o *outage) ReadAt(b []byte, at int64) (int, error) {
	if o.left--; o.left < 0 {
		return 0, o.err
	}
	return o.inner.ReadAt(b, at)
}

func TestAnOutageIsNotTakenForDamage(t *testing.T) {
	t.Parallel()
	_, rows, file := sample(t)
	for left := range 200 {
		r := &outage{inner: bytes.NewReader(file), left: left, err: errors.New("no answer")}
		f, err := columnar.OpenFile(r, int64(len(file)))
		if err == nil {
			var got []value.Row
			if got, err = collect(f.Rows(columnar.ReadOptions{})); err == nil {
				require.Len(t, got, len(rows))
				return
			}
		}
		require.ErrorIs(t, err, r.err)
		require.NotErrorAs(t, err, new(*columnar.FormatError))
	}
	t.Fatal("the file was never read whole")
}

func TestReadingMayStopAnywhereAndStartAgain(t *testing.T) {
	t.Parallel()
	schema, rows, file := sample(t)
	f := open(t, file)
	for stop := range rows {
		n := 0
		for row, err := range f.Rows(columnar.ReadOptions{Columns: schema}) {
			require.NoError(t, err)
			require.Equal(t, canonical(rows[n:n+1]), canonical([]value.Row{row}))
			if n++; n > stop {
				break
			}
		}
		require.Equal(t, stop+1, n)
	}
}

func FuzzAnyFileIsReadOrRefused(f *testing.F) {
	_, _, file := sample(f)
	f.Add(file)
	f.Add([]byte("PAR1\x00\x00\x00\x00PAR1"))
	small, _ := filepath.Glob(filepath.Join(corpus, "*", "delta", "*.parquet"))
	for _, path := range small {
		if b, err := os.ReadFile(path); err == nil && len(b) < 4000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		_, err := attempt(t, file, columnar.ReadOptions{})
		_ = err // any typed error will do
	})
}
