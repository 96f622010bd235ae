package columnar_test

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/stretchr/testify/require"

	"varve/internal/columnar"
	"varve/internal/value"
)

// foreign writes a file as another writer would: values with their levels, a row after the other.
func foreign(t *testing.T, root parquet.Node, rows ...parquet.Row) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewWriter(&out, parquet.NewSchema("other", root))
	for _, row := range rows {
		_, err := w.WriteRows([]parquet.Row{row})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func decimal(n int64, scale int) value.Decimal {
	return value.Decimal{Unscaled: big.NewInt(n), Scale: scale}
}

func of(k value.Kind) value.Type { return value.Type{Kind: k} }

func decimalOf(p, s int) value.Type {
	return value.Type{Kind: value.DecimalKind, Precision: p, Scale: s}
}

func int96(days uint32, nanos uint64) deprecated.Int96 {
	return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), days}
}

func TestValuesOfEveryPhysicalTypeAreRead(t *testing.T) {
	t.Parallel()
	const day = 86400 * 1000000
	micro, milli, nano := parquet.Microsecond, parquet.Millisecond, parquet.Nanosecond
	for name, c := range map[string]struct {
		node parquet.Node
		raw  parquet.Value
		as   value.Type
		want value.Value
	}{
		"int96 after 1970":        {parquet.Leaf(parquet.Int96Type), parquet.Int96Value(int96(2440589, 1500)), of(value.TimestampKind), value.Timestamp(day + 1)},
		"int96 before 1970":       {parquet.Leaf(parquet.Int96Type), parquet.Int96Value(int96(2440587, 86399999999999)), of(value.TimestampKind), value.Timestamp(-1)},
		"int96 without zone":      {parquet.Leaf(parquet.Int96Type), parquet.Int96Value(int96(2440588, 0)), of(value.TimestampNTZ), value.LocalTimestamp(0)},
		"millis":                  {parquet.TimestampAdjusted(milli, true), parquet.Int64Value(-7), of(value.TimestampKind), value.Timestamp(-7000)},
		"micros":                  {parquet.TimestampAdjusted(micro, true), parquet.Int64Value(-7), of(value.TimestampKind), value.Timestamp(-7)},
		"nanos":                   {parquet.TimestampAdjusted(nano, true), parquet.Int64Value(7999), of(value.TimestampKind), value.Timestamp(7)},
		"nanos before 1970":       {parquet.TimestampAdjusted(nano, true), parquet.Int64Value(-1), of(value.TimestampKind), value.Timestamp(-1)},
		"local millis":            {parquet.TimestampAdjusted(milli, false), parquet.Int64Value(7), of(value.TimestampNTZ), value.LocalTimestamp(7000)},
		"local as instant":        {parquet.TimestampAdjusted(micro, false), parquet.Int64Value(7), of(value.TimestampKind), value.Timestamp(7)},
		"date as local timestamp": {parquet.Date(), parquet.Int32Value(-1), of(value.TimestampNTZ), value.LocalTimestamp(-day)},
		"uint8":                   {parquet.Uint(8), parquet.Int32Value(255), of(value.Short), int64(255)},
		"uint16":                  {parquet.Uint(16), parquet.Int32Value(65535), of(value.Integer), int64(65535)},
		"uint32":                  {parquet.Uint(32), parquet.Int32Value(-1), of(value.Long), int64(1<<32 - 1)},
		"uint64":                  {parquet.Uint(64), parquet.Int64Value(-1), decimalOf(20, 0), value.Decimal{Unscaled: new(big.Int).SetUint64(1<<64 - 1)}},
		"byte without width":      {parquet.Leaf(parquet.Int32Type), parquet.Int32Value(-128), of(value.Byte), int64(-128)},
		"byte as long":            {parquet.Int(8), parquet.Int32Value(-5), of(value.Long), int64(-5)},
		"int as long":             {parquet.Int(32), parquet.Int32Value(5), of(value.Long), int64(5)},
		"int as double":           {parquet.Int(32), parquet.Int32Value(5), of(value.Double), float64(5)},
		"float as double":         {parquet.Leaf(parquet.FloatType), parquet.FloatValue(0.5), of(value.Double), 0.5},
		"int as decimal":          {parquet.Int(32), parquet.Int32Value(-5), decimalOf(12, 2), decimal(-500, 2)},
		"long as decimal":         {parquet.Int(64), parquet.Int64Value(5), decimalOf(21, 1), decimal(50, 1)},
		"decimal int32":           {parquet.Decimal(2, 5, parquet.Int32Type), parquet.Int32Value(-123), decimalOf(5, 2), decimal(-123, 2)},
		"decimal int64":           {parquet.Decimal(2, 12, parquet.Int64Type), parquet.Int64Value(-123), decimalOf(12, 2), decimal(-123, 2)},
		"decimal fixed":           {parquet.Decimal(2, 5, parquet.FixedLenByteArrayType(3)), parquet.FixedLenByteArrayValue([]byte{0xff, 0xff, 0x85}), decimalOf(5, 2), decimal(-123, 2)},
		"decimal bytes":           {parquet.Decimal(2, 5, parquet.ByteArrayType), parquet.ByteArrayValue([]byte{0x85}), decimalOf(5, 2), decimal(-123, 2)},
		"decimal wider":           {parquet.Decimal(2, 5, parquet.Int32Type), parquet.Int32Value(-123), decimalOf(38, 4), decimal(-12300, 4)},
		"text without annotation": {parquet.Leaf(parquet.ByteArrayType), parquet.ByteArrayValue([]byte("é")), of(value.StringKind), "é"},
		"json as text":            {parquet.JSON(), parquet.ByteArrayValue([]byte("{}")), of(value.StringKind), "{}"},
		"enum as text":            {parquet.Enum(), parquet.ByteArrayValue([]byte("A")), of(value.StringKind), "A"},
		"fixed binary":            {parquet.Leaf(parquet.FixedLenByteArrayType(2)), parquet.FixedLenByteArrayValue([]byte{1, 2}), of(value.BinaryKind), value.Binary{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := foreign(t, parquet.Group{"c": parquet.Optional(c.node)}, parquet.Row{c.raw.Level(0, 1, 0)}, parquet.Row{parquet.Value{}.Level(0, 0, 0)})
			columns := value.Schema{{Name: "c", Type: c.as, Nullable: true}}
			require.Equal(t, []value.Row{{c.want}, {nil}}, read(t, file, columnar.ReadOptions{Columns: columns}))
		})
	}
}

func TestLossyReadingIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node parquet.Node
		raw  parquet.Value
		as   value.Type
	}{
		"long as int":                {parquet.Int(64), parquet.Int64Value(1), of(value.Integer)},
		"long as double":             {parquet.Int(64), parquet.Int64Value(1), of(value.Double)},
		"double as float":            {parquet.Leaf(parquet.DoubleType), parquet.DoubleValue(1), of(value.Float)},
		"decimal of fewer digits":    {parquet.Decimal(2, 9, parquet.Int32Type), parquet.Int32Value(1), decimalOf(8, 2)},
		"decimal of smaller scale":   {parquet.Decimal(2, 9, parquet.Int32Type), parquet.Int32Value(1), decimalOf(20, 1)},
		"int as narrow decimal":      {parquet.Int(32), parquet.Int32Value(1), decimalOf(9, 0)},
		"text as long":               {parquet.String(), parquet.ByteArrayValue([]byte("1")), of(value.Long)},
		"instant as local":           {parquet.TimestampAdjusted(parquet.Microsecond, true), parquet.Int64Value(1), of(value.TimestampNTZ)},
		"time of day":                {parquet.Time(parquet.Microsecond), parquet.Int64Value(1), of(value.Long)},
		"leaf as struct":             {parquet.Int(64), parquet.Int64Value(1), value.Type{Kind: value.StructKind}},
		"leaf as variant":            {parquet.Int(64), parquet.Int64Value(1), of(value.VariantKind)},
		"instant as date":            {parquet.Timestamp(parquet.Microsecond), parquet.Int64Value(1), of(value.DateKind)},
		"boolean as a whole number":  {parquet.Leaf(parquet.BooleanType), parquet.BooleanValue(true), of(value.Integer)},
		"decimal as a whole number":  {parquet.Decimal(0, 9, parquet.Int32Type), parquet.Int32Value(1), of(value.Long)},
		"unsigned as the same width": {parquet.Uint(64), parquet.Int64Value(1), of(value.Long)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := foreign(t, parquet.Group{"c": parquet.Optional(c.node)}, parquet.Row{c.raw.Level(0, 1, 0)})
			rows, err := collect(open(t, file).Rows(columnar.ReadOptions{Columns: value.Schema{{Name: "c", Type: c.as}}}))
			var refused *columnar.TypeError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "c", refused.Column)
			require.Empty(t, rows)
		})
	}
}

func TestNumberTooLargeForItsColumnIsRefused(t *testing.T) {
	t.Parallel()
	file := foreign(t, parquet.Group{"c": parquet.Leaf(parquet.Int32Type)}, parquet.Row{parquet.Int32Value(128).Level(0, 0, 0)})
	_, err := collect(open(t, file).Rows(columnar.ReadOptions{Columns: value.Schema{{Name: "c", Type: of(value.Byte)}}}))
	var format *columnar.FormatError
	require.ErrorAs(t, err, &format)
}

type listNode struct {
	parquet.Node
	typ parquet.Type
}

func (l listNode) Type() parquet.Type { return l.typ }

func TestListsOfTwoLevelsAndBareOnesAreRead(t *testing.T) {
	t.Parallel()
	number := parquet.Leaf(parquet.Int32Type)
	list := parquet.List(number).Type()
	integer := of(value.Integer)
	wrapped := value.Type{Kind: value.StructKind, Fields: []value.Field{{Name: "x", Type: integer}}}
	items := func(v ...value.Value) value.List { return v }
	x := func(n int64) value.Value { return value.Struct{{Name: "x", Value: n}} }
	for name, c := range map[string]struct {
		node parquet.Node
		elem value.Type
		def  int
		want value.List
	}{
		"repeated leaf in a list":         {parquet.Optional(listNode{parquet.Group{"element": parquet.Repeated(number)}, list}), integer, 2, items(int64(1), int64(2))},
		"repeated group named array":      {parquet.Optional(listNode{parquet.Group{"array": parquet.Repeated(parquet.Group{"x": number})}, list}), wrapped, 2, items(x(1), x(2))},
		"repeated group named as tuple":   {parquet.Optional(listNode{parquet.Group{"c_tuple": parquet.Repeated(parquet.Group{"x": number})}, list}), wrapped, 2, items(x(1), x(2))},
		"three levels with other names":   {parquet.Optional(listNode{parquet.Group{"bag": parquet.Repeated(parquet.Group{"item": parquet.Optional(number)})}, list}), integer, 3, items(int64(1), int64(2))},
		"bare repeated leaf":              {parquet.Repeated(number), integer, 1, items(int64(1), int64(2))},
		"bare repeated group":             {parquet.Repeated(parquet.Group{"x": number}), wrapped, 1, items(x(1), x(2))},
		"three levels, list not declared": {parquet.Optional(parquet.Group{"list": parquet.Repeated(parquet.Group{"element": number})}), integer, 2, items(int64(1), int64(2))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := []parquet.Row{
				{parquet.Int32Value(1).Level(0, c.def, 0), parquet.Int32Value(2).Level(1, c.def, 0)},
				{parquet.Value{}.Level(0, 0, 0)},
			}
			file := foreign(t, parquet.Group{"c": c.node}, rows...)
			columns := value.Schema{{Name: "c", Type: value.Type{Kind: value.ArrayKind, Elem: &c.elem}}}
			want := []value.Row{{c.want}, {nil}}
			if c.node.Repeated() {
				want[1] = value.Row{value.List{}}
			}
			require.Equal(t, want, read(t, file, columnar.ReadOptions{Columns: columns}))
		})
	}
}

func TestMapsWithOddNamesAreRead(t *testing.T) {
	t.Parallel()
	text, number := parquet.String(), parquet.Optional(parquet.Leaf(parquet.Int64Type))
	typ := parquet.Map(text, number).Type()
	str, long := of(value.StringKind), of(value.Long)
	columns := value.Schema{{Name: "m", Type: value.Type{Kind: value.MapKind, Key: &str, Elem: &long, ElemNullable: true}}}
	for _, names := range [][2]string{{"key", "value"}, {"a", "b"}, {"k", "v"}} {
		file := foreign(t, parquet.Group{"m": listNode{parquet.Group{"entries": parquet.Repeated(parquet.Group{names[0]: text, names[1]: number})}, typ}},
			parquet.Row{
				parquet.ByteArrayValue([]byte("a")).Level(0, 1, 0), parquet.ByteArrayValue([]byte("b")).Level(1, 1, 0),
				parquet.Int64Value(1).Level(0, 2, 1), parquet.Value{}.Level(1, 1, 1),
			},
			parquet.Row{parquet.Value{}.Level(0, 0, 0), parquet.Value{}.Level(0, 0, 1)})
		require.Equal(t, []value.Row{{value.Map{{Key: "a", Value: int64(1)}, {Key: "b"}}}, {value.Map{}}}, read(t, file, columnar.ReadOptions{Columns: columns}))
	}
}

func TestShreddedVariantsAreRefused(t *testing.T) {
	t.Parallel()
	node, err := parquet.ShreddedVariant(parquet.Leaf(parquet.Int64Type))
	require.NoError(t, err)
	file := foreign(t, parquet.Group{"v": node})
	_, err = collect(open(t, file).Rows(columnar.ReadOptions{Columns: value.Schema{{Name: "v", Type: of(value.VariantKind)}}}))
	var refused *columnar.TypeError
	require.ErrorAs(t, err, &refused)
}

func TestEncodingsOfOtherWritersAreRead(t *testing.T) {
	t.Parallel()
	encoded := func(n parquet.Node, e string) parquet.Node {
		switch e {
		case "plain":
			return parquet.Encoded(n, &parquet.Plain)
		case "dictionary":
			return parquet.Encoded(n, &parquet.RLEDictionary)
		default:
			if n.Type().Kind() == parquet.ByteArray {
				return parquet.Encoded(n, &parquet.DeltaByteArray)
			}
			return parquet.Encoded(n, &parquet.DeltaBinaryPacked)
		}
	}
	columns := value.Schema{{Name: "n", Type: of(value.Long)}, {Name: "s", Type: of(value.StringKind)}}
	for _, version := range []int{1, 2} {
		for _, encoding := range []string{"plain", "dictionary", "delta"} {
			var out bytes.Buffer
			root := parquet.Group{"n": encoded(parquet.Int(64), encoding), "s": parquet.Optional(encoded(parquet.String(), encoding))}
			w := parquet.NewWriter(&out, parquet.NewSchema("other", root), parquet.DataPageVersion(version), parquet.PageBufferSize(512), parquet.MaxRowsPerRowGroup(700))
			want := make([]value.Row, 2000)
			for i := range want {
				text := binary.BigEndian.AppendUint16([]byte("prefix"), uint16(i%50)+0x2020)
				want[i] = value.Row{int64(i * i), string(text)}
				_, err := w.WriteRows([]parquet.Row{{parquet.Int64Value(int64(i*i)).Level(0, 0, 0), parquet.ByteArrayValue(text).Level(0, 1, 1)}})
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			require.Equal(t, want, read(t, out.Bytes(), columnar.ReadOptions{Columns: columns}), "%s, pages of version %d", encoding, version)
		}
	}
}
