package interop_test

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"varve/internal/value"
)

func kind(k value.Kind) value.Type { return value.Type{Kind: k} }

func decimal(precision, scale int) value.Type {
	return value.Type{Kind: value.DecimalKind, Precision: precision, Scale: scale}
}

func array(elem value.Type) value.Type {
	return value.Type{Kind: value.ArrayKind, Elem: &elem, ElemNullable: true}
}

func mapOf(key, elem value.Type) value.Type {
	return value.Type{Kind: value.MapKind, Key: &key, Elem: &elem, ElemNullable: true}
}

func structOf(fields ...value.Field) value.Type {
	return value.Type{Kind: value.StructKind, Fields: fields}
}

// column is a column that may be null.
func column(name string, t value.Type) value.Field {
	return value.Field{Name: name, Type: t, Nullable: true}
}

// people is a plain schema.
func people() value.Schema {
	return value.Schema{column("id", kind(value.Long)), column("name", kind(value.StringKind))}
}

// scalars is a column of every type that is not nested.
func scalars() value.Schema {
	return value.Schema{
		{Name: "id", Type: kind(value.Long)},
		column("flag", kind(value.Boolean)), column("tiny", kind(value.Byte)), column("small", kind(value.Short)),
		column("whole", kind(value.Integer)), column("real", kind(value.Float)), column("double", kind(value.Double)),
		column("price", decimal(9, 2)), column("amount", decimal(18, 4)), column("huge", decimal(38, 10)),
		column("text", kind(value.StringKind)), column("bytes", kind(value.BinaryKind)), column("day", kind(value.DateKind)),
		column("at", kind(value.TimestampKind)),
	}
}

// scalarRow is the n-th row of scalars: the greater n, the greater is each value.
func scalarRow(n int64) value.Row {
	const day = int64(24 * 3600 * 1_000_000)
	return value.Row{
		n, n%2 == 0, n, n * 100, n * 10_000, float32(n) + 0.25, float64(n) * 1.5e10,
		value.Decimal{Unscaled: big.NewInt(n*1000 + 99), Scale: 2},
		value.Decimal{Unscaled: big.NewInt(n*1_000_000_000 + 1), Scale: 4},
		value.Decimal{Unscaled: new(big.Int).Mul(big.NewInt(n), new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)), Scale: 10},
		fmt.Sprintf("%s %03d", strings.Repeat("text", 5), n),
		value.Binary{byte(n), 0, 255},
		value.Date(n * 100),
		value.Timestamp(n*day + 123_456),
	}
}

// extremes are rows of scalars at the ends of what its types hold.
func extremes() []value.Row {
	digits := func(n int64) *big.Int {
		return new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil), big.NewInt(1))
	}
	highest := value.Row{
		int64(math.MaxInt64), true, int64(math.MaxInt8), int64(math.MaxInt16), int64(math.MaxInt32), float32(math.MaxFloat32), math.MaxFloat64,
		value.Decimal{Unscaled: digits(9), Scale: 2},
		value.Decimal{Unscaled: digits(18), Scale: 4},
		value.Decimal{Unscaled: digits(38), Scale: 10},
		strings.Repeat("\U0010ffff", 40),
		value.Binary{0xff, 0xff},
		value.Date(2932896), value.Timestamp(253402300799_999_999),
	}
	lowest := value.Row{
		int64(math.MinInt64), false, int64(math.MinInt8), int64(math.MinInt16), int64(math.MinInt32), float32(-math.MaxFloat32), -math.MaxFloat64,
		value.Decimal{Unscaled: new(big.Int).Neg(digits(9)), Scale: 2},
		value.Decimal{Unscaled: new(big.Int).Neg(digits(18)), Scale: 4},
		value.Decimal{Unscaled: new(big.Int).Neg(digits(38)), Scale: 10},
		"",
		value.Binary{},
		value.Date(-719162), value.Timestamp(-62135596800_000_000 + 1),
	}
	tiny := scalarRow(3)
	tiny[5], tiny[6] = float32(math.SmallestNonzeroFloat32), math.SmallestNonzeroFloat64
	tiny[10], tiny[13] = strings.Repeat("𝄞é", 30)+"\x00\"\\\n", value.Timestamp(-1)
	none := scalarRow(4)
	none[5], none[6] = float32(math.NaN()), math.NaN()
	endless := scalarRow(5)
	endless[5], endless[6] = float32(math.Inf(-1)), math.Inf(1)
	return []value.Row{highest, lowest, tiny, none, endless, onlyID(scalars(), 6)}
}

// onlyID is a row that has its first column and nothing else.
func onlyID(s value.Schema, id int64) value.Row {
	row := make(value.Row, len(s))
	row[0] = id
	return row
}

// edges is columns whose statistics are shorter than their values, or else near a trap.
func edges() value.Schema {
	return value.Schema{
		column("id", kind(value.Long)), column("text", kind(value.StringKind)), column("at", kind(value.TimestampKind)),
		column("local", kind(value.TimestampNTZ)), column("double", kind(value.Double)), column("price", decimal(38, 10)), column("maybe", kind(value.Double)),
	}
}

// edgeRows are the rows of the n-th file of edges: its least, its greatest, and one that has NaN and nulls.
func edgeRows(n int64) []value.Row {
	row := func(id int64, tail string) value.Row {
		micros := n*1_000_000_000 + id*1_000_000 + 999
		return value.Row{
			id, strconv.FormatInt(n, 10) + strings.Repeat("é", 40) + tail, value.Timestamp(micros), value.LocalTimestamp(-micros), float64(n) + float64(id)/3,
			value.Decimal{Unscaled: big.NewInt(n*1_000_000 + id), Scale: 10},
			float64(n) + float64(id)/3,
		}
	}
	none := onlyID(edges(), 3)
	none[6] = math.NaN()
	return []value.Row{row(1, "a"), row(2, "𝄞"), none}
}

// nested is columns of values in values.
func nested() value.Schema {
	text, whole := kind(value.StringKind), kind(value.Long)
	address := structOf(column("street", text), column("at", structOf(column("x", kind(value.Double)), column("y", decimal(9, 2)))))
	return value.Schema{
		column("id", whole),
		column("address", address),
		column("tags", array(text)),
		column("matrix", array(array(whole))),
		column("visits", array(structOf(column("day", kind(value.DateKind)), column("notes", array(text))))),
		column("scores", mapOf(text, whole)),
		column("deep", mapOf(text, array(structOf(column("k", text), column("m", mapOf(whole, address)))))),
	}
}

// nestedRows are rows of nested, with nulls and emptiness at every depth.
func nestedRows() []value.Row {
	at := func(street value.Value, x value.Value) value.Struct {
		return value.Struct{{Name: "street", Value: street}, {Name: "at", Value: value.Struct{
			{Name: "x", Value: x}, {Name: "y", Value: value.Decimal{Unscaled: big.NewInt(125), Scale: 2}},
		}}}
	}
	visit := func(day, notes value.Value) value.Struct {
		return value.Struct{{Name: "day", Value: day}, {Name: "notes", Value: notes}}
	}
	return []value.Row{
		{
			int64(1), at("Elm", 1.5),
			value.List{"a", nil, ""},
			value.List{value.List{int64(1), nil}, nil, value.List{}},
			value.List{visit(value.Date(20000), value.List{"x"}), nil, visit(nil, nil), visit(nil, value.List{})},
			value.Map{{Key: "a", Value: int64(1)}, {Key: "b", Value: nil}},
			value.Map{{Key: "p", Value: value.List{
				value.Struct{{Name: "k", Value: "k"}, {Name: "m", Value: value.Map{{Key: int64(7), Value: at(nil, nil)}, {Key: int64(8), Value: nil}}}},
				nil,
				value.Struct{{Name: "k", Value: nil}, {Name: "m", Value: nil}},
			}}, {Key: "q", Value: nil}, {Key: "r", Value: value.List{}}},
		},
		{
			int64(2),
			value.Struct{{Name: "street", Value: nil}, {Name: "at", Value: nil}},
			value.List{},
			value.List{},
			value.List{},
			value.Map{},
			value.Map{},
		},
		onlyID(nested(), 3),
	}
}
