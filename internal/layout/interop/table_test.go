package interop_test

import (
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/layout"
	"varve/internal/object/filestore"
	"varve/internal/value"
)

// sequence is the hidden column that varve's tables have.
const sequence = "_varve_seq"

// hidden is the columns that data files have and the table has not.
func hidden() value.Schema {
	return value.Schema{{Name: sequence, Type: value.Type{Kind: value.Long}, Nullable: true}}
}

// table is a table in a folder, and the rows that it must have: what its writers put in, whatever readers say.
type table struct {
	delta.Table

	t *testing.T
	// path is the folder that the engines are told of.
	path   string
	hidden value.Schema
	// versions are what each version must be, from version 0 on.
	versions []version
	changes  []change
	written  int64 // rows so far, to number them
}

// version is what a version must be.
type version struct {
	schema    value.Schema
	rows      []value.Row
	operation string // empty where the writer is not varve
}

// change is a row that a version's change feed must have.
type change struct {
	version int64
	kind    string
	row     value.Row
}

// The kinds of a change.
const (
	inserted  = "insert"
	deleted   = "delete"
	preimage  = "update_preimage"
	postimage = "update_postimage"
)

// newTable makes an empty table. A protocol of nil is the least that does.
func newTable(t *testing.T, m delta.Metadata, p *delta.Protocol, hidden value.Schema) *table {
	t.Helper()
	out := noTable(t)
	out.hidden = hidden
	out.commit("CREATE TABLE", m.Schema, nil, delta.Commit{Metadata: &m, Protocol: p})
	return out
}

// noTable is a folder where a table is to be.
func noTable(t *testing.T) *table {
	t.Helper()
	root := t.TempDir()
	store, err := filestore.Open(root)
	require.NoError(t, err)
	return &table{Table: delta.At(store, "t"), t: t, path: filepath.Join(root, "t")}
}

// at is the newest version that there must be, -1 for none.
func (w *table) at() int64 { return int64(len(w.versions)) - 1 }

// now is what the newest version must be.
func (w *table) now() version {
	if len(w.versions) == 0 {
		return version{}
	}
	return w.versions[len(w.versions)-1]
}

// latest reads the newest version.
func (w *table) latest() *delta.Snapshot {
	w.t.Helper()
	s, err := w.Latest(w.t.Context())
	require.NoError(w.t, err)
	return s
}

// commit makes a version of varve's, which must have those rows.
func (w *table) commit(operation string, schema value.Schema, rows []value.Row, c delta.Commit) {
	w.t.Helper()
	c.ID, c.Operation = uuid.NewString(), operation
	made, err := w.Commit(w.t.Context(), w.at(), c)
	require.NoError(w.t, err)
	w.versions = append(w.versions, version{schema: schema, rows: rows, operation: operation})
	require.Equal(w.t, w.at(), made)
}

// foreign says that another engine made versions, of which the last must have those rows. Versions in between are not
// looked at.
func (w *table) foreign(schema value.Schema, rows []value.Row) {
	w.t.Helper()
	newest := w.latest().Version()
	require.Greater(w.t, newest, w.at(), "the other engine made no version")
	for w.at() < newest {
		w.versions = append(w.versions, version{})
	}
	w.versions[newest] = version{schema: schema, rows: rows}
}

// insert appends rows, a file for each partition.
func (w *table) insert(rows ...value.Row) {
	w.t.Helper()
	adds := w.write(rows)
	w.commit("WRITE", w.now().schema, slices.Concat(w.now().rows, rows), delta.Commit{
		Adds: adds, BlindAppend: true, Parameters: map[string]any{"mode": "Append", "partitionBy": []string{}},
	})
	for _, row := range rows {
		w.changes = append(w.changes, change{w.at(), inserted, row})
	}
}

// write writes rows into files, one for each partition, with a number of its own in the hidden column of each row.
func (w *table) write(rows []value.Row) []delta.Add {
	w.t.Helper()
	m := w.latest().Metadata()
	partitions := map[string][]value.Row{}
	for _, row := range rows {
		key := make(value.Row, len(m.PartitionColumns))
		for i, name := range m.PartitionColumns {
			key[i] = row[m.Schema.Index(name)]
		}
		w.written++
		full := slices.Clone(row)
		for range w.hidden {
			full = append(full, w.written)
		}
		partitions[value.KeyText(key)] = append(partitions[value.KeyText(key)], full)
	}
	adds := make([]delta.Add, 0, len(partitions))
	for _, key := range slices.Sorted(maps.Keys(partitions)) {
		o := delta.FileOptions{Schema: m.Schema, Hidden: w.hidden, Config: m.Configuration}
		for _, name := range m.PartitionColumns {
			if o.Partition == nil {
				o.Partition = map[string]value.Value{}
			}
			o.Partition[name] = partitions[key][0][m.Schema.Index(name)]
		}
		add, err := w.WriteFile(w.t.Context(), o, each(partitions[key]))
		require.NoError(w.t, err)
		adds = append(adds, add)
	}
	return adds
}

// rewrite replaces the files whose rows change gives otherwise: a row becomes the rows that it gives. Of a row that becomes
// one, the change feed has both images; of others it has what goes and what comes.
func (w *table) rewrite(operation string, change func(value.Row) []value.Row) {
	w.t.Helper()
	s := w.latest()
	width := len(s.Schema())
	var c delta.Commit
	for _, a := range s.Files() {
		var rows []value.Row
		other := false
		for row, err := range s.ReadFile(w.t.Context(), a, nil) {
			require.NoError(w.t, err)
			became := change(slices.Clone(row[:width]))
			other = other || len(became) != 1 || value.KeyText(became[0]) != value.KeyText(row)
			rows = append(rows, became...)
		}
		if other {
			c.Removes = append(c.Removes, delta.RemoveOf(a, s.Timestamp(), true))
			c.Adds = append(c.Adds, w.write(rows)...)
		}
	}
	require.NotEmpty(w.t, c.Removes, "nothing to change")
	w.change(operation, change, c)
}

// change commits what rows become, with the change files that the table needs.
func (w *table) change(operation string, change func(value.Row) []value.Row, c delta.Commit) {
	w.t.Helper()
	before, known := w.now().rows, len(w.changes)
	for _, row := range before {
		w.record(row, change(slices.Clone(row)))
	}
	if w.latest().Metadata().HasChangeFeed() && len(c.Adds) > 0 && c.Adds[0].DeletionVector == nil {
		c.Changes = w.writeChanges(w.changes[known:])
	}
	w.commit(operation, w.now().schema, mapped(before, change), c)
}

// writeChanges writes change files, one for each partition.
func (w *table) writeChanges(changes []change) []delta.ChangeFile {
	w.t.Helper()
	m := w.latest().Metadata()
	partitions := map[string][]change{}
	for _, c := range changes {
		key := make(value.Row, len(m.PartitionColumns))
		for i, name := range m.PartitionColumns {
			key[i] = c.row[m.Schema.Index(name)]
		}
		partitions[value.KeyText(key)] = append(partitions[value.KeyText(key)], c)
	}
	out := make([]delta.ChangeFile, 0, len(partitions))
	for _, key := range slices.Sorted(maps.Keys(partitions)) {
		o := delta.FileOptions{Schema: m.Schema, Config: m.Configuration, Partition: map[string]value.Value{}}
		for _, name := range m.PartitionColumns {
			o.Partition[name] = partitions[key][0].row[m.Schema.Index(name)]
		}
		file, err := w.WriteChanges(w.t.Context(), o, func(yield func(delta.Change, error) bool) {
			for _, c := range partitions[key] {
				if !yield(delta.Change{Type: delta.ChangeType(c.kind), Row: c.row}, nil) {
					return
				}
			}
		})
		require.NoError(w.t, err)
		out = append(out, file)
	}
	return out
}

// replace is rewrite by deletion vectors: rows that become others go, and what they become is in new files. Where rows only
// go, the change feed needs no file.
func (w *table) replace(operation string, change func(value.Row) []value.Row) {
	w.t.Helper()
	s := w.latest()
	deletions := make([]delta.Deletion, 0, len(s.Files()))
	var came []value.Row
	for _, a := range s.Files() {
		whole := a
		whole.DeletionVector = nil // a position is one among all rows
		var gone []int64
		position := int64(0)
		for row, err := range s.ReadFile(w.t.Context(), whole, nil) {
			require.NoError(w.t, err)
			became := change(slices.Clone(row))
			if len(became) != 1 || value.KeyText(became[0]) != value.KeyText(row) {
				gone, came = append(gone, position), append(came, became...)
			}
			position++
		}
		deletions = append(deletions, delta.Deletion{File: a, Rows: slices.Values(gone)})
	}
	var c delta.Commit
	var err error
	c.Removes, c.Adds, err = s.DeleteRows(w.t.Context(), deletions)
	require.NoError(w.t, err)
	require.NotEmpty(w.t, c.Removes, "nothing to change")
	c.Adds = append(w.write(came), c.Adds...)
	w.change(operation, change, c)
}

// record keeps in mind what the change feed of the next version must have of a row.
func (w *table) record(row value.Row, became []value.Row) {
	gone, came := deleted, inserted
	if len(became) == 1 {
		if value.KeyText(became[0]) == value.KeyText(row) {
			return
		}
		gone, came = preimage, postimage
	}
	w.changes = append(w.changes, change{w.at() + 1, gone, row})
	for _, now := range became {
		w.changes = append(w.changes, change{w.at() + 1, came, now})
	}
}

// mapped gives what rows become.
func mapped(rows []value.Row, change func(value.Row) []value.Row) []value.Row {
	out := make([]value.Row, 0, len(rows))
	for _, row := range rows {
		out = append(out, change(slices.Clone(row))...)
	}
	return out
}

// grow gives the table other columns. fill makes an old row one of them.
func (w *table) grow(schema value.Schema, fill func(value.Row) value.Row) {
	w.t.Helper()
	m := w.latest().Metadata()
	m.Schema = schema
	w.commit("ADD COLUMNS", schema, mapped(w.now().rows, func(row value.Row) []value.Row { return []value.Row{fill(row)} }), delta.Commit{Metadata: &m})
}

// optimize lays the files out, which changes no row.
func (w *table) optimize(zOrder string) {
	w.t.Helper()
	made, err := layout.Optimize(w.t.Context(), w.Table, layout.Options{ZOrder: zOrder, Hidden: w.hidden})
	require.NoError(w.t, err)
	require.Equal(w.t, w.at()+1, made.Version, made.Reason)
	w.versions = append(w.versions, version{schema: w.now().schema, rows: w.now().rows, operation: "OPTIMIZE"})
}

// checkpoint writes the checkpoint of the newest version, and deletes the commits before it, so that nobody can do without.
func (w *table) checkpoint() {
	w.t.Helper()
	require.NoError(w.t, w.Checkpoint(w.t.Context(), w.at()))
	for v := range w.at() {
		require.NoError(w.t, os.Remove(filepath.Join(w.path, "_delta_log", fileOf(v))))
		w.versions[v] = version{}
	}
}

// spark runs statements in Spark, where {t} is the table.
func (w *table) spark(statements ...string) {
	w.t.Helper()
	w.sparkWith(nil, statements...)
}

// sparkWith is spark with settings of Spark's session.
func (w *table) sparkWith(settings map[string]string, statements ...string) {
	w.t.Helper()
	named := make([]string, len(statements))
	for i, s := range statements {
		named[i] = strings.ReplaceAll(s, "{t}", "delta.`"+w.path+"`")
	}
	ask[nothing](w.t, map[string]any{"verb": "sql", "statements": named, "settings": settings})
}

// deltalake makes changes with deltalake.
func (w *table) deltalake(steps ...step) {
	w.t.Helper()
	ask[nothing](w.t, map[string]any{"verb": "change", "path": w.path, "steps": steps})
}

// step is an operation of deltalake and its arguments.
type step [2]any

// do makes a step.
func do(operation string, arguments map[string]any) step {
	if arguments == nil {
		arguments = map[string]any{}
	}
	return step{operation, arguments}
}

// each gives rows one by one.
func each(rows []value.Row) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}
