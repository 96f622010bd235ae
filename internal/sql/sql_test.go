package sql_test

import (
	"context"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/sql"
	"varve/internal/value"
)

func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(sql.Options{Dir: t.TempDir(), MemoryMiB: 256, Threads: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func kind(k value.Kind) value.Type { return value.Type{Kind: k} }

func decimal(p, s int) value.Type {
	return value.Type{Kind: value.DecimalKind, Precision: p, Scale: s}
}

func list(elem value.Type) value.Type {
	return value.Type{Kind: value.ArrayKind, Elem: &elem, ElemNullable: true}
}

func structOf(fields ...value.Field) value.Type {
	return value.Type{Kind: value.StructKind, Fields: fields}
}

func field(name string, t value.Type) value.Field {
	return value.Field{Name: name, Type: t, Nullable: true}
}

func dec(unscaled string, scale int) value.Decimal {
	n, _ := new(big.Int).SetString(unscaled, 10)
	return value.Decimal{Unscaled: n, Scale: scale}
}

// everyType is one column of each type with two values of it.
func everyType() (value.Schema, []value.Row) {
	text, long := kind(value.StringKind), kind(value.Long)
	schema := value.Schema{
		field("yes", kind(value.Boolean)), field("b", kind(value.Byte)), field("s", kind(value.Short)), field("i", kind(value.Integer)),
		field("l", long), field("f", kind(value.Float)), field("d", kind(value.Double)), field("small", decimal(4, 1)),
		field("int", decimal(9, 2)), field("big", decimal(18, 0)), field("huge", decimal(38, 10)), field("text", text),
		field("bytes", kind(value.BinaryKind)), field("day", kind(value.DateKind)), field("ts", kind(value.TimestampKind)),
		field("local", kind(value.TimestampNTZ)), field("st", structOf(field("a", long), field("B", text))), field("arr", list(list(long))),
		field("m", value.Type{Kind: value.MapKind, Key: &text, Elem: &long, ElemNullable: true}),
	}
	rows := []value.Row{
		{
			true, int64(-128), int64(-32768), int64(math.MinInt32), int64(math.MinInt64), float32(1.5), math.Inf(-1), dec("-999", 1), dec("-1", 2),
			dec("-999999999999999999", 0), dec("-99999999999999999999999999999999999999", 10), "a\x00b'\"é",
			value.Binary{0, 255},
			value.Date(-719162), value.Timestamp(-1), value.LocalTimestamp(-62135596800000000),
			value.Struct{{Name: "a", Value: int64(1)}, {Name: "B", Value: nil}},
			value.List{value.List{int64(1), nil}, nil, value.List{}},
			value.Map{{Key: "k", Value: int64(1)}, {Key: "j", Value: nil}},
		},
		{
			false, int64(127), int64(32767), int64(math.MaxInt32), int64(math.MaxInt64), float32(0.1), 1e300, dec("5", 1), dec("1", 2),
			dec("999999999999999999", 0), dec("99999999999999999999999999999999999999", 10), "",
			value.Binary{},
			value.Date(2932896),
			value.Timestamp(253402300799999999), value.LocalTimestamp(1), nil,
			value.List{},
			value.Map{},
		},
		make(value.Row, len(schema)),
	}
	return schema, rows
}

func TestEveryTypeGoesThroughTheEngineUnchanged(t *testing.T) {
	t.Parallel()
	db := open(t)
	schema, rows := everyType()
	exprs := make([]string, len(schema))
	for i, f := range schema {
		exprs[i] = "CASE WHEN true THEN " + sql.Ident(f.Name) + " END" // not a bare name, so that the engine computes it
		got, err := db.Check(t.Context(), exprs[i], schema)
		require.NoError(t, err)
		require.Equal(t, f.Type, got, f.Name)
	}
	got, faults, err := db.Eval(t.Context(), schema, rows, exprs)
	require.NoError(t, err)
	require.Equal(t, rows, got)
	require.Equal(t, make([]error, len(rows)), faults)
}

func TestQueryTypesWhatTablesLackAsTextAndIntegersAsDecimals(t *testing.T) {
	t.Parallel()
	got, err := open(t).Query(t.Context(), `SELECT sum(x) AS total, TIME '01:02:03' AS at, 18446744073709551615::UBIGINT AS u,
 'c'::ENUM('c') AS e, '9f86d081-884c-4d63-a1b2-000000000001'::UUID AS id, '{"a": 12345678901234567890}'::JSON AS j,
 [{'t': TIME '00:00:01'}] AS nested FROM range(4) AS r(x); `)
	require.NoError(t, err)
	require.Equal(t, []string{"total", "at", "u", "e", "id", "j", "nested"}, got.Schema.Names())
	require.Equal(t, decimal(38, 0), got.Schema[0].Type)
	require.Equal(t, value.Row{
		dec("6", 0), "01:02:03", dec("18446744073709551615", 0), "c", "9f86d081-884c-4d63-a1b2-000000000001",
		`{"a": 12345678901234567890}`,
		value.List{value.Struct{{Name: "t", Value: "00:00:01"}}},
	}, got.Rows[0])
}

func TestQueryKeepsOrderAndTakesArguments(t *testing.T) {
	t.Parallel()
	db := open(t)
	got, err := db.Query(t.Context(), `SELECT x FROM range(1000) AS r(x) WHERE x < ? ORDER BY x DESC -- the last first`, int64(500))
	require.NoError(t, err)
	require.Len(t, got.Rows, 500)
	for i, row := range got.Rows {
		require.Equal(t, value.Row{int64(499 - i)}, row)
	}
	got, err = db.Query(t.Context(), `SELECT ? = DATE '2026-09-14' AS same`, value.Date(20710))
	require.NoError(t, err)
	require.Equal(t, value.Row{true}, got.Rows[0])
}

func TestQueryDoesNothingButSelect(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, query := range []string{"CREATE TABLE x (a INT)", "SELECT 1; SELECT 2", "SELECT 1); CREATE TABLE y AS (SELECT 1"} {
		_, err := db.Query(t.Context(), query)
		require.Error(t, err, query)
	}
	_, err := db.Query(t.Context(), "SELECT 'secret'::INT FROM range(2)")
	require.ErrorContains(t, err, "conversion")
	require.NotContains(t, err.Error(), "secret")
	got, err := db.Query(t.Context(), "SELECT current_setting('TimeZone') AS zone")
	require.NoError(t, err)
	require.Equal(t, value.Row{"UTC"}, got.Rows[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.Query(ctx, "SELECT 1")
	require.ErrorIs(t, err, context.Canceled)
}

func columns() value.Schema {
	return value.Schema{
		field("operation", kind(value.StringKind)), field("effective_date", kind(value.DateKind)), field("_day", kind(value.DateKind)),
		field("n", kind(value.Long)), field("tags", list(kind(value.Long))), field("address", structOf(field("city", kind(value.StringKind)))),
	}
}

func TestCheckTypesAnExpressionOverTheColumns(t *testing.T) {
	t.Parallel()
	db := open(t)
	for expr, want := range map[string]value.Type{
		"operation = 'DELETE'":                          kind(value.Boolean),
		"operation == 'DELETE' -- the source's":         kind(value.Boolean),
		"coalesce(effective_date, _day)":                kind(value.DateKind),
		"effective_date::timestamp":                     kind(value.TimestampNTZ),
		"address.city":                                  kind(value.StringKind),
		"EFFECTIVE_DATE":                                kind(value.DateKind),
		"list_transform(tags, lambda x: x + n)":         list(kind(value.Long)),
		"_day - INTERVAL 1 DAY":                         kind(value.TimestampNTZ),
		"struct_pack(a := n, b := operation)":           structOf(field("a", kind(value.Long)), field("b", kind(value.StringKind))),
		"CASE WHEN n > 0 THEN 1.25 ELSE 2.5 END":        decimal(3, 2),
		"upper(operation) IN ('D', 'DELETE')":           kind(value.Boolean),
		"age(effective_date::timestamp, _day)::varchar": kind(value.StringKind),
	} {
		got, err := db.Check(t.Context(), expr, columns())
		require.NoError(t, err, expr)
		require.Equal(t, want, got, expr)
	}
}

func TestCheckRefusesWhatIsNoFunctionOfTheRecord(t *testing.T) {
	t.Parallel()
	db := open(t)
	for expr, want := range map[string]string{
		"operatoin = 'DELETE'":              `at 1: no column is named "operatoin"; did you mean "operation"?`,
		"n > 1 AND elsewhere":               `at 11: no column is named "elsewhere"; the columns are operation, effective_date`,
		"sum(n) > 1":                        "at 1: sum is an aggregate",
		"n > max(n)":                        "max is an aggregate",
		"row_number() OVER ()":              "window function",
		"n = (SELECT 1)":                    "subquery",
		"random() > 0.5":                    "random gives another value each time",
		"effective_date < current_date":     "current_date gives another value",
		"effective_date < now()":            "now gives another value",
		"uuid()":                            "uuid gives another value",
		"age(effective_date::timestamp)":    "age gives another value",
		"current_timestamp > _day":          "current_timestamp gives another value",
		"unnest(tags)":                      "unnest makes several values",
		"n = $1":                            "no parameters",
		"COLUMNS(*)":                        "one by one",
		"operation = = 1":                   "syntax error",
		"n) FROM range(3) AS r(n":           "more than one expression",
		"n), (n":                            "more than one expression",
		"n) WHERE (true":                    "more than one expression",
		"":                                  "there is nothing in it",
		"list_transform(tags, lambda x: y)": `no column is named "y"`,
		"n + operation":                     "not valid SQL here",
		"frobnicate(n)":                     "unknown name",
	} {
		_, err := db.Check(t.Context(), expr, columns())
		require.ErrorContains(t, err, want, expr)
		var fault *sql.ExprError
		require.ErrorAs(t, err, &fault, expr)
	}
}

func TestOneBadRowFailsNoOther(t *testing.T) {
	t.Parallel()
	schema := value.Schema{field("a", kind(value.StringKind)), field("b", kind(value.Long))}
	var rows []value.Row
	for i := range 5000 {
		switch i % 1000 {
		case 7:
			rows = append(rows, value.Row{"hidden", int64(i)})
		case 8:
			rows = append(rows, value.Row{nil, int64(i)})
		case 9:
			rows = append(rows, value.Row{"bad \xff", int64(i)})
		default:
			rows = append(rows, value.Row{"12", int64(i)})
		}
	}
	got, faults, err := open(t).Eval(t.Context(), schema, rows, []string{"a::BIGINT + b", "b", "b * 2"})
	require.NoError(t, err)
	for i := range rows {
		require.Equal(t, int64(i), got[i][1])
		switch i % 1000 {
		case 7:
			require.EqualError(t, faults[i], `expression "a::BIGINT + b" cannot be computed: conversion`)
			require.Equal(t, int64(2*i), got[i][2])
		case 8:
			require.NoError(t, faults[i])
			require.Nil(t, got[i][0])
		case 9:
			require.Error(t, faults[i])
		default:
			require.NoError(t, faults[i])
			require.Equal(t, int64(12+i), got[i][0])
		}
	}
}

func TestEvalFailsWholeForAFaultOfTheExpression(t *testing.T) {
	t.Parallel()
	schema := value.Schema{field("a", kind(value.StringKind))}
	_, _, err := open(t).Eval(t.Context(), schema, []value.Row{{"x"}}, []string{"missing + 1"})
	require.ErrorContains(t, err, "missing")
}

func TestTablesAreThoseThatTheQueryReads(t *testing.T) {
	t.Parallel()
	db := open(t)
	for query, want := range map[string]string{
		"WITH t AS (SELECT * FROM silver.a) SELECT * FROM t JOIN gold.b USING (x) WHERE y IN (SELECT z FROM bronze.c)": "bronze.c gold.b silver.a",
		"SELECT 1":                                                    "",
		"FROM silver.a UNION ALL FROM silver.a":                       "silver.a",
		"DESCRIBE silver.a":                                           "silver.a",
		"SUMMARIZE SELECT * FROM silver.a":                            "silver.a",
		`SELECT * FROM "silver"."Odd name" AS s;`:                     "silver.Odd name",
		"SELECT (SELECT max(x) FROM gold.b) FROM range(2)":            "gold.b",
		"SELECT * FROM gold.b, unnest([1, 2]), Generate_Series(1, 3)": "gold.b",
	} {
		got, err := db.Tables(t.Context(), query)
		require.NoError(t, err, query)
		require.Equal(t, want, strings.Join(got, " "), query)
	}
	for query, want := range map[string]string{
		"SELECT * FROM customers":  "has no layer",
		"SELEC 1":                  "syntax error",
		"FROM 'file.parquet'":      "has no layer",
		"SELECT 1; SELECT 2":       "2 statements",
		"CREATE TABLE x (a INT)":   "SELECT",
		"FROM read_csv('a.csv')":   "read_csv is not allowed",
		"FROM (FROM READ_TEXT(1))": "read_text is not allowed",
	} {
		_, err := db.Tables(t.Context(), query)
		require.ErrorContains(t, err, want, query)
	}
}

func TestViewOfNoFilesHasTheColumnsAndNoRows(t *testing.T) {
	t.Parallel()
	db := open(t)
	schema, _ := everyType()
	require.NoError(t, db.View(t.Context(), "silver.all", nil, schema))
	got, err := db.Query(t.Context(), `SELECT * FROM silver."all"`)
	require.NoError(t, err)
	require.Equal(t, schema, got.Schema)
	require.Empty(t, got.Rows)
	require.ErrorContains(t, db.View(t.Context(), "nolayer", nil, schema), "layer.name")
}
