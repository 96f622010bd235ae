// Package value holds typed values: their types, their order, their equality and their canonical text.
// It does no I/O and knows no file format.
package value

// Kind is the family of a type, by Spark SQL's names.
type Kind uint8

// The kinds of Delta's types. Void is the type of a column that holds nothing but null.
const (
	Void Kind = iota
	Boolean
	Byte
	Short
	Integer
	Long
	Float
	Double
	DecimalKind
	StringKind
	BinaryKind
	DateKind
	TimestampKind
	TimestampNTZ
	StructKind
	ArrayKind
	MapKind
	VariantKind
)

// Type is the type of a column, an element or a struct's field.
type Type struct {
	Kind Kind
	// Precision and Scale are a decimal's, in digits.
	Precision, Scale int
	// Fields are a struct's, in order.
	Fields []Field
	// Key is a map's key type.
	Key *Type
	// Elem is the element type of an array, or the value type of a map.
	Elem *Type
	// ElemNullable says whether an array's elements or a map's values may be null.
	ElemNullable bool
}

// Field is a column of a table or a field of a struct.
type Field struct {
	Name     string
	Type     Type
	Nullable bool
	// Metadata is the field's metadata in Delta's schema, nil where there is none.
	Metadata map[string]any
}

// Schema is the columns of a table, in order.
type Schema []Field

// Index gives the position of the column of that name, or -1.
func (s Schema) Index(name string) int {
	for i := range s {
		if s[i].Name == name {
			return i
		}
	}
	return -1
}

// Names gives the column names, in order.
func (s Schema) Names() []string {
	names := make([]string, len(s))
	for i := range s {
		names[i] = s[i].Name
	}
	return names
}
