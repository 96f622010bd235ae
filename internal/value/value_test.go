package value_test

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"varve/internal/value"
)

func dec(unscaled int64, scale int) value.Decimal {
	return value.Decimal{Unscaled: big.NewInt(unscaled), Scale: scale}
}

func TestCanonicalTextIsAsTheLawWritesIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v    value.Value
		want string
	}{
		"null":                  {nil, `null`},
		"boolean":               {true, `true`},
		"integer":               {int64(-42), `-42`},
		"decimal, zeros cut":    {dec(1500, 3), `1.5`},
		"decimal, whole":        {dec(10000, 2), `100`},
		"decimal, small":        {dec(-5, 3), `-0.005`},
		"decimal, zero":         {dec(0, 2), `0`},
		"decimal, minus scale":  {dec(12, -3), `12000`},
		"float":                 {1e21, `1e+21`},
		"float, fraction":       {0.1, `0.1`},
		"float32 as its double": {float32(0.1), `0.10000000149011612`},
		"NaN":                   {math.NaN(), `"NaN"`},
		"infinity":              {math.Inf(1), `"Infinity"`},
		"minus infinity":        {math.Inf(-1), `"-Infinity"`},
		"minus zero":            {math.Copysign(0, -1), `0`},
		"escapes":               {"\"\\/\b\f\n\r\t\x00\x1f\x7f<é\u2028", "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f<é\u2028\""},
		"date":                  {value.Date(20710), `"2026-09-14"`},
		"date before 1970":      {value.Date(-1), `"1969-12-31"`},
		"timestamp":             {value.Timestamp(1789356600000001), `"2026-09-14T03:30:00.000001Z"`},
		"timestamp before 1970": {value.Timestamp(-1), `"1969-12-31T23:59:59.999999Z"`},
		"timestamp_ntz":         {value.LocalTimestamp(1789356600000000), `"2026-09-14T03:30:00.000000"`},
		"binary":                {value.Binary{0xAB, 0x01}, `"ab01"`},
		"struct by name":        {value.Struct{{Name: "b", Value: int64(1)}, {Name: "B", Value: nil}, {Name: "a", Value: "x"}}, `{"B":null,"a":"x","b":1}`},
		"list in order":         {value.List{int64(2), nil, int64(1)}, `[2,null,1]`},
		"map by key":            {value.Map{{Key: "b", Value: int64(1)}, {Key: "a", Value: nil}}, `[["a",null],["b",1]]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, value.Canonical(c.v))
		})
	}
}

func TestKeyTextKeepsPartsApart(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, value.KeyText([]value.Value{"ab", "c"}), value.KeyText([]value.Value{"a", "bc"}))
	require.NotEqual(t, value.KeyText([]value.Value{"1"}), value.KeyText([]value.Value{int64(1)}))
	require.Equal(t, `["a",null]`, value.KeyText([]value.Value{"a", nil}))
}

func TestCompareOrdersNullFirstAndNaNLast(t *testing.T) {
	t.Parallel()
	member := func(v value.Value) value.Struct { return value.Struct{{Name: "x", Value: v}} }
	for name, ascending := range map[string][]value.Value{
		"floats":     {nil, math.Inf(-1), -1.0, 0.0, 1.0, math.Inf(1), math.NaN()},
		"integers":   {nil, int64(math.MinInt64), int64(0), int64(math.MaxInt64)},
		"decimals":   {nil, dec(-1, 0), dec(5, 2), dec(1, 1), dec(100, 0)},
		"strings":    {nil, "", "10", "9", "Z", "a", "é"},
		"booleans":   {nil, false, true},
		"timestamps": {nil, value.Timestamp(-1), value.Timestamp(0)},
		"structs":    {nil, member(nil), member(int64(1)), member(int64(2))},
		"lists":      {nil, value.List{}, value.List{nil}, value.List{int64(1)}, value.List{int64(1), int64(0)}},
		"binaries":   {nil, value.Binary{}, value.Binary{0}, value.Binary{255}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, a := range ascending {
				for j, b := range ascending {
					require.Equal(t, i < j, value.Compare(a, b) < 0, "%d %d", i, j)
					require.Equal(t, i == j, value.Compare(a, b) == 0, "%d %d", i, j)
					require.Equal(t, i == j, value.Equal(a, b), "%d %d", i, j)
				}
			}
		})
	}
	require.Zero(t, value.Compare(math.Copysign(0, -1), 0.0))
	require.True(t, value.Equal(math.Copysign(0, -1), 0.0))
	require.True(t, value.Equal(dec(10, 1), dec(1, 0)))
	require.Zero(t, value.Compare(dec(10, 1), dec(1, 0)))
}

func TestMapsAreEqualInAnyOrder(t *testing.T) {
	t.Parallel()
	a := value.Map{{Key: "a", Value: int64(1)}, {Key: "b", Value: int64(2)}}
	b := slices.Clone(a)
	slices.Reverse(b)
	require.True(t, value.Equal(a, b))
	require.Zero(t, value.Compare(a, b))
}

func TestParseTypeRoundTrips(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"string": "string", "BIGINT": "bigint", "long": "bigint", "int": "int", "integer": "int", "smallint": "smallint",
		"tinyint": "tinyint", "float": "float", "double": "double", "boolean": "boolean", "binary": "binary", "date": "date",
		"timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz", "variant": "variant", "void": "void",
		"decimal": "decimal(10,0)", "decimal(5)": "decimal(5,0)", " decimal( 38 , 10 ) ": "decimal(38,10)",
		"array<map<string, int>>":                    "array<map<string,int>>",
		"struct<a: int, b: struct<c:array<string>>>": "struct<a:int,b:struct<c:array<string>>>",
		"struct<`a b`:int,`c``d`:string>":            "struct<`a b`:int,`c``d`:string>",
		"struct<>":                                   "struct<>",
	} {
		got, err := value.ParseType(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.String())
		again, err := value.ParseType(got.String())
		require.NoError(t, err, text)
		require.True(t, again.Equal(got))
	}
	for _, text := range []string{
		"", "text", "decimal(39,0)", "decimal(5,6)", "decimal(0)", "array", "array<int", "map<int>", "struct<a>", "struct<a:int",
		"int int", "array<int>>", "struct<`a:int>",
	} {
		_, err := value.ParseType(text)
		var bad *value.TypeError
		require.ErrorAs(t, err, &bad, text)
	}
}

func TestTypesAreEqualWhateverTheirMetadata(t *testing.T) {
	t.Parallel()
	a := value.Type{Kind: value.StructKind, Fields: []value.Field{{Name: "x", Type: value.Type{Kind: value.Long}, Nullable: true}}}
	b := value.Type{Kind: value.StructKind, Fields: []value.Field{{Name: "x", Type: value.Type{Kind: value.Long}, Metadata: map[string]any{"comment": "c"}}}}
	require.True(t, a.Equal(b))
	b.Fields[0].Name = "y"
	require.False(t, a.Equal(b))
}

func parseType(t *testing.T, text string) value.Type {
	t.Helper()
	got, err := value.ParseType(text)
	require.NoError(t, err)
	return got
}

// spaced is text with spaces around it.
const spaced = " a "

// converts lists, a type, texts and what they are; nil is refused.
func converts() map[string]map[string]value.Value {
	return map[string]map[string]value.Value{
		"bigint": {
			spaced: nil, "7\n": int64(7), "9223372036854775807": int64(math.MaxInt64), "-9223372036854775808": int64(math.MinInt64), "9223372036854775808": nil,
			"9007199254740993": int64(9007199254740993), "1E+3": int64(1000), "1.50e1": int64(15), "1.5": nil, "7.00": int64(7),
			"": nil, "0x10": nil, "1_000": nil, "1/2": nil, "NaN": nil, "1e999999999": nil, "--1": nil, "+3": int64(3), "010": int64(10),
		},
		"tinyint":  {"127": int64(127), "-128": int64(-128), "128": nil, "-129": nil, "1.28e2": nil},
		"smallint": {"32767": int64(32767), "32768": nil},
		"int":      {"2147483647": int64(2147483647), "2147483648": nil},
		"decimal(5,2)": {
			"1.5": dec(150, 2), "1E+2": dec(10000, 2), "999.99": dec(99999, 2), "1000": nil, "1.005": nil, "1.0050e1": dec(1005, 2), "1.500": dec(150, 2),
			"-0.01": dec(-1, 2), "x": nil, "": nil, ".5": dec(50, 2), "1e": nil, "1e-2": dec(1, 2), "Infinity": nil,
		},
		"decimal(38,0)": {"99999999999999999999999999999999999999": value.Decimal{Unscaled: digits38()}, "100000000000000000000000000000000000000": nil},
		"double":        {"0.1": 0.1, "-1e300": -1e300, "1e999": nil, "1e-350": nil, "NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "inf": nil, "0x1p4": nil, "1_0": nil, "0": 0.0},
		"float":         {"0.5": float32(0.5), "1e39": nil},
		"boolean":       {"true": true, "FALSE": false, "t": nil, "1": nil, "yes": nil, "": nil},
		"string":        {"": "", spaced: spaced},
		"date":          {"2026-09-14": value.Date(20710), "2026-9-14": nil, "14.09.2026": nil, "2026-02-30": nil, "2026-09-14T00:00:00": nil, "1969-12-31": value.Date(-1)},
		"timestamp": {
			"2026-09-14T03:30:00Z": value.Timestamp(1789356600000000), "2026-09-14 03:30:00": value.Timestamp(1789356600000000),
			"2026-09-14T05:30:00.5+02:00": value.Timestamp(1789356600500000), "2026-09-14 03:30:00.000001-00:00": value.Timestamp(1789356600000001),
			"2026-09-14T03:30:00.0000010000Z": value.Timestamp(1789356600000001), "2026-09-14T03:30:00.0000001Z": nil,
			"2026-09-14T03:30:00.00000000000000001Z": nil, "2026-09-14T3:30:00Z": nil, "9999-12-31T23:59:59.999999-01:00": nil, "0001-01-01T00:30:00+01:00": nil, "0000-12-31T00:00:00Z": nil, "2026-09-14T03:30:00,5Z": nil, "2026-09-14T25:00:00Z": nil,
			"1789356600": nil, "": nil, "2026-09-14": value.Timestamp(1789344000000000), "2026-09-14T03:30:00.Z": nil,
		},
		"timestamp_ntz": {
			"2026-09-14T03:30:00": value.LocalTimestamp(1789356600000000), "2026-09-14 03:30:00.25": value.LocalTimestamp(1789356600250000),
			"2026-09-14T03:30:00Z": nil, "2026-09-14T03:30:00+02:00": nil,
		},
		"binary": {"qwE=": value.Binary{0xAB, 0x01}, "": value.Binary{}, "qw": nil, "qwF=": nil},
		"void":   {"x": nil},
	}
}

func digits38() *big.Int {
	n, _ := new(big.Int).SetString("99999999999999999999999999999999999999", 10)
	return n
}

func TestParseIsExactOrRefuses(t *testing.T) {
	t.Parallel()
	for kind, texts := range converts() {
		for text, want := range texts {
			got, err := value.Parse(parseType(t, kind), text)
			if want == nil {
				var bad *value.ConvertError
				require.ErrorAs(t, err, &bad, "%s %q", kind, text)
				require.Equal(t, kind, bad.Type)
				continue
			}
			require.NoError(t, err, "%s %q", kind, text)
			require.IsType(t, want, got)
			require.True(t, value.Equal(want, got), "%s %q: %s", kind, text, value.Canonical(got))
		}
	}
}

func TestJSONStringsConvertAsText(t *testing.T) {
	t.Parallel()
	for kind, texts := range converts() {
		for text, want := range texts {
			raw, err := json.Marshal(text)
			require.NoError(t, err)
			got, err := value.FromJSON(parseType(t, kind), raw)
			require.Equal(t, want == nil, err != nil, "%s %q", kind, text)
			require.True(t, value.Equal(want, got), "%s %q", kind, text)
		}
	}
}

func TestFromJSONKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, raw string
		want      value.Value
	}{
		"null":                      {"string", ` null `, nil},
		"big integer":               {"bigint", `9007199254740993`, int64(9007199254740993)},
		"number in a string":        {"string", `1.50E+3`, "1.50E+3"},
		"boolean in a string":       {"string", `true`, "true"},
		"object in a string":        {"string", `{"a": 1, "a":2}`, `{"a": 1, "a":2}`},
		"decimal":                   {"decimal(20,4)", `1234567890123456.7891`, value.Decimal{Unscaled: new(big.Int).SetUint64(12345678901234567891), Scale: 4}},
		"last of duplicates":        {"struct<a:int>", `{"a":1,"a":2}`, value.Struct{{Name: "a", Value: int64(2)}}},
		"missing member":            {"struct<a:int,b:int>", `{"b":null,"c":3}`, value.Struct{{Name: "b"}}},
		"list":                      {"array<int>", `[1,null]`, value.List{int64(1), nil}},
		"map":                       {"map<int,string>", `{"1":"a","2":"b","1.0":"c"}`, value.Map{{Key: int64(1), Value: "c"}, {Key: int64(2), Value: "b"}}},
		"map as entries":            {"map<string,int>", `[{"key":"a","value":null}]`, value.Map{{Key: "a"}}},
		"pair of surrogates":        {"string", `"\ud83d\ude00 \\ud800"`, "😀 \\ud800"},
		"replacement char as given": {"string", `"\ufffd�"`, "��"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := value.FromJSON(parseType(t, c.kind), []byte(c.raw))
			require.NoError(t, err)
			require.Equal(t, value.Canonical(c.want), value.Canonical(got))
		})
	}
}

func TestFromJSONRefusesWithoutTellingTheValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"object":            {"int", `{"secret":1}`},
		"number as date":    {"date", `5150`},
		"number as binary":  {"binary", `5150`},
		"boolean as int":    {"int", `true`},
		"fraction as int":   {"int", `5150.5`},
		"string":            {"int", `"secret"`},
		"no JSON":           {"string", `secret`},
		"nothing":           {"string", ``},
		"text as struct":    {"struct<a:int>", `"secret"`},
		"object as array":   {"array<int>", `{"secret":1}`},
		"number as map":     {"map<string,int>", `5150`},
		"half a surrogate":  {"string", `"secret\ud800"`},
		"not UTF-8":         {"string", "\"secret\xff\""},
		"number as boolean": {"boolean", `1`},
		"in a struct":       {"struct<a:array<int>>", `{"a":["secret"]}`},
		"trailing text":     {"struct<a:int>", `{"a":1} secret`},
		"entry of a map":    {"map<string,int>", `[{"secret":1}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := value.FromJSON(parseType(t, c[0]), []byte(c[1]))
			var bad *value.ConvertError
			require.ErrorAs(t, err, &bad)
			require.Nil(t, got)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "5150")
		})
	}
}

func TestMembersKeepsTheLastOfDuplicates(t *testing.T) {
	t.Parallel()
	got, err := value.Members([]byte(`{"a":1,"b":{"c": 2},"a":3}`))
	require.NoError(t, err)
	require.Equal(t, map[string]json.RawMessage{"a": json.RawMessage(`3`), "b": json.RawMessage(`{"c": 2}`)}, got)
	for _, raw := range []string{`[]`, `{"a":1`, `{"a":1}{}`, `{a:1}`, ``} {
		_, err := value.Members([]byte(raw))
		require.Error(t, err, raw)
	}
}

func TestSchemaFindsColumnsByName(t *testing.T) {
	t.Parallel()
	s := value.Schema{{Name: "a"}, {Name: "b"}}
	require.Equal(t, []string{"a", "b"}, s.Names())
	require.Equal(t, 1, s.Index("b"))
	require.Equal(t, -1, s.Index("B"))
}

func TestAppendJSONIsTheCorpusEncoding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind string
		v    value.Value
		want string
	}{
		"decimal":       {"decimal(5,2)", dec(150, 2), `"1.50"`},
		"integer":       {"bigint", int64(7), `7`},
		"double":        {"double", 0.1, `0.1`},
		"float":         {"float", float32(0.1), `0.1`},
		"NaN":           {"double", math.NaN(), `"NaN"`},
		"binary":        {"binary", value.Binary{0xAB}, `"AB"`},
		"timestamp":     {"timestamp", value.Timestamp(1789356600000000), `"2026-09-14T03:30:00.000000Z"`},
		"timestamp_ntz": {"timestamp_ntz", value.LocalTimestamp(1789356600000000), `"2026-09-14T03:30:00.000000"`},
		"date":          {"date", value.Date(20710), `"2026-09-14"`},
		"map":           {"map<string,decimal(3,1)>", value.Map{{Key: "k", Value: dec(10, 1)}}, `[{"key":"k","value":"1.0"}]`},
		"struct":        {"struct<b:int,a:binary>", value.Struct{{Name: "b", Value: nil}, {Name: "a", Value: value.Binary{1}}}, `{"b":null,"a":"01"}`},
		"variant":       {"variant", value.Variant{Metadata: []byte{1}, Value: []byte{0xFF}}, `{"metadata":"01","value":"FF"}`},
		"null":          {"void", nil, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, string(value.AppendJSON(nil, parseType(t, c.kind), c.v)))
		})
	}
}

func TestEqualAgreesWithCanonicalAndCompare(t *testing.T) {
	t.Parallel()
	numbers := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1)}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers.Draw(t, "a"), numbers.Draw(t, "b")
		x := value.List{a, dec(rapid.Int64Range(-20, 20).Draw(t, "d"), rapid.IntRange(0, 2).Draw(t, "scale"))}
		y := value.List{b, dec(rapid.Int64Range(-20, 20).Draw(t, "d"), rapid.IntRange(0, 2).Draw(t, "scale"))}
		equal := value.Canonical(x) == value.Canonical(y)
		if value.Equal(x, y) != equal || (value.Compare(x, y) == 0) != equal || value.Compare(x, y) != -value.Compare(y, x) {
			t.Fatalf("%s and %s", value.Canonical(x), value.Canonical(y))
		}
		if !json.Valid([]byte(value.Canonical(x))) {
			t.Fatalf("%s is not JSON", value.Canonical(x))
		}
	})
}

func TestStringsRoundTripThroughCanonicalText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		got, err := value.FromJSON(value.Type{Kind: value.StringKind}, []byte(value.Canonical(s)))
		if err != nil || got != s {
			t.Fatalf("%q became %q: %v", s, got, err)
		}
	})
}
