package normalize

import (
	"context"
	"fmt"
	"slices"

	"varve/internal/scd"
	"varve/internal/value"
	"varve/schemas"
)

// Event is a record understood.
type Event struct {
	// Key has a value a key column, in the order of the contract's keys. A truncate has none.
	Key value.Row
	Op  scd.Op
	// Truncate says that the record empties the whole target.
	Truncate bool
	Seq      value.Value
	// Columns are the kept columns that the record authors, without the keys; an absent one is left out. A delete has none.
	Columns map[string]value.Value
	// By is the raw bound for each target that has bounds of its own, by table.
	By    map[string]value.Value
	Batch int64
	File  string
	Row   int64
	Day   value.Date
}

func (e Event) isDelete() bool { return !e.Truncate && e.Op == scd.Delete }

// badRecord is a record for quarantine.
type badRecord struct {
	record
	fault
}

// understood is what became of records.
type understood struct {
	events  []Event
	bad     []badRecord
	unknown map[string]int64
}

// understand turns records, in order of batch, file and row, into events sorted by key and sequence.
func (p *plan) understand(ctx context.Context, records []record) (understood, error) {
	parse := newParser(p.contract)
	u := understood{unknown: parse.unknown}
	var good []parsed
	var alone *record // a header that no record followed so far
	for i, r := range records {
		if alone != nil && !alone.sameFile(r.place) {
			u.bad = append(u.bad, parse.lost(*alone)...)
		}
		alone = nil
		if parse.isHeader(r) {
			alone = &records[i]
			continue
		}
		fields, f := parse.parse(r)
		if f != nil {
			u.bad = append(u.bad, badRecord{record: r, fault: *f})
			continue
		}
		good = append(good, parsed{record: r, fields: fields})
	}
	if alone != nil {
		u.bad = append(u.bad, parse.lost(*alone)...)
	}
	v, err := p.evaluate(ctx, good)
	if err != nil {
		return u, err
	}
	for i, r := range good {
		event, f := p.event(r, i, v)
		if f != nil {
			u.bad = append(u.bad, badRecord{record: r.record, fault: *f})
			continue
		}
		u.events = append(u.events, event)
	}
	slices.SortFunc(u.bad, func(a, b badRecord) int { return comparePlaces(a.place, b.place) })
	slices.SortStableFunc(u.events, compareEvents)
	return u, nil
}

// compareEvents orders by key, then by sequence; what has no key is first.
func compareEvents(a, b Event) int {
	for i := range min(len(a.Key), len(b.Key)) {
		if c := value.Compare(a.Key[i], b.Key[i]); c != 0 {
			return c
		}
	}
	if c := len(a.Key) - len(b.Key); c != 0 {
		return c
	}
	return value.Compare(a.Seq, b.Seq)
}

// computed is the outcome of the contract's expressions for all records.
type computed struct {
	deletes outcome
	bounds  []outcome
}

// outcome is what one expression gave, a value and a reason a record.
type outcome struct {
	values []value.Value
	faults []error
}

func (p *plan) evaluate(ctx context.Context, records []parsed) (computed, error) {
	rows := make([]value.Row, len(records))
	for i, r := range records {
		rows[i] = make(value.Row, len(p.columns))
		for j, f := range r.fields {
			rows[i][j] = f.value
		}
		rows[i][len(p.columns)-1] = r.day
	}
	var c computed
	var err error
	run := func(e *expression) (o outcome) {
		if e == nil || err != nil || len(rows) == 0 {
			return o
		}
		o, err = p.column(ctx, rows, e.text)
		if err != nil {
			err = fmt.Errorf("%s: %w", e.name, err)
		}
		return o
	}
	c.deletes = run(p.deletes)
	for i := range p.bounds {
		c.bounds = append(c.bounds, run(&p.bounds[i].by))
	}
	return c, err
}

func (p *plan) column(ctx context.Context, rows []value.Row, text string) (outcome, error) {
	values, faults, err := p.db.Eval(ctx, p.columns, rows, []string{text})
	if err != nil {
		return outcome{}, err
	}
	o := outcome{values: make([]value.Value, len(values)), faults: faults}
	for i := range values {
		o.values[i] = values[i][0]
	}
	return o, nil
}

// event understands one record, the i-th, or tells why it is bad. A delete needs its key and its sequence only.
func (p *plan) event(r parsed, i int, c computed) (Event, *fault) {
	e := Event{Op: scd.Upsert, Batch: r.batch, File: r.file, Row: r.row, Day: r.day}
	var f *fault
	if e.Key, f = p.key(r); f != nil {
		return e, f
	}
	if e.Seq, f = p.sequenceOf(r); f != nil {
		return e, f
	}
	if p.deletes != nil {
		if f := p.readable(p.deletes, r, c.deletes.faults[i]); f != nil {
			return e, f
		}
		if c.deletes.values[i] == true { // null is not
			e.Op = scd.Delete
			e.By, f = p.deleteBounds(r)
			return e, f
		}
	}
	if e.Columns, f = p.authored(r); f != nil {
		return e, f
	}
	e.By, f = p.upsertBounds(r, i, c.bounds)
	return e, f
}

// readable tells why an expression says nothing about a record.
func (p *plan) readable(e *expression, r parsed, failed error) *fault {
	for _, at := range e.reads {
		if at < len(r.fields) && r.fields[at].bad != nil {
			return p.notConverted(at, r)
		}
	}
	if failed != nil {
		return &fault{reason: Expression, detail: e.name + ": " + failed.Error()}
	}
	return nil
}

func (p *plan) notConverted(at int, r parsed) *fault {
	return &fault{reason: NotConverted, detail: fmt.Sprintf("column %q: %v", p.columns[at].Name, r.fields[at].bad)}
}

func (p *plan) key(r parsed) (value.Row, *fault) {
	key := make(value.Row, len(p.keys))
	for i, at := range p.keys {
		switch f := r.fields[at]; {
		case f.bad != nil:
			return nil, p.notConverted(at, r)
		case !f.present:
			return nil, &fault{reason: NullKey, detail: fmt.Sprintf("key column %q is not there", p.columns[at].Name)}
		case f.value == nil:
			return nil, &fault{reason: NullKey, detail: fmt.Sprintf("key column %q is null", p.columns[at].Name)}
		case hasNull(p.columns[at].Type, f.value):
			return nil, &fault{reason: NullKey, detail: fmt.Sprintf("key column %q has a part that is null or not there", p.columns[at].Name)}
		default:
			key[i] = f.value
		}
	}
	return key, nil
}

// hasNull says whether a value of a type is null, or a member of it is, or is not there.
func hasNull(t value.Type, v value.Value) bool {
	members, ok := v.(value.Struct)
	if !ok {
		return v == nil
	}
	return slices.ContainsFunc(t.Fields, func(f value.Field) bool {
		i := slices.IndexFunc(members, func(m value.Member) bool { return m.Name == f.Name })
		return i < 0 || hasNull(f.Type, members[i].Value)
	})
}

// sequenceOf gives the sequence. Of a sequence of several columns some may be null, not all.
func (p *plan) sequenceOf(r parsed) (value.Value, *fault) {
	if p.contract.IsArrival() {
		return value.Struct{
			{Name: "day", Value: r.day}, {Name: "flow", Value: ""}, {Name: "path", Value: r.file}, {Name: "row", Value: r.row},
		}, nil
	}
	null := true
	parts := make(value.Struct, len(p.sequence))
	for i, at := range p.sequence {
		if r.fields[at].bad != nil {
			return nil, p.notConverted(at, r)
		}
		parts[i] = value.Member{Name: p.columns[at].Name, Value: r.fields[at].value}
		null = null && r.fields[at].value == nil
	}
	switch {
	case null:
		return nil, &fault{reason: NullSequence, detail: fmt.Sprintf("the sequence %q is null", p.contract.SequenceBy)}
	case p.contract.SequenceType().Kind == value.StructKind && p.columns.Index(p.contract.SequenceBy) < 0:
		return parts, nil
	default:
		return parts[0].Value, nil
	}
}

// authored gives the kept columns of an upsert. Every column must convert, kept or not.
func (p *plan) authored(r parsed) (map[string]value.Value, *fault) {
	columns := make(map[string]value.Value, len(p.kept))
	for at, column := range p.contract.Columns {
		f := r.fields[at]
		if f.bad != nil {
			return nil, p.notConverted(at, r)
		}
		if !f.present && p.contract.Absent == schemas.AbsentRefuse {
			return nil, &fault{reason: AbsentColumn, detail: fmt.Sprintf("column %q is not there", column.Name)}
		}
		authors := f.present || p.contract.Absent == schemas.AbsentNull
		if column.Required && authors && f.value == nil && !p.contract.IgnoresNull(column.Name) {
			return nil, &fault{reason: Required, detail: fmt.Sprintf("column %q is required and null", column.Name)}
		}
		if authors && slices.Contains(p.kept, at) {
			columns[column.Name] = f.value
		}
	}
	return columns, nil
}

func (p *plan) upsertBounds(r parsed, n int, outcomes []outcome) (map[string]value.Value, *fault) {
	bounds := make(map[string]value.Value, len(p.bounds))
	for i := range p.bounds {
		b := &p.bounds[i]
		if f := p.readable(&b.by, r, outcomes[i].faults[n]); f != nil {
			return nil, f
		}
		v := outcomes[i].values[n]
		if v == nil {
			return nil, &fault{reason: NullBy, detail: b.by.name + " is null"}
		}
		if f := b.far(v, r); f != nil {
			return nil, f
		}
		bounds[b.target.Table] = v
	}
	return bounds, nil
}

// deleteBounds gives the bounds of a record that ends rows: its own column for that, else its day.
func (p *plan) deleteBounds(r parsed) (map[string]value.Value, *fault) {
	bounds := make(map[string]value.Value, len(p.bounds))
	for i := range p.bounds {
		b := &p.bounds[i]
		var v value.Value
		if b.deleteBy >= 0 {
			if r.fields[b.deleteBy].bad != nil {
				return nil, p.notConverted(b.deleteBy, r)
			}
			v = asBound(b.kind, r.fields[b.deleteBy].value)
		}
		if v == nil && isTime(b.kind) {
			v = asBound(b.kind, r.day)
		}
		if v == nil {
			return nil, &fault{reason: NullBy, detail: fmt.Sprintf("the bound of a delete from %s is null", b.target.Table)}
		}
		if f := b.far(v, r); f != nil {
			return nil, f
		}
		bounds[b.target.Table] = v
	}
	return bounds, nil
}

// far tells whether a bound is out of the range that the contract allows around the day.
func (b *bound) far(v value.Value, r parsed) *fault {
	if b.target.History.By == "" || inRange(v, r.day, b.target.History) {
		return nil
	}
	return &fault{reason: ByOutOfRange, detail: b.by.name + " is too far from the day of the batch"}
}
