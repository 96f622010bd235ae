package value

import "math/big"

// Value is one value: nil for null, otherwise exactly one of these dynamic types, by the kind of its type.
//
//	Boolean bool · Byte, Short, Integer, Long int64 · Float float32 · Double float64 · DecimalKind Decimal
//	StringKind string · BinaryKind Binary · DateKind Date · TimestampKind Timestamp · TimestampNTZ LocalTimestamp
//	StructKind Struct · ArrayKind List · MapKind Map · VariantKind Variant
type Value any

// Row is one row: a value a column, in its schema's order.
type Row []Value

// Decimal is Unscaled × 10^-Scale.
type Decimal struct {
	Unscaled *big.Int
	Scale    int
}

// Binary is a byte string.
type Binary []byte

// Date is days since 1970-01-01.
type Date int32

// Timestamp is an instant, in microseconds since 1970-01-01T00:00:00Z.
type Timestamp int64

// LocalTimestamp is a timestamp without a time zone, in microseconds since 1970-01-01T00:00:00.
type LocalTimestamp int64

// Struct is a struct's members in the order of its type's fields. In a record a member may be missing (absent); in a row
// all are there.
type Struct []Member

// Member is one named value of a struct.
type Member struct {
	Name  string
	Value Value
}

// List is an array's elements.
type List []Value

// Map is a map's entries, in the order they came.
type Map []Entry

// Entry is one key of a map with its value.
type Entry struct{ Key, Value Value }

// Variant is an unshredded variant: its two binaries.
type Variant struct{ Metadata, Value []byte }
