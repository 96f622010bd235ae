package normalize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"varve/internal/columnar"
	"varve/internal/object"
	"varve/internal/scd"
	"varve/internal/value"
	"varve/schemas"
)

// The numbers of operations in a change set.
const (
	opUpsert int64 = iota
	opDelete
	opTruncate
)

// layout is the columns of a change set's file: what every event has, the keys, the kept columns, then the bounds
// a target.
// What an upsert does not author is null there and named in _varve_absent.
type layout struct {
	schema value.Schema
	// keys, bounds and columns are the names behind the first ones, in order.
	keys, bounds, columns []string
}

const fixedColumns = 7

func newLayout(c schemas.Contract) layout {
	text := value.Type{Kind: value.StringKind}
	column := func(name string, t value.Type) value.Field { return value.Field{Name: name, Type: t, Nullable: true} }
	l := layout{schema: value.Schema{
		column("_varve_op", value.Type{Kind: value.Long}),
		column("_varve_seq", SequenceType(c)),
		column("_varve_batch", value.Type{Kind: value.Long}),
		column("_varve_file", text),
		column("_varve_row", value.Type{Kind: value.Long}),
		column("_varve_day", value.Type{Kind: value.DateKind}),
		column("_varve_absent", value.Type{Kind: value.ArrayKind, Elem: &text}),
	}}
	for _, key := range c.Keys {
		if declared, ok := c.Column(key); ok {
			l.keys = append(l.keys, key)
			l.schema = append(l.schema, column(key, declared.Type))
		}
	}
	for _, kept := range c.Kept() {
		if !slices.Contains(c.Keys, kept.Name) {
			l.columns = append(l.columns, kept.Name)
			l.schema = append(l.schema, column(kept.Name, kept.Type))
		}
	}
	return l
}

// withBound adds the column of a target's bounds.
func (l layout) withBound(table string, kind value.Type) layout {
	l.schema = append(l.schema, value.Field{Name: boundColumn(len(l.bounds)), Type: kind, Nullable: true})
	l.bounds = append(l.bounds, table)
	return l
}

func boundColumn(i int) string { return "_varve_by_" + strconv.Itoa(i) }

func (p *plan) write(ctx context.Context, warehouse object.Store, key string, events []Event) error {
	l := newLayout(p.contract)
	for _, b := range p.bounds {
		l = l.withBound(b.target.Table, b.kind)
	}
	rows := func(yield func(value.Row, error) bool) {
		for i := range events {
			if !yield(l.row(&events[i]), nil) {
				return
			}
		}
	}
	var body bytes.Buffer
	if _, err := columnar.Write(&body, l.schema, rows, columnar.WriteOptions{}); err != nil {
		return err
	}
	return warehouse.Put(ctx, key, body.Bytes())
}

func (l layout) row(e *Event) value.Row {
	op := opUpsert
	switch {
	case e.Truncate:
		op = opTruncate
	case e.Op == scd.Delete:
		op = opDelete
	}
	absent := value.List{}
	row := make(value.Row, fixedColumns, len(l.schema))
	row[0], row[1], row[2], row[3], row[4], row[5] = op, e.Seq, e.Batch, e.File, e.Row, e.Day
	for i := range l.keys {
		if e.Truncate {
			row = append(row, nil)
			continue
		}
		row = append(row, e.Key[i])
	}
	for _, name := range l.columns {
		v, ok := e.Columns[name]
		if !ok && op == opUpsert {
			absent = append(absent, pathText([]string{name}))
		}
		for _, path := range absences(l.schema[len(row)].Type, v, []string{name}) {
			absent = append(absent, pathText(path))
		}
		row = append(row, v)
	}
	for _, table := range l.bounds {
		row = append(row, e.By[table])
	}
	row[6] = absent
	for i, v := range row {
		row[i] = whole(l.schema[i].Type, v)
	}
	return row
}

// Read gives the events of a change set, sorted by key and sequence.
func Read(ctx context.Context, warehouse object.Store, cs ChangeSet, c schemas.Contract) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		fail := func(err error) { yield(Event{}, fmt.Errorf("read change set %q: %w", cs.Path, err)) }
		body, err := warehouse.Read(ctx, cs.Path, 0, -1)
		if err != nil {
			fail(err)
			return
		}
		file, err := columnar.OpenFile(bytes.NewReader(body), int64(len(body)))
		if err != nil {
			fail(err)
			return
		}
		l, err := newLayout(c).ofFile(c, file.Schema())
		if err != nil {
			fail(err)
			return
		}
		for row, err := range file.Rows(columnar.ReadOptions{Columns: l.schema}) {
			if err != nil {
				fail(err)
				return
			}
			e, err := l.event(row)
			if err != nil {
				fail(err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// ofFile adds the bounds, whose types only the engine knew: the file has them.
func (l layout) ofFile(c schemas.Contract, stored value.Schema) (layout, error) {
	for _, t := range c.Targets {
		if !HasBounds(c, t) {
			continue
		}
		at := stored.Index(boundColumn(len(l.bounds)))
		if at < 0 {
			return l, fmt.Errorf("the bounds of %s are not in it", t.Table)
		}
		l = l.withBound(t.Table, stored[at].Type)
	}
	return l, nil
}

func (l layout) event(row value.Row) (Event, error) {
	var e Event
	op, ok := row[0].(int64)
	if !ok {
		return e, errors.New("an event without an operation")
	}
	e.Truncate = op == opTruncate
	if e.Op = scd.Upsert; op == opDelete {
		e.Op = scd.Delete
	}
	e.Seq = row[1]
	var has [4]bool
	e.Batch, has[0] = row[2].(int64)
	e.File, has[1] = row[3].(string)
	e.Row, has[2] = row[4].(int64)
	e.Day, has[3] = row[5].(value.Date)
	if has != [4]bool{true, true, true, true} {
		return e, errors.New("an event without batch, file, row or day")
	}
	rest := row[fixedColumns:]
	if !e.Truncate {
		e.Key = slices.Clone(rest[:len(l.keys)])
	}
	rest = rest[len(l.keys):]
	if op == opUpsert {
		e.Columns = make(map[string]value.Value, len(l.columns))
		for i, name := range l.columns {
			e.Columns[name] = rest[i]
		}
		if err := forget(e.Columns, row[6]); err != nil {
			return e, err
		}
	}
	rest = rest[len(l.columns):]
	e.By = make(map[string]value.Value, len(l.bounds))
	for i, table := range l.bounds {
		e.By[table] = rest[i]
	}
	return e, nil
}

func pathText(path []string) string {
	text, err := json.Marshal(path)
	if err != nil {
		return "" // a list of strings always has a text
	}
	return string(text)
}
