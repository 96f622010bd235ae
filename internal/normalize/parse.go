package normalize

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"varve/internal/source"
	"varve/internal/value"
	"varve/schemas"
)

// The reasons for which a record goes to quarantine.
const (
	Encoding      = "encoding"        // it is not UTF-8
	Malformed     = "malformed"       // it does not parse
	BadHeader     = "header"          // its file's header lacks a key or names a column twice
	TooManyFields = "too_many_fields" // it has more fields than its file's header
	TooFewFields  = "too_few_fields"  // it has fewer fields than its file's header
	NullKey       = "null_key"        // a part of its key is null or not there
	NullSequence  = "null_sequence"   // its sequence is null or not there
	NotConverted  = "convert"         // a value does not convert to its column's type
	Required      = "required"        // a required column is null
	AbsentColumn  = "absent"          // a column is not there, and the contract refuses that
	NullBy        = "null_by"         // its history.by is null
	ByOutOfRange  = "by_out_of_range" // its history.by is too far from its day
	Expression    = "expression"      // an expression of the contract cannot be computed for it
)

// fault is why a record is bad. Its detail names columns, never values.
type fault struct{ reason, detail string }

// field is one column of a record.
type field struct {
	present bool
	value   value.Value
	// bad says why the value does not convert.
	bad error
}

// parsed is a record with its fields, in the order of the contract's columns.
type parsed struct {
	record
	fields []field
}

// parser cuts records into fields by the contract's columns.
type parser struct {
	columns []schemas.Column
	keys    []string
	// exact are the columns that order or name things: a number that is rounded there would be another one.
	exact   map[string]bool
	dialect source.Dialect
	// header is that of the file the last record came from.
	header header
	// unknown counts the records that have a field of a name that no column has.
	unknown map[string]int64
}

func newParser(c schemas.Contract) *parser {
	p := &parser{columns: c.Columns, keys: c.Keys, exact: map[string]bool{}, dialect: source.DialectOf(c.Source), unknown: map[string]int64{}}
	for _, name := range slices.Concat(c.Keys, c.SequenceColumns()) {
		p.exact[name] = true
	}
	return p
}

func (p *parser) isColumn(name string) bool {
	return slices.ContainsFunc(p.columns, func(c schemas.Column) bool { return c.Name == name })
}

// header says which cell of a CSV file's records is which column.
type header struct {
	batch int64
	file  string
	names []string
	// unknown are the names that no column has.
	unknown []string
	// at is the cell of each column, -1 where there is none.
	at    []int
	fault *fault
}

// isHeader takes a CSV file's header record. It gives false for any other record.
func (p *parser) isHeader(r record) bool {
	if p.dialect.Format != source.CSV || !p.dialect.Header || r.row != 0 {
		return false
	}
	p.header = header{batch: r.batch, file: r.file, at: make([]int, len(p.columns))}
	cells, err := source.Cells(r.raw, p.dialect)
	if err != nil || r.bytes != nil {
		p.header.fault = &fault{reason: BadHeader, detail: "the file's header does not parse"}
		return true
	}
	for _, c := range cells {
		if strings.ContainsAny(c.Text, "\r\n") {
			p.header.fault = &fault{reason: BadHeader, detail: "the file's header has a line end within a name: a lone CR ends no line"}
			return true
		}
		name := strings.TrimSpace(c.Text)
		p.header.names = append(p.header.names, name)
		if !p.isColumn(name) {
			p.header.unknown = append(p.header.unknown, name)
		}
	}
	for i, column := range p.columns {
		p.header.at[i] = slices.Index(p.header.names, column.Name)
		switch at := p.header.at[i]; {
		case at < 0 && slices.Contains(p.keys, column.Name):
			p.header.fault = &fault{reason: BadHeader, detail: fmt.Sprintf("the file's header lacks the key column %q", column.Name)}
		case at >= 0 && slices.Contains(p.header.names[at+1:], column.Name):
			p.header.fault = &fault{reason: BadHeader, detail: fmt.Sprintf("the file's header names column %q twice", column.Name)}
		}
	}
	return true
}

// lost gives the header that was read last as a bad record, where it is a fault that no record of its file will tell of.
func (p *parser) lost(header record) []badRecord {
	if p.header.fault == nil {
		return nil
	}
	return []badRecord{{record: header, fault: *p.header.fault}}
}

// parse gives the fields of a record, or why it has none.
func (p *parser) parse(r record) ([]field, *fault) {
	switch {
	case r.bytes != nil:
		return nil, &fault{reason: Encoding, detail: "it is not UTF-8"}
	case p.dialect.Format == source.CSV:
		return p.parseCSV(r)
	default:
		return p.parseJSON(r)
	}
}

func (p *parser) parseJSON(r record) ([]field, *fault) {
	members, err := value.Members([]byte(r.raw))
	if err != nil {
		return nil, &fault{reason: Malformed, detail: jsonFault(err)}
	}
	fields := make([]field, len(p.columns))
	known := 0
	for i, c := range p.columns {
		raw, ok := members[c.Name]
		if !ok {
			continue
		}
		known++
		fields[i].present = true
		fields[i].value, fields[i].bad = value.FromJSON(c.Type, raw)
		p.keepExact(c, &fields[i], string(raw))
	}
	if known < len(members) {
		for name := range members {
			if !p.isColumn(name) {
				p.unknown[name]++
			}
		}
	}
	return fields, nil
}

// jsonFault names the place of a fault, not the text there.
func jsonFault(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && syntax.Offset > 0 {
		return fmt.Sprintf("it is not valid JSON at byte %d", syntax.Offset)
	}
	return "it is not one JSON object"
}

func (p *parser) parseCSV(r record) ([]field, *fault) {
	at, width := p.header.at, len(p.header.names)
	switch {
	case !p.dialect.Header:
		at, width = nil, len(p.columns)
	case p.header.batch != r.batch || p.header.file != r.file:
		return nil, &fault{reason: BadHeader, detail: "the file has no header"}
	case p.header.fault != nil:
		return nil, p.header.fault
	}
	cells, err := source.Cells(r.raw, p.dialect)
	switch {
	case err != nil:
		return nil, &fault{reason: Malformed, detail: err.Error()}
	case len(cells) > width:
		return nil, &fault{reason: TooManyFields, detail: fmt.Sprintf("it has %d fields, not %d", len(cells), width)}
	case len(cells) < width:
		return nil, &fault{reason: TooFewFields, detail: fmt.Sprintf("it has %d fields, not %d", len(cells), width)}
	}
	fields := make([]field, len(p.columns))
	for i, c := range p.columns {
		cell := i
		if at != nil {
			cell = at[i]
		}
		if cell < 0 {
			continue
		}
		fields[i].present = true
		fields[i].value, fields[i].bad = p.fromCell(c.Type, cells[cell])
		p.keepExact(c, &fields[i], cells[cell].Text)
	}
	if p.dialect.Header {
		for _, name := range p.header.unknown {
			p.unknown[name]++
		}
	}
	return fields, nil
}

// errRounded is why a number is bad where it names or orders.
var errRounded = errors.New("the number has more digits than the type holds, and it is a key or a sequence")

// keepExact makes a field bad whose number was rounded although it names or orders.
func (p *parser) keepExact(c schemas.Column, f *field, text string) {
	if f.bad == nil && p.exact[c.Name] && value.Rounded(text, f.value) {
		f.value, f.bad = nil, errRounded
	}
}

// fromCell converts one CSV field. An empty one is null unless it is a quoted string.
func (p *parser) fromCell(t value.Type, c source.Cell) (value.Value, error) {
	switch {
	case c.Text == "" && (!c.Quoted || t.Kind != value.StringKind):
		return nil, nil //nolint:nilnil // nil is the null value
	case !c.Quoted && p.dialect.Null != "" && c.Text == p.dialect.Null:
		return nil, nil //nolint:nilnil // nil is the null value
	default:
		return value.Parse(t, c.Text)
	}
}
