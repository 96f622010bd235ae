// Package scd is the law of SCD1 and SCD2 as pure functions: what a set of events of one key shows, and which of the events
// have to be remembered beside the rows. It knows no tables and no files, and holds nothing between calls.
package scd

import "varve/internal/value"

// Op is what an event does to its key.
type Op uint8

// The operations.
const (
	Upsert Op = iota
	Delete
	barrier // what a truncate or an extract is to a key; no event of a key has it
)

// Type is the kind of a target.
type Type uint8

// The types, by their numbers in a contract: the current row of a key, or its history.
const (
	Type1 Type = 1 + iota
	Type2
)

// Path names a leaf: "column", or "column.leaf" of a struct. The leaf "column." of a struct says whether the struct is there:
// it is true, or null for a null struct.
type Path = string

// Event is one record of a feed or an extract, as one key sees it.
type Event struct {
	Seq value.Value
	Op  Op
	// Extract says that the event is a row of the extract at Seq.
	Extract bool
	// Authored is the leaves that an upsert authors; what is absent is not in it.
	Authored map[Path]value.Value
	// By is the raw bound, nil where the target's bounds are sequences.
	By value.Value
}

// Spec is what a target says about folding.
type Spec struct {
	// Columns are the kept columns that are not keys, in the order of a row's values.
	Columns []Column
	// By says that bounds are taken from the events' By.
	By bool
	// Logical says that SCD1 keeps the row of a deleted key.
	Logical bool
}

// Column is a kept column that is not a key.
type Column struct {
	Name string
	// Leaves are the names of a struct's fields, nil for any other type.
	Leaves []string
	// Tracked says that a change of the column opens a version.
	Tracked bool
	// IgnoreNull says that a null in an upsert is absent.
	IgnoreNull bool
}

// Row is a row that a key shows.
type Row struct {
	// Values are whole columns, in the order of the spec.
	Values value.Row
	// Seq is the sequence of the event whose values these are.
	Seq value.Value
	// Start and End are the bounds of a history's row; End is nil while the row is current. SCD1 has neither.
	Start, End value.Value
	// Deleted says that the row is kept although its key is deleted.
	Deleted bool
}

// same says whether two rows look alike, whatever their sequence.
func (r Row) same(o Row) bool {
	if r.Deleted != o.Deleted || len(r.Values) != len(o.Values) || !value.Equal(r.Start, o.Start) || !value.Equal(r.End, o.End) {
		return false
	}
	for i := range r.Values {
		if !value.Equal(r.Values[i], o.Values[i]) {
			return false
		}
	}
	return true
}
