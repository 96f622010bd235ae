package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"varve/internal/value"
)

// schemaOf gives the columns of a file with their natural types.
func schemaOf(root *parquet.Column) value.Schema {
	schema := value.Schema{}
	for _, c := range root.Columns() {
		if f, err := fieldOf(c); err == nil {
			schema = append(schema, f)
		}
	}
	return schema
}

func fieldOf(c *parquet.Column) (value.Field, error) {
	t, err := typeOf(c)
	if err != nil {
		return value.Field{}, err
	}
	f := value.Field{Name: c.Name(), Type: t, Nullable: c.Optional()}
	if id := c.ID(); id != 0 {
		f.Metadata = map[string]any{FieldID: int64(id)}
	}
	return f, nil
}

// typeOf gives the type that holds exactly what a column can hold.
func typeOf(c *parquet.Column) (value.Type, error) {
	if c.Repeated() { // a bare repeated field is a list (LogicalTypes.md, backward compatibility)
		element, err := typeOfOne(c)
		return value.Type{Kind: value.ArrayKind, Elem: &element}, err
	}
	return typeOfOne(c)
}

// typeOfOne is typeOf for one instance of a column that may be repeated.
func typeOfOne(c *parquet.Column) (value.Type, error) {
	if c.Leaf() {
		d, err := decoderOf(c)
		return d.typ, err
	}
	switch {
	case isVariant(c):
		return value.Type{Kind: value.VariantKind}, nil
	case isMap(c):
		key, val, err := mapParts(c)
		if err != nil {
			return value.Type{}, err
		}
		k, err := typeOf(key)
		if err != nil {
			return value.Type{}, err
		}
		v, err := typeOf(val)
		return value.Type{Kind: value.MapKind, Key: &k, Elem: &v, ElemNullable: val.Optional()}, err
	case isList(c):
		element, bare, err := listElement(c)
		if err != nil {
			return value.Type{}, err
		}
		typ := typeOf
		if bare {
			typ = typeOfOne
		}
		e, err := typ(element)
		return value.Type{Kind: value.ArrayKind, Elem: &e, ElemNullable: element.Optional()}, err
	}
	t := value.Type{Kind: value.StructKind}
	for _, child := range c.Columns() {
		if f, err := fieldOf(child); err == nil {
			t.Fields = append(t.Fields, f)
		}
	}
	if len(t.Fields) == 0 {
		return t, &TypeError{Column: c.Name(), Reason: "a group has no field that can be read"}
	}
	return t, nil
}

func logical(c *parquet.Column) any {
	if l := c.Type().LogicalType(); l != nil {
		return l.Value
	}
	return nil
}

func converted(c *parquet.Column, types ...deprecated.ConvertedType) bool {
	got := c.Type().ConvertedType()
	for _, t := range types {
		if got != nil && *got == t {
			return true
		}
	}
	return false
}

func isList(c *parquet.Column) bool {
	_, ok := logical(c).(*format.ListType)
	return ok || converted(c, deprecated.List)
}

func isMap(c *parquet.Column) bool {
	_, ok := logical(c).(*format.MapType)
	return ok || converted(c, deprecated.Map, deprecated.MapKeyValue)
}

func isVariant(c *parquet.Column) bool {
	_, ok := logical(c).(*format.VariantType)
	return ok
}

// listElement gives the element of an annotated list; bare says that it is the repeated level itself, as lists of two
// levels have it (LogicalTypes.md, Lists, backward compatibility).
func listElement(c *parquet.Column) (element *parquet.Column, bare bool, err error) {
	children := c.Columns()
	if len(children) != 1 || !children[0].Repeated() {
		return nil, false, &TypeError{Column: c.Name(), Reason: "a list of the file has no repeated level"}
	}
	middle := children[0]
	inner := middle.Columns()
	switch {
	case middle.Leaf(), len(inner) != 1, middle.Name() == "array", middle.Name() == c.Name()+"_tuple", inner[0].Repeated(),
		isList(middle), isMap(middle):
		return middle, true, nil
	default:
		return inner[0], false, nil
	}
}

// mapParts gives the key and the value of an annotated map: by their names, or else by their places.
func mapParts(c *parquet.Column) (key, val *parquet.Column, err error) {
	children := c.Columns()
	if len(children) != 1 || !children[0].Repeated() || len(children[0].Columns()) != 2 {
		return nil, nil, &TypeError{Column: c.Name(), Reason: "a map of the file has no repeated key and value"}
	}
	pair := children[0].Columns()
	if pair[0].Name() == "value" && pair[1].Name() == "key" {
		return pair[1], pair[0], nil
	}
	return pair[0], pair[1], nil
}

// decoder gives the values of a leaf.
type decoder struct {
	// typ is the type that holds exactly what the leaf can hold.
	typ value.Type
	// decode gives a value of that type.
	decode func(parquet.Value) (value.Value, error)
	// legacy says that the leaf is an INT96, which says nothing of time zones.
	legacy bool
}

func decoderOf(c *parquet.Column) (decoder, error) {
	refused := &TypeError{Column: c.Name(), Reason: "no table has values of the file's type"}
	switch kind := c.Type().Kind(); kind {
	case parquet.Boolean:
		return decoder{typ: value.Type{Kind: value.Boolean}, decode: func(v parquet.Value) (value.Value, error) { return v.Boolean(), nil }}, nil
	case parquet.Float:
		return decoder{typ: value.Type{Kind: value.Float}, decode: func(v parquet.Value) (value.Value, error) { return v.Float(), nil }}, nil
	case parquet.Double:
		return decoder{typ: value.Type{Kind: value.Double}, decode: func(v parquet.Value) (value.Value, error) { return v.Double(), nil }}, nil
	case parquet.Int96:
		return decoder{typ: value.Type{Kind: value.TimestampKind}, decode: int96Micros, legacy: true}, nil
	case parquet.Int32, parquet.Int64:
		if d, ok := integerDecoder(c, kind); ok {
			return d, nil
		}
	case parquet.ByteArray, parquet.FixedLenByteArray:
		if d, ok := bytesDecoder(c); ok {
			return d, nil
		}
	}
	return decoder{}, refused
}

func whole(v parquet.Value, kind parquet.Kind) int64 {
	if kind == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

func integerDecoder(c *parquet.Column, kind parquet.Kind) (decoder, bool) {
	plain := func(k value.Kind) decoder {
		return decoder{typ: value.Type{Kind: k}, decode: func(v parquet.Value) (value.Value, error) { return whole(v, kind), nil }}
	}
	switch l := logical(c).(type) {
	case *format.IntType:
		return annotatedInteger(l, kind)
	case *format.DecimalType:
		t, ok := decimalType(l)
		return decoder{typ: t, decode: func(v parquet.Value) (value.Value, error) {
			return inDigits(value.Decimal{Unscaled: big.NewInt(whole(v, kind)), Scale: t.Scale}, t)
		}}, ok
	case *format.DateType:
		return decoder{typ: value.Type{Kind: value.DateKind}, decode: func(v parquet.Value) (value.Value, error) {
			return value.Date(v.Int32()), nil
		}}, kind == parquet.Int32
	case *format.TimestampType:
		return timestampDecoder(l), kind == parquet.Int64
	case nil:
		if kind == parquet.Int32 {
			return plain(value.Integer), true
		}
		return plain(value.Long), true
	default:
		return decoder{}, false
	}
}

// annotatedInteger gives the type that holds a signed or an unsigned integer.
func annotatedInteger(l *format.IntType, kind parquet.Kind) (decoder, bool) {
	kinds := map[int8]value.Kind{8: value.Byte, 16: value.Short, 32: value.Integer, 64: value.Long}
	if (l.BitWidth == 64) != (kind == parquet.Int64) || kinds[l.BitWidth] == 0 {
		return decoder{}, false
	}
	if l.IsSigned {
		t := value.Type{Kind: kinds[l.BitWidth]}
		return decoder{typ: t, decode: func(v parquet.Value) (value.Value, error) {
			n := whole(v, kind)
			if !fits(n, int(l.BitWidth)) {
				return nil, errors.New("a number is out of the range of its type")
			}
			return n, nil
		}}, true
	}
	if l.BitWidth == 64 {
		return decoder{typ: value.Type{Kind: value.DecimalKind, Precision: 20}, decode: func(v parquet.Value) (value.Value, error) {
			return value.Decimal{Unscaled: new(big.Int).SetUint64(v.Uint64())}, nil
		}}, true
	}
	return decoder{typ: value.Type{Kind: kinds[2*l.BitWidth]}, decode: func(v parquet.Value) (value.Value, error) {
		n := int64(v.Uint32())
		if n >= 1<<l.BitWidth {
			return nil, errors.New("a number is out of the range of its type")
		}
		return n, nil
	}}, true
}

func timestampDecoder(l *format.TimestampType) decoder {
	k := value.TimestampNTZ
	if l.IsAdjustedToUTC {
		k = value.TimestampKind
	}
	return decoder{typ: value.Type{Kind: k}, decode: func(v parquet.Value) (value.Value, error) {
		n, ok := micros(l.Unit.Value, v.Int64())
		switch {
		case !ok:
			return nil, errors.New("a timestamp is out of range")
		case k == value.TimestampKind:
			return value.Timestamp(n), nil
		default:
			return value.LocalTimestamp(n), nil
		}
	}}
}

// micros turns a time in a unit into microseconds: nanoseconds are rounded down, also before 1970.
func micros(unit any, n int64) (int64, bool) {
	switch unit.(type) {
	case *format.MilliSeconds:
		return n * 1000, n <= math.MaxInt64/1000 && n >= math.MinInt64/1000
	case *format.NanoSeconds:
		if n%1000 < 0 {
			return n/1000 - 1, true
		}
		return n / 1000, true
	default:
		return n, true
	}
}

// int96Micros reads nanoseconds of a day, then the Julian day.
func int96Micros(v parquet.Value) (value.Value, error) {
	const (
		epoch     = 2440588 // the Julian day of 1970-01-01
		dayMicros = 86400 * 1000000
	)
	raw := v.Int96()
	nanos := int64(uint64(raw[0]) | uint64(raw[1])<<32) //nolint:gosec // the bits are meant
	days := int64(raw[2]) - epoch
	if days > math.MaxInt64/dayMicros-1 || days < math.MinInt64/dayMicros+1 || nanos < 0 || nanos > dayMicros*1000 {
		return nil, errors.New("a timestamp is out of range")
	}
	return value.Timestamp(days*dayMicros + nanos/1000), nil
}

func decimalType(l *format.DecimalType) (value.Type, bool) {
	t := value.Type{Kind: value.DecimalKind, Precision: int(l.Precision), Scale: int(l.Scale)}
	return t, t.Precision >= 1 && t.Precision <= maxDigits && t.Scale >= 0 && t.Scale <= t.Precision
}

func inDigits(d value.Decimal, t value.Type) (value.Value, error) {
	if _, ok := rescale(d, t); !ok {
		return nil, fmt.Errorf("a decimal has more than %d digits", t.Precision)
	}
	return d, nil
}

func bytesDecoder(c *parquet.Column) (decoder, bool) {
	switch l := logical(c).(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return decoder{typ: value.Type{Kind: value.StringKind}, decode: func(v parquet.Value) (value.Value, error) {
			return string(v.ByteArray()), nil
		}}, c.Type().Kind() == parquet.ByteArray
	case *format.DecimalType:
		t, ok := decimalType(l)
		return decoder{typ: t, decode: func(v parquet.Value) (value.Value, error) {
			return inDigits(value.Decimal{Unscaled: signed(v.ByteArray()), Scale: t.Scale}, t)
		}}, ok
	case nil, *format.BsonType, *format.UUIDType:
		return decoder{typ: value.Type{Kind: value.BinaryKind}, decode: func(v parquet.Value) (value.Value, error) {
			return value.Binary(append([]byte{}, v.ByteArray()...)), nil
		}}, !converted(c, deprecated.Interval)
	default:
		return decoder{}, false
	}
}

// signed reads a big-endian number in two's complement.
func signed(b []byte) *big.Int {
	if len(b) == 8 {
		return big.NewInt(int64(binary.BigEndian.Uint64(b))) //nolint:gosec // the bits are meant
	}
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return n
}
