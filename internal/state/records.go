package state

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"varve/internal/columnar"
	"varve/internal/object"
	"varve/internal/scd"
	"varve/internal/value"
)

// The columns of a state file beside the key's and the data's.
const (
	opColumn       = "_varve_op"
	extractColumn  = "_varve_extract"
	byColumn       = "_varve_by"
	authoredColumn = "_varve_authored"
)

// Layout is the shape of a target's remembered events.
type Layout struct {
	// Keys are the key columns, in the contract's order.
	Keys value.Schema
	// Columns are the kept columns that are not keys.
	Columns value.Schema
	// Sequence is the type of sequences.
	Sequence value.Type
	// Bound is the type of raw bounds, nil where bounds are the sequence.
	Bound *value.Type
}

// Record is one remembered event of a key.
type Record struct {
	Key   value.Row
	Event scd.Event
}

// Schema is the columns of a state file: keys, sequence, operation, extract, bound, authored leaves, data.
func (l Layout) Schema() value.Schema {
	text := value.Type{Kind: value.StringKind}
	s := slices.Clone(l.Keys)
	s = append(s,
		value.Field{Name: SequenceColumn, Type: l.Sequence},
		value.Field{Name: opColumn, Type: text},
		value.Field{Name: extractColumn, Type: value.Type{Kind: value.Boolean}},
		value.Field{Name: authoredColumn, Type: value.Type{Kind: value.ArrayKind, Elem: &text}, Nullable: true})
	if l.Bound != nil {
		s = append(s, value.Field{Name: byColumn, Type: *l.Bound, Nullable: true})
	}
	for _, c := range l.Columns {
		c.Nullable = true
		s = append(s, c)
	}
	return s
}

// Write puts records into a new file of the table at root.
func (l Layout) Write(ctx context.Context, store object.Store, root string, records []Record) (File, error) {
	var body bytes.Buffer
	rows := func(yield func(value.Row, error) bool) {
		for _, r := range records {
			if !yield(l.encode(r), nil) {
				return
			}
		}
	}
	if _, err := columnar.Write(&body, l.Schema(), rows, columnar.WriteOptions{}); err != nil {
		return File{}, fmt.Errorf("write state file: %w", err)
	}
	f := File{Path: path.Join("_varve/state", uuid.NewString()+".parquet"), Size: int64(body.Len()), Records: int64(len(records))}
	if err := store.Put(ctx, path.Join(root, f.Path), body.Bytes()); err != nil {
		return File{}, fmt.Errorf("write state file: %w", err)
	}
	return f, nil
}

// Read gives every record of the manifest's files.
func (l Layout) Read(ctx context.Context, store object.Store, root string, m Manifest) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, f := range m.Files {
			body, err := store.Read(ctx, path.Join(root, f.Path), 0, -1)
			if err != nil {
				yield(Record{}, fmt.Errorf("read state file: %w", err))
				return
			}
			file, err := columnar.OpenFile(bytes.NewReader(body), int64(len(body)))
			if err != nil {
				yield(Record{}, fmt.Errorf("read state file %q: %w", f.Path, err))
				return
			}
			for row, err := range file.Rows(columnar.ReadOptions{Columns: l.Schema()}) {
				if err != nil {
					yield(Record{}, fmt.Errorf("read state file %q: %w", f.Path, err))
					return
				}
				if !yield(l.decode(row), nil) {
					return
				}
			}
		}
	}
}

func (l Layout) encode(r Record) value.Row {
	op := "upsert"
	if r.Event.Op == scd.Delete {
		op = "delete"
	}
	row := append(slices.Clone(r.Key), r.Event.Seq, op, r.Event.Extract)
	var authored value.Value
	if r.Event.Op == scd.Upsert {
		paths := make([]string, 0, len(r.Event.Authored))
		for p := range r.Event.Authored {
			paths = append(paths, p)
		}
		slices.Sort(paths)
		list := make(value.List, len(paths))
		for i, p := range paths {
			list[i] = p
		}
		authored = list
	}
	row = append(row, authored)
	if l.Bound != nil {
		row = append(row, r.Event.By)
	}
	for _, c := range l.Columns {
		row = append(row, column(c, r.Event.Authored))
	}
	return row
}

// column puts a column together from its leaves; which of a struct's members were authored is told by the list of leaves.
func column(c value.Field, authored map[scd.Path]value.Value) value.Value {
	if c.Type.Kind != value.StructKind {
		return authored[c.Name]
	}
	members := make(value.Struct, len(c.Type.Fields))
	some := authored[c.Name+"."] != nil
	for i, f := range c.Type.Fields {
		members[i] = value.Member{Name: f.Name, Value: authored[c.Name+"."+f.Name]}
		some = some || members[i].Value != nil
	}
	if !some {
		return nil
	}
	return members
}

func (l Layout) decode(row value.Row) Record {
	n := len(l.Keys)
	r := Record{Key: row[:n:n], Event: scd.Event{Seq: row[n], Op: scd.Upsert}}
	if row[n+1] == "delete" {
		r.Event.Op = scd.Delete
	}
	r.Event.Extract = row[n+2] == true
	next := n + 4
	if l.Bound != nil {
		r.Event.By = row[next]
		next++
	}
	list, ok := row[n+3].(value.List)
	if !ok {
		return r
	}
	r.Event.Authored = make(map[scd.Path]value.Value, len(list))
	for _, p := range list {
		if leaf, ok := p.(string); ok {
			r.Event.Authored[leaf] = l.leaf(leaf, row[next:])
		}
	}
	return r
}

func (l Layout) leaf(p scd.Path, data value.Row) value.Value {
	for i, c := range l.Columns {
		if c.Name == p {
			return data[i]
		}
		name, ok := strings.CutPrefix(p, c.Name+".")
		if !ok || c.Type.Kind != value.StructKind {
			continue
		}
		members, present := data[i].(value.Struct)
		if name == "" {
			if present {
				return true
			}
			return nil
		}
		for _, m := range members {
			if m.Name == name {
				return m.Value
			}
		}
	}
	return nil
}
