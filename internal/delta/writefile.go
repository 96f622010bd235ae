package delta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/google/uuid"

	"varve/internal/columnar"
	"varve/internal/value"
)

// FileOptions describes a data file to write.
type FileOptions struct {
	// Schema is the table's columns, partition columns among them.
	Schema value.Schema
	// Hidden is columns that the file has and the table has not. They have no stats.
	Hidden value.Schema
	// Partition has the value of each partition column, which is not stored in the file. Default an unpartitioned table.
	Partition map[string]value.Value
	// Config is the table's properties: they say which columns have stats.
	Config map[string]string
	// Prefix is a folder of the table that the file goes into. Default the table's root.
	Prefix string
}

// WriteFile writes rows into a new data file and gives the action that makes it part of the table. A row has a value for
// each column of Schema, then of Hidden; its values of partition columns are those of the partition. Until the action is
// committed nobody sees the file.
func (t Table) WriteFile(ctx context.Context, o FileOptions, rows iter.Seq2[value.Row, error]) (Add, error) {
	name, w, stats, size, err := t.writeFile(ctx, o, o.Prefix, "part", rows)
	if err != nil {
		return Add{}, err
	}
	return Add{
		Path: encodePath(name), PartitionValues: w.partition, Size: size, ModificationTime: t.now().UnixMilli(),
		DataChange: true, Stats: statsJSON(w.stored, stats, o.Config),
	}, nil
}

// writeFile writes rows into a new file below a folder and gives its path in the table.
func (t Table) writeFile(ctx context.Context, o FileOptions, folder, kind string, rows iter.Seq2[value.Row, error]) (
	name string, w fileWriter, stats columnar.Stats, size int64, err error,
) {
	if w, err = newFileWriter(o); err != nil {
		return "", w, stats, 0, fmt.Errorf("delta table %q: %w", t.Root, err)
	}
	var body bytes.Buffer
	stats, err = columnar.Write(&body, w.stored, w.check(rows), columnar.WriteOptions{
		Hidden: o.Hidden, StatsColumns: statsColumns(w.stored, o.Config),
	})
	if err != nil {
		return "", w, stats, 0, fmt.Errorf("delta table %q: write a file: %w", t.Root, err)
	}
	name = join(folder, w.folder, kind+"-00000-"+uuid.NewString()+".c000.zstd.parquet")
	if err := t.Store.PutIfAbsent(ctx, join(t.Root, name), body.Bytes()); err != nil {
		return "", w, stats, 0, fmt.Errorf("delta table %q: write %q: %w", t.Root, name, err)
	}
	return name, w, stats, int64(body.Len()), nil
}

// fileWriter is what a file's rows are checked against and cut down by.
type fileWriter struct {
	o         FileOptions
	stored    value.Schema
	partition map[string]*string
	folder    string
}

// newFileWriter checks options.
func newFileWriter(o FileOptions) (fileWriter, error) {
	if strings.ContainsAny(o.Prefix, ":\\") || slices.Contains(strings.Split(o.Prefix, "/"), "..") ||
		strings.HasPrefix(o.Prefix, "/") || strings.HasPrefix(o.Prefix, "_") {
		return fileWriter{}, fmt.Errorf("no folder for data files: %q", o.Prefix)
	}
	w := fileWriter{o: o, partition: map[string]*string{}}
	var folders []string
	for _, f := range o.Schema {
		v, ok := o.Partition[f.Name]
		if !ok {
			w.stored = append(w.stored, f)
			continue
		}
		text, err := formatPartition(f.Type, v)
		if err != nil {
			return fileWriter{}, fmt.Errorf("partition column %q: %w", f.Name, err)
		}
		w.partition[f.Name] = text
		folder := hiveEscape(f.Name) + "=__HIVE_DEFAULT_PARTITION__"
		if text != nil {
			folder = hiveEscape(f.Name) + "=" + hiveEscape(*text)
		}
		folders = append(folders, folder)
	}
	if len(w.partition) != len(o.Partition) {
		return fileWriter{}, errors.New("a partition column is not in the schema")
	}
	if len(w.stored) == 0 {
		return fileWriter{}, errors.New("no column that is not a partition column")
	}
	for _, f := range o.Hidden {
		if o.Schema.Index(f.Name) >= 0 {
			return fileWriter{}, fmt.Errorf("hidden column %q is a column of the table", f.Name)
		}
	}
	w.folder = join("", folders...)
	return w, nil
}

// check gives the stored part of rows, once they are found right.
func (w fileWriter) check(rows iter.Seq2[value.Row, error]) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for row, err := range rows {
			if err == nil {
				row, err = w.row(row)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// row gives the stored part of one row.
func (w fileWriter) row(row value.Row) (value.Row, error) {
	if len(row) != len(w.o.Schema)+len(w.o.Hidden) {
		return nil, fmt.Errorf("a row of %d values, not %d", len(row), len(w.o.Schema)+len(w.o.Hidden))
	}
	for i, f := range w.o.Schema {
		if fixed, ok := w.o.Partition[f.Name]; ok {
			if !value.Equal(fixed, row[i]) {
				return nil, fmt.Errorf("a row of another partition: column %q", f.Name)
			}
		}
		if name, ok := nullable(f, row[i]); !ok {
			return nil, fmt.Errorf("null in column %q, which cannot be null", name)
		}
	}
	if len(w.partition) == 0 {
		return row, nil
	}
	stored := make(value.Row, 0, len(row))
	for i, v := range row {
		if i < len(w.o.Schema) {
			if _, ok := w.o.Partition[w.o.Schema[i].Name]; ok {
				continue
			}
		}
		stored = append(stored, v)
	}
	return stored, nil
}

// nullable tells whether a value is null only where its field, or a field of its structs, may be; otherwise which is not.
func nullable(f value.Field, v value.Value) (string, bool) {
	if v == nil {
		return f.Name, f.Nullable
	}
	members, ok := v.(value.Struct)
	if !ok {
		return "", true
	}
	for i, inner := range f.Type.Fields {
		var member value.Value
		if i < len(members) {
			member = members[i].Value
		}
		if name, ok := nullable(inner, member); !ok {
			return f.Name + "." + name, false
		}
	}
	return "", true
}
