package columnar_test

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"varve/internal/columnar"
	"varve/internal/value"
)

func each(rows []value.Row) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func write(t require.TestingT, schema value.Schema, rows []value.Row, o columnar.WriteOptions) ([]byte, columnar.Stats) {
	var out bytes.Buffer
	stats, err := columnar.Write(&out, schema, each(rows), o)
	require.NoError(t, err)
	return out.Bytes(), stats
}

func open(t require.TestingT, file []byte) *columnar.File {
	f, err := columnar.OpenFile(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	return f
}

func read(t require.TestingT, file []byte, o columnar.ReadOptions) []value.Row {
	rows, err := collect(open(t, file).Rows(o))
	require.NoError(t, err)
	return rows
}

func collect(seq iter.Seq2[value.Row, error]) ([]value.Row, error) {
	var rows []value.Row
	for row, err := range seq {
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// canonical gives rows as texts that differ where values differ; NaN equals itself.
func canonical(rows []value.Row) []string {
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = strconv.Itoa(len(row)) + value.KeyText(row)
	}
	return texts
}

var leafKinds = []value.Kind{
	value.Boolean, value.Byte, value.Short, value.Integer, value.Long, value.Float, value.Double, value.DecimalKind,
	value.StringKind, value.BinaryKind, value.DateKind, value.TimestampKind, value.TimestampNTZ, value.VariantKind,
}

func drawType(t *rapid.T, depth int) value.Type {
	kinds := leafKinds
	if depth > 0 {
		kinds = append(kinds[:len(kinds):len(kinds)], value.StructKind, value.ArrayKind, value.MapKind)
	}
	typ := value.Type{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch typ.Kind {
	case value.DecimalKind:
		typ.Precision = rapid.IntRange(1, 38).Draw(t, "precision")
		typ.Scale = rapid.IntRange(0, typ.Precision).Draw(t, "scale")
	case value.StructKind:
		typ.Fields = drawFields(t, depth-1, 3)
	case value.ArrayKind, value.MapKind:
		elem := drawType(t, depth-1)
		typ.Elem, typ.ElemNullable = &elem, rapid.Bool().Draw(t, "nullable")
		if typ.Kind == value.MapKind {
			key := drawType(t, 0)
			typ.Key = &key
		}
	default:
	}
	return typ
}

func drawFields(t *rapid.T, depth, most int) []value.Field {
	fields := make([]value.Field, rapid.IntRange(1, most).Draw(t, "fields"))
	for i := range fields {
		// Names in falling order: the library would sort them.
		fields[i] = value.Field{
			Name:     fmt.Sprintf("%c%d", 'z'-i, i),
			Type:     drawType(t, depth),
			Nullable: rapid.Bool().Draw(t, "nullable"),
		}
	}
	return fields
}

func drawValue(t *rapid.T, typ value.Type, nullable bool) value.Value {
	if nullable && rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return nil
	}
	switch typ.Kind {
	case value.Boolean:
		return rapid.Bool().Draw(t, "v")
	case value.Byte:
		return int64(rapid.Int8().Draw(t, "v"))
	case value.Short:
		return int64(rapid.Int16().Draw(t, "v"))
	case value.Integer:
		return int64(rapid.Int32().Draw(t, "v"))
	case value.Long:
		return rapid.Int64().Draw(t, "v")
	case value.Float:
		return rapid.OneOf(rapid.Float32(), rapid.Just(float32(math.NaN()))).Draw(t, "v")
	case value.Double:
		return rapid.OneOf(rapid.Float64(), rapid.Just(math.Inf(-1))).Draw(t, "v")
	case value.DecimalKind:
		digits := rapid.StringMatching(fmt.Sprintf("-?[0-9]{1,%d}", typ.Precision)).Draw(t, "v")
		n, _ := new(big.Int).SetString(digits, 10)
		return value.Decimal{Unscaled: n, Scale: typ.Scale}
	case value.StringKind:
		return rapid.String().Draw(t, "v")
	case value.BinaryKind:
		return value.Binary(rapid.SliceOf(rapid.Byte()).Draw(t, "v"))
	case value.DateKind:
		return value.Date(rapid.Int32Range(-1e6, 1e6).Draw(t, "v"))
	case value.TimestampKind:
		return value.Timestamp(rapid.Int64Range(-1e17, 1e17).Draw(t, "v"))
	case value.TimestampNTZ:
		return value.LocalTimestamp(rapid.Int64Range(-1e17, 1e17).Draw(t, "v"))
	case value.VariantKind:
		return value.Variant{Metadata: []byte{1, 0, 0}, Value: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "v")}
	case value.StructKind:
		return drawStruct(t, typ)
	case value.ArrayKind:
		list := make(value.List, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range list {
			list[i] = drawValue(t, *typ.Elem, typ.ElemNullable)
		}
		return list
	default:
		entries := make(value.Map, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range entries {
			entries[i] = value.Entry{Key: drawValue(t, *typ.Key, false), Value: drawValue(t, *typ.Elem, typ.ElemNullable)}
		}
		return entries
	}
}

func drawStruct(t *rapid.T, typ value.Type) value.Struct {
	members := make(value.Struct, len(typ.Fields))
	for i, f := range typ.Fields {
		members[i] = value.Member{Name: f.Name, Value: drawValue(t, f.Type, f.Nullable)}
	}
	return members
}

func drawRows(t *rapid.T, schema value.Schema, most int) []value.Row {
	rows := make([]value.Row, rapid.IntRange(0, most).Draw(t, "rows"))
	for i := range rows {
		rows[i] = make(value.Row, len(schema))
		for j, f := range schema {
			rows[i][j] = drawValue(t, f.Type, f.Nullable)
		}
	}
	return rows
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schema := value.Schema(drawFields(t, 3, 4))
		rows := drawRows(t, schema, 20)
		file, stats := write(t, schema, rows, columnar.WriteOptions{
			Codec:        rapid.SampledFrom([]string{"", "none", "snappy", "gzip", "lz4_raw", "zstd"}).Draw(t, "codec"),
			RowGroupRows: rapid.IntRange(1, 30).Draw(t, "group"),
		})
		f := open(t, file)
		require.Equal(t, int64(len(rows)), f.NumRows())
		require.Equal(t, int64(len(rows)), stats.NumRecords)
		require.Equal(t, schema.Names(), f.Schema().Names())
		require.Equal(t, canonical(rows), canonical(read(t, file, columnar.ReadOptions{Columns: schema})))
	})
}

func TestColumnsAreReadAloneAsTheyAreTogether(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schema := value.Schema(drawFields(t, 2, 4))
		rows := drawRows(t, schema, 10)
		file, _ := write(t, schema, rows, columnar.WriteOptions{})
		for i := range schema {
			alone := make([]value.Row, len(rows))
			for j := range rows {
				alone[j] = rows[j][i : i+1]
			}
			got := read(t, file, columnar.ReadOptions{Columns: schema[i : i+1]})
			require.Equal(t, canonical(alone), canonical(got))
		}
	})
}

// without takes the first field out of every struct and adds one that no file has.
func without(typ value.Type) value.Type {
	switch typ.Kind {
	case value.StructKind:
		lacking := value.Field{Name: "lacking", Type: value.Type{Kind: value.Long}, Nullable: true}
		fields := append(make([]value.Field, 0, len(typ.Fields)), lacking)
		for _, f := range typ.Fields[1:] {
			f.Type = without(f.Type)
			fields = append(fields, f)
		}
		typ.Fields = fields
	case value.ArrayKind, value.MapKind:
		elem := without(*typ.Elem)
		typ.Elem = &elem
	default:
	}
	return typ
}

func project(typ value.Type, v value.Value) value.Value {
	switch x := v.(type) {
	case value.Struct:
		out := append(make(value.Struct, 0, len(x)), value.Member{Name: "lacking"})
		for i, m := range x[1:] {
			out = append(out, value.Member{Name: m.Name, Value: project(typ.Fields[i+1].Type, m.Value)})
		}
		return out
	case value.List:
		out := make(value.List, len(x))
		for i := range x {
			out[i] = project(*typ.Elem, x[i])
		}
		return out
	case value.Map:
		out := make(value.Map, len(x))
		for i := range x {
			out[i] = value.Entry{Key: x[i].Key, Value: project(*typ.Elem, x[i].Value)}
		}
		return out
	default:
		return v
	}
}

func TestMissingNestedFieldsAreNullAndKeepTheirStructs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schema := value.Schema(drawFields(t, 3, 3))
		rows := drawRows(t, schema, 10)
		file, _ := write(t, schema, rows, columnar.WriteOptions{})
		asked, want := make(value.Schema, len(schema)), make([]value.Row, len(rows))
		for i, f := range schema {
			f.Type = without(f.Type)
			asked[i] = f
		}
		for i, row := range rows {
			want[i] = make(value.Row, len(row))
			for j, v := range row {
				want[i][j] = project(schema[j].Type, v)
			}
		}
		require.Equal(t, canonical(want), canonical(read(t, file, columnar.ReadOptions{Columns: asked})))
	})
}

// Rows that are null in long runs are taken at once: runs must end where a value is, a page, or a row group.
func TestLongRunsOfNullsKeepEveryValueInItsRow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schema := value.Schema(drawFields(t, 2, 3))
		for i := range schema {
			schema[i].Nullable = true
		}
		some := drawRows(t, schema, 4)
		rows := make([]value.Row, 0, 2400)
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			for range rapid.IntRange(0, 600).Draw(t, "nulls") {
				rows = append(rows, make(value.Row, len(schema)))
			}
			for _, row := range some {
				rows = append(rows, row, make(value.Row, len(schema)))
			}
		}
		file, _ := write(t, schema, rows, columnar.WriteOptions{RowGroupRows: rapid.IntRange(100, 700).Draw(t, "group")})
		require.Equal(t, canonical(rows), canonical(read(t, file, columnar.ReadOptions{Columns: schema})))
	})
}
