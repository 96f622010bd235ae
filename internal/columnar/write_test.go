package columnar_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"varve/internal/columnar"
	"varve/internal/value"
)

func nullable(name string, t value.Type) value.Field {
	return value.Field{Name: name, Type: t, Nullable: true}
}

func structOf(fields ...value.Field) value.Type {
	return value.Type{Kind: value.StructKind, Fields: fields}
}

func arrayOf(elem value.Type) value.Type {
	return value.Type{Kind: value.ArrayKind, Elem: &elem, ElemNullable: true}
}

func mapOf(key, elem value.Type) value.Type {
	return value.Type{Kind: value.MapKind, Key: &key, Elem: &elem, ElemNullable: true}
}

func TestParquetTypesAreThoseOfDelta(t *testing.T) {
	t.Parallel()
	long, text := of(value.Long), of(value.StringKind)
	schema := value.Schema{
		nullable("z_byte", of(value.Byte)), nullable("y_short", of(value.Short)), nullable("x_int", of(value.Integer)),
		{Name: "w_long", Type: long},
		nullable("v_date", of(value.DateKind)), nullable("u_ts", of(value.TimestampKind)),
		nullable("t_ntz", of(value.TimestampNTZ)), nullable("s_d9", decimalOf(9, 2)), nullable("r_d18", decimalOf(18, 2)),
		nullable("q_d19", decimalOf(19, 2)), nullable("p_d38", decimalOf(38, 2)), nullable("o_text", text), nullable("n_bytes", of(value.BinaryKind)),
		nullable("m_list", arrayOf(long)), nullable("l_map", mapOf(text, long)), nullable("k_struct", structOf(nullable("b", long), nullable("a", text))),
		nullable("j_variant", of(value.VariantKind)), nullable("void", of(value.Void)),
	}
	file, _ := write(t, schema, nil, columnar.WriteOptions{})
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	want := `message spark_schema {
	optional int32 z_byte (INT(8,true));
	optional int32 y_short (INT(16,true));
	optional int32 x_int (INT(32,true));
	required int64 w_long (INT(64,true));
	optional int32 v_date (DATE);
	optional int64 u_ts (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional int64 t_ntz (TIMESTAMP(isAdjustedToUTC=false,unit=MICROS));
	optional int32 s_d9 (DECIMAL(9,2));
	optional int64 r_d18 (DECIMAL(18,2));
	optional fixed_len_byte_array(9) q_d19 (DECIMAL(19,2));
	optional fixed_len_byte_array(16) p_d38 (DECIMAL(38,2));
	optional binary o_text (STRING);
	optional binary n_bytes;
	optional group m_list (LIST) {
		repeated group list {
			optional int64 element (INT(64,true));
		}
	}
	optional group l_map (MAP) {
		repeated group key_value {
			required binary key (STRING);
			optional int64 value (INT(64,true));
		}
	}
	optional group k_struct {
		optional int64 b (INT(64,true));
		optional binary a (STRING);
	}
	optional group j_variant {
		required binary metadata;
		required binary value;
	}
}`
	require.Equal(t, want, f.Schema().String())
	require.Equal(t, schema[:len(schema)-2].Names(), open(t, file).Schema()[:len(schema)-2].Names())
}

func TestHiddenColumnsFollowAndHaveNoStatistics(t *testing.T) {
	t.Parallel()
	schema := value.Schema{nullable("b", of(value.Long)), nullable("a", of(value.StringKind))}
	hidden := value.Schema{nullable("_varve_seq", structOf(nullable("n", of(value.Long))))}
	seq := func(n int64) value.Value { return value.Struct{{Name: "n", Value: n}} }
	rows := []value.Row{{int64(1), "x", seq(7)}, {nil, nil, nil}}
	file, stats := write(t, schema, rows, columnar.WriteOptions{Hidden: hidden})
	require.True(t, open(t, file).Has("_varve_seq"))
	require.False(t, open(t, file).Has("n"))
	require.Equal(t, []string{"b", "a", "_varve_seq"}, open(t, file).Schema().Names())
	require.Equal(t, rows, read(t, file, columnar.ReadOptions{}))
	require.Equal(t, []value.Row{{seq(7), nil, "x"}, {nil, nil, nil}},
		read(t, file, columnar.ReadOptions{Columns: value.Schema{hidden[0], nullable("later", of(value.Long)), schema[1]}}))
	require.Equal(t, map[string]int64{"a": 1, "b": 1}, stats.NullCount)
}

func TestColumnsOfNothingButMissingOnesStillCountTheRows(t *testing.T) {
	t.Parallel()
	file, _ := write(t, value.Schema{nullable("a", of(value.Long))}, []value.Row{{int64(1)}, {nil}}, columnar.WriteOptions{})
	require.Equal(t, []value.Row{{nil}, {nil}}, read(t, file, columnar.ReadOptions{Columns: value.Schema{nullable("b", of(value.Long))}}))
	require.Equal(t, []value.Row{{}, {}}, read(t, file, columnar.ReadOptions{Columns: value.Schema{}}))
}

func TestStatisticsAreThoseOfTheValues(t *testing.T) {
	t.Parallel()
	long := of(value.Long)
	schema := value.Schema{
		nullable("n", long), nullable("s", structOf(nullable("d", decimalOf(20, 2)), nullable("f", of(value.Double)))),
		nullable("nan", of(value.Double)), nullable("b", of(value.Boolean)), nullable("bin", of(value.BinaryKind)),
		nullable("list", arrayOf(long)), nullable("void", of(value.Void)), nullable("empty", long),
		{
			Name: "text", Type: of(value.StringKind), Nullable: true,
			Metadata: map[string]any{columnar.PhysicalName: "col-1", columnar.FieldID: json.Number("5")},
		},
	}
	long1, long2 := strings.Repeat("é", 100), strings.Repeat("ü", 100)
	inner := func(d int64, f float64) value.Value {
		return value.Struct{{Name: "d", Value: decimal(d, 2)}, {Name: "f", Value: f}}
	}
	rows := []value.Row{
		{int64(3), inner(-5, 1), math.NaN(), true, value.Binary{1}, value.List{}, nil, nil, long2},
		{int64(-4), nil, 1.5, false, value.Binary{2}, value.List{int64(1)}, nil, nil, long1},
		{nil, inner(7, -1), nil, nil, nil, nil, nil, nil, nil},
	}
	file, stats := write(t, schema, rows, columnar.WriteOptions{})
	require.Equal(t, columnar.Stats{
		NumRecords: 3,
		Min:        map[string]value.Value{"n": int64(-4), "s.d": decimal(-5, 2), "s.f": float64(-1), "col-1": long1},
		Max:        map[string]value.Value{"n": int64(3), "s.d": decimal(7, 2), "s.f": float64(1), "col-1": long2},
		NullCount:  map[string]int64{"n": 1, "s.d": 1, "s.f": 1, "nan": 1, "b": 1, "bin": 1, "list": 1, "empty": 3, "col-1": 1},
	}, stats)
	_, few := write(t, schema, rows, columnar.WriteOptions{StatsColumns: []string{"s", "empty"}})
	require.Equal(t, map[string]int64{"s.d": 1, "s.f": 1, "empty": 3}, few.NullCount)
	require.Equal(t, "col-1", open(t, file).Schema()[7].Name)
}

func TestStatisticsAreOfTheFirstThirtyTwoLeaves(t *testing.T) {
	t.Parallel()
	schema, row := make(value.Schema, 0, 20), make(value.Row, 0, 20)
	for i := range 20 {
		schema = append(schema, nullable(fmt.Sprintf("c%d", i), structOf(nullable("a", of(value.Long)), nullable("b", of(value.Long)))))
		row = append(row, nil)
	}
	_, stats := write(t, schema, []value.Row{row}, columnar.WriteOptions{})
	require.Len(t, stats.NullCount, 32)
	require.Contains(t, stats.NullCount, "c15.b")
}

func TestColumnsAreFoundByPhysicalNameAndByID(t *testing.T) {
	t.Parallel()
	field := func(name, physical string, id int, t value.Type) value.Field {
		return value.Field{Name: name, Type: t, Nullable: true, Metadata: map[string]any{columnar.PhysicalName: physical, columnar.FieldID: float64(id)}}
	}
	inner := structOf(field("x", "p2", 2, of(value.Long)), field("y", "p3", 3, of(value.StringKind)))
	schema := value.Schema{field("s", "p1", 1, inner), field("l", "p4", 4, arrayOf(inner))}
	one := value.Struct{{Name: "x", Value: int64(1)}, {Name: "y", Value: "a"}}
	rows := []value.Row{{one, value.List{one, nil}}, {nil, nil}}
	file, _ := write(t, schema, rows, columnar.WriteOptions{})
	require.Equal(t, rows, read(t, file, columnar.ReadOptions{Columns: schema, Mapping: columnar.MappingName}))
	require.Equal(t, rows, read(t, file, columnar.ReadOptions{Columns: schema, Mapping: columnar.MappingID}))
	swapped := structOf(field("y", "other", 3, of(value.StringKind)), field("new", "other2", 9, of(value.Long)))
	require.Equal(t, value.Row{value.Struct{{Name: "y", Value: "a"}, {Name: "new"}}},
		read(t, file, columnar.ReadOptions{Columns: value.Schema{field("renamed", "other", 1, swapped)}, ByFieldID: true})[0])

	plain, _ := write(t, value.Schema{nullable("a", of(value.Long))}, nil, columnar.WriteOptions{})
	_, err := collect(open(t, plain).Rows(columnar.ReadOptions{Columns: schema, ByFieldID: true}))
	require.ErrorContains(t, err, "no ids")
}

func TestWhatATypeDoesNotHoldIsNotWritten(t *testing.T) {
	t.Parallel()
	long := of(value.Long)
	for name, c := range map[string]struct {
		field value.Field
		v     value.Value
	}{
		"null in a required column": {value.Field{Name: "c", Type: long}, nil},
		"null in a required member": {nullable("c", structOf(value.Field{Name: "m", Type: long})), value.Struct{{Name: "m"}}},
		"missing required member":   {nullable("c", structOf(value.Field{Name: "m", Type: long})), value.Struct{}},
		"member of no field":        {nullable("c", structOf(nullable("m", long))), value.Struct{{Name: "m"}, {Name: "n"}}},
		"null map key":              {nullable("c", mapOf(long, long)), value.Map{{}}},
		"null element":              {nullable("c", value.Type{Kind: value.ArrayKind, Elem: &long}), value.List{nil}},
		"byte out of range":         {nullable("c", of(value.Byte)), int64(128)},
		"integer out of range":      {nullable("c", of(value.Integer)), int64(-1<<31 - 1)},
		"decimal of too many":       {nullable("c", decimalOf(3, 1)), decimal(1000, 1)},
		"decimal of finer scale":    {nullable("c", decimalOf(38, 1)), decimal(15, 2)},
		"decimal without digits":    {nullable("c", decimalOf(3, 1)), value.Decimal{}},
		"decimal beyond 38 digits":  {nullable("c", decimalOf(38, 0)), value.Decimal{Unscaled: new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)}},
		"text that is not UTF-8":    {nullable("c", of(value.StringKind)), "\xff"},
		"text in a long":            {nullable("c", long), "1"},
		"timestamp in a date":       {nullable("c", of(value.DateKind)), value.Timestamp(1)},
		"list in a map":             {nullable("c", mapOf(long, long)), value.List{}},
		"value in a void member":    {nullable("c", structOf(nullable("m", long), nullable("v", of(value.Void)))), value.Struct{{Name: "m"}, {Name: "v", Value: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := columnar.Write(io.Discard, value.Schema{c.field}, each([]value.Row{{c.v}}), columnar.WriteOptions{})
			var refused *columnar.TypeError
			require.ErrorAs(t, err, &refused)
			require.True(t, strings.HasPrefix(refused.Column, "c"))
		})
	}
}

func TestSchemasThatNoFileCanHaveAreRefused(t *testing.T) {
	t.Parallel()
	void := of(value.Void)
	for name, schema := range map[string]value.Schema{
		"nothing but void":      {nullable("a", void)},
		"no column":             {},
		"struct of void":        {nullable("a", structOf(nullable("v", void)))},
		"array of void":         {nullable("a", arrayOf(void))},
		"decimal of 39 digits":  {nullable("a", decimalOf(39, 0))},
		"two of the same name":  {nullable("a", of(value.Long)), nullable("a", of(value.Long))},
		"decimal without digit": {nullable("a", decimalOf(0, 0))},
	} {
		_, err := columnar.Write(io.Discard, schema, each(nil), columnar.WriteOptions{})
		var refused *columnar.TypeError
		require.ErrorAs(t, err, &refused, name)
	}
	_, err := columnar.Write(io.Discard, value.Schema{nullable("a", of(value.Long))}, each(nil), columnar.WriteOptions{Codec: "zip"})
	require.ErrorContains(t, err, `"zip"`)
}

func TestMissingMembersAndCoarserDecimalsAreWrittenExactly(t *testing.T) {
	t.Parallel()
	schema := value.Schema{nullable("s", structOf(nullable("a", of(value.Long)), nullable("v", of(value.Void)), nullable("b", decimalOf(10, 3))))}
	file, _ := write(t, schema, []value.Row{{value.Struct{{Name: "b", Value: decimal(5, 0)}}}}, columnar.WriteOptions{})
	require.Equal(t, []value.Row{{value.Struct{{Name: "a"}, {Name: "v"}, {Name: "b", Value: decimal(5000, 3)}}}},
		read(t, file, columnar.ReadOptions{Columns: schema}))
}

func TestOddNamesAreKept(t *testing.T) {
	t.Parallel()
	names := []string{"a,b", "a b", "é", "1", "_", "a.b", "-", "list", "Key"}
	schema, row := make(value.Schema, 0, len(names)), make(value.Row, 0, len(names))
	for _, name := range names {
		schema, row = append(schema, nullable(name, structOf(nullable(name, of(value.StringKind))))), append(row, value.Struct{{Name: name, Value: name}})
	}
	file, _ := write(t, schema, []value.Row{row}, columnar.WriteOptions{})
	require.Equal(t, []value.Row{row}, read(t, file, columnar.ReadOptions{Columns: schema}))
	require.Equal(t, []value.Row{row}, read(t, file, columnar.ReadOptions{}))
}

func TestAFailingSourceOfRowsFailsTheFile(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := columnar.Write(io.Discard, value.Schema{nullable("a", of(value.Long))}, func(yield func(value.Row, error) bool) { yield(nil, broken) }, columnar.WriteOptions{})
	require.ErrorIs(t, err, broken)
	_, err = columnar.Write(io.Discard, value.Schema{nullable("a", of(value.Long))}, each([]value.Row{{}}), columnar.WriteOptions{})
	require.ErrorContains(t, err, "0 values where there are 1 columns")
}

func TestLargeFilesHaveManyPagesAndNoPageIndex(t *testing.T) {
	t.Parallel()
	schema := value.Schema{nullable("n", of(value.Long)), nullable("s", of(value.StringKind)), nullable("l", arrayOf(of(value.Long)))}
	rows := make([]value.Row, 30000)
	for i := range rows {
		rows[i] = value.Row{int64(i), fmt.Sprintf("%d %s", i, strings.Repeat("x", 90)), value.List{int64(i), nil}}
	}
	file, _ := write(t, schema, rows, columnar.WriteOptions{RowGroupRows: 25000})
	require.Equal(t, canonical(rows), canonical(read(t, file, columnar.ReadOptions{Columns: schema})))
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	require.Len(t, f.RowGroups(), 2)
	require.Empty(t, f.ColumnIndexes())
	for _, group := range f.Metadata().RowGroups {
		for _, c := range group.Columns {
			require.Zero(t, c.ColumnIndexOffset+c.OffsetIndexOffset)
		}
	}
}
