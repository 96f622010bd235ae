package columnar

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"varve/internal/value"
)

// A column is one node of what is written: a leaf, a struct, an array or a map.
type column struct {
	path     string
	typ      value.Type
	nullable bool
	// rep and def are the levels of a value of this node that is not null.
	rep, def int
	// first and end bound the leaves below this node.
	first, end int
	// children are a struct's kept fields (fields tells their places), an array's element, a map's key and value.
	children []*column
	fields   []int
	// stats are the statistics kept of the leaves below this node, outside of arrays and maps.
	stats []*leafStats
}

// layout builds the Parquet schema of a value schema and the tree that takes its rows apart.
type layout struct {
	leaves int
	// unbounded are the leaves of which no minimum and maximum may be kept in the file.
	unbounded [][]string
}

// ordered is a group whose fields keep their order: parquet.Group would sort them by name.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

// Fields gives the fields in the order of the schema.
func (o ordered) Fields() []parquet.Field { return o.fields }

func newOrdered(names []string, nodes []parquet.Node) (ordered, error) {
	group := make(parquet.Group, len(names))
	for i, name := range names {
		group[name] = nodes[i]
	}
	if len(group) != len(names) {
		return ordered{}, fmt.Errorf("two fields of one struct have the same name among %q", names)
	}
	byName := make(map[string]parquet.Field, len(names))
	for _, f := range group.Fields() {
		byName[f.Name()] = f
	}
	fields := make([]parquet.Field, len(names))
	for i, name := range names {
		fields[i] = byName[name]
	}
	return ordered{Group: group, fields: fields}, nil
}

// annotated gives a group the logical type of a list or of a map.
type annotated struct {
	parquet.Node
	typ parquet.Type
}

// Type is the logical type.
func (a annotated) Type() parquet.Type { return a.typ }

// group lays out the fields of a struct, or of the table, below the node c.
func (l *layout) group(c *column, fields []value.Field, physical []string) (parquet.Node, error) {
	var names []string
	var nodes []parquet.Node
	c.first = l.leaves
	for i, f := range fields {
		if f.Type.Kind == value.Void {
			continue // PROTOCOL.md, Void: never in data files
		}
		name := physicalName(f)
		at := slices.Concat(physical, []string{name})
		child := &column{path: join(c.path, f.Name), typ: f.Type, nullable: f.Nullable, rep: c.rep, def: c.def}
		node, err := l.node(child, at)
		if err != nil {
			return nil, err
		}
		if id := fieldID(f); id != 0 {
			node = parquet.FieldID(node, id)
		}
		names, nodes = append(names, name), append(nodes, node)
		c.children, c.fields = append(c.children, child), append(c.fields, i)
	}
	c.end = l.leaves
	if len(names) == 0 {
		return nil, &TypeError{Column: c.path, Reason: "it has no column that can be written"}
	}
	group, err := newOrdered(names, nodes)
	if err != nil {
		return nil, &TypeError{Column: c.path, Reason: err.Error()}
	}
	return group, nil
}

// node lays out one column and all below it.
func (l *layout) node(c *column, physical []string) (parquet.Node, error) {
	if c.nullable {
		c.def++
	}
	node, err := l.required(c, physical)
	if err != nil {
		return nil, err
	}
	if c.nullable {
		return parquet.Optional(node), nil
	}
	return parquet.Required(node), nil
}

func (l *layout) required(c *column, physical []string) (parquet.Node, error) {
	switch c.typ.Kind {
	case value.StructKind:
		return l.group(c, c.typ.Fields, physical)
	case value.VariantKind:
		return l.variant(c, physical)
	case value.ArrayKind:
		element := &column{path: join(c.path, "element"), typ: *c.typ.Elem, nullable: c.typ.ElemNullable}
		return l.repeated(c, parquet.List(parquet.Leaf(parquet.Int32Type)).Type(), "list", physical, []string{"element"}, element)
	case value.MapKind:
		key := &column{path: join(c.path, "key"), typ: *c.typ.Key}
		val := &column{path: join(c.path, "value"), typ: *c.typ.Elem, nullable: c.typ.ElemNullable}
		leaf := parquet.Leaf(parquet.Int32Type)
		return l.repeated(c, parquet.Map(leaf, leaf).Type(), "key_value", physical, []string{"key", "value"}, key, val)
	default:
		return l.leaf(c, physical)
	}
}

// repeated lays out the three levels of a list or of a map.
func (l *layout) repeated(c *column, typ parquet.Type, middle string, physical, names []string, children ...*column) (parquet.Node, error) {
	c.first = l.leaves
	nodes := make([]parquet.Node, len(children))
	for i, child := range children {
		if child.typ.Kind == value.Void {
			return nil, &TypeError{Column: child.path, Reason: "void inside of an array or a map cannot be written"}
		}
		child.rep, child.def = c.rep+1, c.def+1
		node, err := l.node(child, slices.Concat(physical, []string{middle, names[i]}))
		if err != nil {
			return nil, err
		}
		nodes[i] = node
	}
	c.children, c.end = children, l.leaves
	inner, err := newOrdered(names, nodes)
	if err != nil {
		return nil, err
	}
	outer, err := newOrdered([]string{middle}, []parquet.Node{parquet.Repeated(inner)})
	if err != nil {
		return nil, err
	}
	return annotated{Node: outer, typ: typ}, nil
}

// variant lays out the two binaries of an unshredded variant.
func (l *layout) variant(c *column, physical []string) (parquet.Node, error) {
	c.first = l.leaves
	names := []string{"metadata", "value"}
	for _, name := range names {
		l.unbounded = append(l.unbounded, slices.Concat(physical, []string{name}))
	}
	l.leaves += len(names)
	c.end = l.leaves
	leaf := parquet.Required(parquet.Encoded(parquet.Leaf(parquet.ByteArrayType), &parquet.Plain))
	return newOrdered(names, []parquet.Node{leaf, leaf})
}

// leaf gives the Parquet type of a primitive type (PROTOCOL.md, Primitive Types).
func (l *layout) leaf(c *column, physical []string) (parquet.Node, error) {
	node, err := primitive(c.typ)
	if err != nil {
		return nil, &TypeError{Column: c.path, Reason: err.Error()}
	}
	c.first, c.end = l.leaves, l.leaves+1
	l.leaves++
	kind := node.Type().Kind()
	switch {
	case c.typ.Kind == value.Float, c.typ.Kind == value.Double:
		// Readers disagree about NaN in bounds.
		l.unbounded = append(l.unbounded, physical)
	case c.typ.Kind == value.BinaryKind, kind == parquet.FixedLenByteArray:
		// Bounds of fixed decimals must be ordered by sign; the library orders bytes.
		l.unbounded = append(l.unbounded, physical)
	}
	switch kind {
	case parquet.ByteArray, parquet.FixedLenByteArray, parquet.Int32, parquet.Int64:
		return parquet.Encoded(node, &parquet.RLEDictionary), nil
	default:
		return parquet.Encoded(node, &parquet.Plain), nil
	}
}

func primitive(t value.Type) (parquet.Node, error) {
	switch t.Kind {
	case value.Boolean:
		return parquet.Leaf(parquet.BooleanType), nil
	case value.Byte:
		return parquet.Int(8), nil
	case value.Short:
		return parquet.Int(16), nil
	case value.Integer:
		return parquet.Int(32), nil
	case value.Long:
		return parquet.Int(64), nil
	case value.Float:
		return parquet.Leaf(parquet.FloatType), nil
	case value.Double:
		return parquet.Leaf(parquet.DoubleType), nil
	case value.StringKind:
		return parquet.String(), nil
	case value.BinaryKind:
		return parquet.Leaf(parquet.ByteArrayType), nil
	case value.DateKind:
		return parquet.Date(), nil
	case value.TimestampKind:
		return parquet.TimestampAdjusted(parquet.Microsecond, true), nil
	case value.TimestampNTZ:
		return parquet.TimestampAdjusted(parquet.Microsecond, false), nil
	case value.DecimalKind:
		return decimalNode(t)
	default:
		return nil, fmt.Errorf("type %s cannot be written", strings.ToLower(t.String()))
	}
}

// The digits that fit the integers, and the most that Delta allows.
const (
	int32Digits = 9
	int64Digits = 18
	maxDigits   = 38
)

func decimalNode(t value.Type) (parquet.Node, error) {
	if t.Precision < 1 || t.Precision > maxDigits || t.Scale < 0 || t.Scale > t.Precision {
		return nil, fmt.Errorf("decimal(%d,%d) is not a type", t.Precision, t.Scale)
	}
	physical := parquet.FixedLenByteArrayType(decimalBytes(t.Precision))
	switch {
	case t.Precision <= int32Digits:
		physical = parquet.Int32Type
	case t.Precision <= int64Digits:
		physical = parquet.Int64Type
	}
	return parquet.Decimal(t.Scale, t.Precision, physical), nil
}

// decimalBytes is the least number of bytes that hold every number of so many digits.
func decimalBytes(precision int) int { return pow10(precision).BitLen()/8 + 1 }

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}
