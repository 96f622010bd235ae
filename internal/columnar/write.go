package columnar

import (
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"varve/internal/value"
)

// WriteOptions say how a file is written.
type WriteOptions struct {
	// Hidden are columns that follow the schema's in the file, and whose values follow the schema's in the rows. Default none.
	Hidden value.Schema
	// Codec is none, snappy, gzip, lz4_raw or zstd. Default zstd.
	Codec string
	// RowGroupRows is the most rows of a row group. Default 131072.
	RowGroupRows int
	// StatsColumns are the columns, by their names in the schema, that have statistics; a struct's name stands for all its
	// leaves. Default the first 32 leaves of the schema.
	StatsColumns []string
}

// The limits within which a row group and its pages stay, so that memory does not grow with the file.
const (
	defaultRowGroupRows = 128 << 10
	maxRowGroupBytes    = 64 << 20
	maxDictionaryBytes  = 1 << 20
	pageBytes           = 256 << 10
	rowsAtOnce          = 64
)

// Write writes the rows as one Parquet file and gives the statistics of their values. A row holds a value for each of the
// schema's columns, then one for each hidden column. What a column's type does not hold exactly is a *TypeError.
func Write(w io.Writer, schema value.Schema, rows iter.Seq2[value.Row, error], o WriteOptions) (stats Stats, err error) {
	codec, err := codecOf(o.Codec)
	if err != nil {
		return Stats{}, err
	}
	fields := slices.Concat(schema, o.Hidden)
	root, l := &column{}, &layout{}
	node, err := l.group(root, fields, nil)
	if err != nil {
		return Stats{}, err
	}
	chosen := &statsOf{columns: o.StatsColumns}
	chosen.choose(root, fields, "", len(schema))

	defer func() {
		if p := recover(); p != nil {
			stats, err = Stats{}, fmt.Errorf("write parquet: %w", recovered(p))
		}
	}()
	out, err := newWriter(w, node, l, codec)
	if err != nil {
		return Stats{}, err
	}
	limit := int64(o.RowGroupRows)
	if limit <= 0 {
		limit = defaultRowGroupRows
	}
	total, err := out.writeRows(root, fields, rows, limit)
	if err != nil {
		return Stats{}, err
	}
	if err := out.close(); err != nil {
		return Stats{}, fmt.Errorf("write parquet: %w", err)
	}
	return chosen.result(total), nil
}

func codecOf(name string) (compress.Codec, error) {
	switch name {
	case "", "zstd":
		return &parquet.Zstd, nil
	case "snappy":
		return &parquet.Snappy, nil
	case "gzip":
		return &parquet.Gzip, nil
	case "lz4_raw":
		return &parquet.Lz4Raw, nil
	case "none", "uncompressed":
		return &parquet.Uncompressed, nil
	default:
		return nil, fmt.Errorf("compression codec %q is not known: use none, snappy, gzip, lz4_raw or zstd", name)
	}
}

// writer is one file being written.
type writer struct {
	tail    *tail
	parquet *parquet.Writer //nolint:staticcheck // its successor wants Go types for rows, and refuses names that Delta allows
	columns []*parquet.ColumnWriter
	values  shredder
}

func newWriter(w io.Writer, node parquet.Node, l *layout, codec compress.Codec) (*writer, error) {
	config, err := parquet.NewWriterConfig(
		parquet.NewSchema("spark_schema", node),
		parquet.Compression(codec),
		parquet.CreatedBy("varve", "1", "0"),
		parquet.DataPageVersion(1), // delta.parquet.format.version 1.0.0
		parquet.DictionaryMaxBytes(maxDictionaryBytes),
		parquet.PageBufferSize(pageBytes),
	)
	if err != nil {
		return nil, fmt.Errorf("write parquet: %w", err)
	}
	config.SkipPageBounds = l.unbounded
	out := &writer{tail: &tail{out: w}}
	out.parquet = parquet.NewWriter(out.tail, config)
	out.columns = out.parquet.ColumnWriters()
	out.values.columns = make([][]parquet.Value, l.leaves)
	return out, nil
}

func (w *writer) writeRows(root *column, fields []value.Field, rows iter.Seq2[value.Row, error], limit int64) (int64, error) {
	var total, inGroup, pending int64
	for row, err := range rows {
		if err != nil {
			return 0, err
		}
		if len(row) != len(fields) {
			return 0, fmt.Errorf("write parquet: a row has %d values where there are %d columns", len(row), len(fields))
		}
		if err := w.values.row(root, row); err != nil {
			return 0, fmt.Errorf("write parquet: %w", err)
		}
		total, inGroup, pending = total+1, inGroup+1, pending+1
		full := inGroup >= limit || w.values.size >= maxRowGroupBytes
		if full || pending >= rowsAtOnce {
			if err := w.flush(); err != nil {
				return 0, err
			}
			pending = 0
		}
		if full {
			if err := w.parquet.Flush(); err != nil {
				return 0, fmt.Errorf("write parquet: %w", err)
			}
			inGroup, w.values.size = 0, 0
		}
	}
	return total, w.flush()
}

// flush hands the values taken from whole rows to the library.
func (w *writer) flush() error {
	for i, values := range w.values.columns {
		if len(values) == 0 {
			continue
		}
		if _, err := w.columns[i].WriteRowValues(values); err != nil {
			return fmt.Errorf("write parquet: %w", err)
		}
		clear(values)
		w.values.columns[i] = values[:0]
	}
	return nil
}

// close writes the last row group, then the footer.
func (w *writer) close() error {
	if err := w.parquet.Flush(); err != nil {
		return err
	}
	w.tail.hold = true
	if err := w.parquet.Close(); err != nil {
		return err
	}
	return w.tail.finish()
}
