package delta

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"varve/internal/value"
)

func TestLogNamesAreExact(t *testing.T) {
	t.Parallel()
	const v, w, id = "00000000000000000007", "00000000000000000009", "80a083e8-7026-4e79-81be-64bd76c43a11"
	for name, want := range map[string]logName{
		v + ".json":                                     {version: 7, end: 7},
		v + "." + w + ".compacted.json":                 {kind: compactedFile, version: 7, end: 9},
		v + ".checkpoint.parquet":                       {kind: classicCheckpoint, version: 7, end: 7},
		v + ".checkpoint." + id + ".json":               {kind: uuidCheckpoint, version: 7, end: 7, id: id, json: true},
		v + ".checkpoint." + id + ".parquet":            {kind: uuidCheckpoint, version: 7, end: 7, id: id},
		v + ".checkpoint.0000000001.0000000002.parquet": {kind: partCheckpoint, version: 7, end: 7, part: 1, parts: 2},
	} {
		got, ok := parseLogName(name)
		require.True(t, ok, name)
		require.Equal(t, want, got)
		require.Equal(t, name, got.String())
	}
	for _, name := range []string{
		"", ".json", "7.json", "0" + v + ".json", v + ".crc", v + ".json.tmp", "." + v + ".json.crc", "._" + v + ".json", v,
		v + ".checkpoint.json", v + ".checkpoint.x.parquet", v + ".checkpoint.0000000003.0000000002.parquet",
		v + ".checkpoint.0000000000.0000000002.parquet", w + "." + v + ".compacted.json", "99999999999999999999.json",
		"+0000000000000000001.json", "_last_checkpoint", v + "." + id + ".json", v + ".JSON",
	} {
		_, ok := parseLogName(name)
		require.False(t, ok, name)
	}
}

func TestSchemaStringRoundTrips(t *testing.T) {
	t.Parallel()
	text := `{"type":"struct","fields":[` +
		`{"name":"a","type":"long","nullable":false,"metadata":{"delta.columnMapping.id":4,"note":{"deep":[1.50,"x",null]}}},` +
		`{"name":"b","type":"decimal(38,18)","nullable":true,"metadata":{}},` +
		`{"name":"c","type":{"type":"array","elementType":{"type":"map","keyType":"string","valueType":"timestamp_ntz",` +
		`"valueContainsNull":false},"containsNull":true},"nullable":true,"metadata":{}},` +
		`{"name":"d","type":{"type":"struct","fields":[{"name":"x","type":"variant","nullable":true,"metadata":{}}]},` +
		`"nullable":true,"metadata":{}},{"name":"e","type":"void","nullable":true,"metadata":{}}]}`
	schema, err := ParseSchema(text)
	require.NoError(t, err)
	require.Equal(t, text, SchemaString(schema))
	require.Equal(t, json.Number("4"), schema[0].Metadata["delta.columnMapping.id"])
	for _, primitive := range []string{
		"string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
		"timestamp_ntz", "variant", "void", "decimal(10,0)",
	} {
		parsed, err := parsePrimitive(primitive)
		require.NoError(t, err)
		require.Equal(t, primitive, typeForm(parsed))
	}
}

func TestBadSchemasAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{", `"long"`, `{"type":"struct","fields":[{"name":"a"}]}`, `{"type":"array","elementType":"long"}`,
		`{"type":"struct","fields":[{"name":"a","type":"decimal(39,0)"}]}`,
		`{"type":"struct","fields":[{"name":"a","type":"decimal(3,4)"}]}`,
		`{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"a","type":"long"}]}`,
		strings.Repeat(`{"type":"array","elementType":`, 200) + `"long"` + strings.Repeat("}", 200),
	} {
		_, err := ParseSchema(text)
		require.Error(t, err, text)
	}
	_, err := ParseSchema(`{"type":"struct","fields":[{"name":"g","type":"geometry(OGC:CRS84)"}]}`)
	var refused *UnsupportedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "type geometry(OGC:CRS84)", refused.Feature)
}

func TestInlineVectorIsRead(t *testing.T) {
	t.Parallel()
	d := DeletionVector{
		StorageType: "i", PathOrInlineDv: "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", SizeInBytes: 44, Cardinality: 6,
	}
	rows, err := d.load(t.Context(), nil, "")
	require.NoError(t, err)
	for row := range int64(40) {
		want := row == 3 || row == 4 || row == 7 || row == 11 || row == 18 || row == 29
		require.Equal(t, want, rows.has(row), row)
	}
	require.EqualValues(t, 29, rows.max())
	d.SizeInBytes = 36
	_, err = d.load(t.Context(), nil, "")
	require.Error(t, err)
}

func TestVectorPathsOfTheProtocolsExamples(t *testing.T) {
	t.Parallel()
	for place, want := range map[string]string{
		"ab^-aqEH.-t@S}K{vb[*k^": "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
		"vBn[lx{q8@P<9BNH/isA":   "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin",
	} {
		d := DeletionVector{StorageType: "u", PathOrInlineDv: place}
		got, err := d.file()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, place := range []string{"short", "../../ab^-aqEH.-t@S}K{vb[*k^", "vBn[lx{q8@P<9BNH/is\""} {
		d := DeletionVector{StorageType: "u", PathOrInlineDv: place}
		_, err := d.file()
		require.Error(t, err, place)
	}
}

func TestVectorUniqueIDTellsVectorsApart(t *testing.T) {
	t.Parallel()
	offset := int32(1)
	require.Empty(t, (*DeletionVector)(nil).uniqueID())
	require.Equal(t, "uab", (&DeletionVector{StorageType: "u", PathOrInlineDv: "ab"}).uniqueID())
	require.Equal(t, "uab@1", (&DeletionVector{StorageType: "u", PathOrInlineDv: "ab", Offset: &offset}).uniqueID())
}

func TestZ85RoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		back, err := decodeZ85(encodeZ85(b))
		if err != nil || len(back) < len(b) || len(back) > len(b)+3 || string(back[:len(b)]) != string(b) {
			t.Fatalf("got %x, want %x: %v", back, b, err)
		}
	})
}

func TestZ85TailOfOtherWritersIsRead(t *testing.T) {
	t.Parallel()
	got, err := decodeZ85("HelloWorld##093")
	require.NoError(t, err)
	require.Equal(t, []byte{0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b, 3, 0}, got)
	for _, bad := range []string{"Hello1", "He\"lo", "##093Hello", "####0", "#####", "Hell\xff"} {
		_, err := decodeZ85(bad)
		require.Error(t, err, bad)
	}
}

func TestFloatsAreWrittenAsJavaWritesThem(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]float64{
		"0.0": 0, "1.0": 1, "0.001": 1e-3, "1.0E-4": 1e-4, "1234567.0": 1234567, "1.0E7": 1e7, "1.2345678E7": 12345678,
		"-1.5E-10": -1.5e-10, "NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "1.0E10": 1e10,
		"1.7976931348623157E308": math.MaxFloat64,
	} {
		require.Equal(t, want, javaFloat(f, 64))
	}
	require.Equal(t, "0.1", javaFloat(float64(float32(0.1)), 32))
}

func TestPartitionTextsAreReadInEveryForm(t *testing.T) {
	t.Parallel()
	at := value.Timestamp(1_600_000_000_123_456)
	for _, c := range []struct {
		t    value.Type
		text string
		want value.Value
	}{
		{value.Type{Kind: value.TimestampKind}, "2020-09-13 12:26:40.123456", at},
		{value.Type{Kind: value.TimestampKind}, "2020-09-13T12:26:40.123456Z", at},
		{value.Type{Kind: value.TimestampKind}, "2020-09-13T14:26:40.123456+02:00", at},
		{value.Type{Kind: value.TimestampKind}, "2020-09-13 12:26:40", at - 123_456},
		{value.Type{Kind: value.TimestampNTZ}, "2020-09-13 12:26:40.123456", value.LocalTimestamp(at)},
		{value.Type{Kind: value.DateKind}, "1969-12-31", value.Date(-1)},
		{value.Type{Kind: value.Double}, "1.0E10", 1e10},
		{value.Type{Kind: value.Float}, "-Infinity", float32(math.Inf(-1))},
		{value.Type{Kind: value.Boolean}, "true", true},
		{value.Type{Kind: value.Byte}, "-128", int64(-128)},
		{value.Type{Kind: value.Long}, "", nil},
	} {
		got, err := parsePartition(c.t, &c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got)
	}
	for text, kind := range map[string]value.Kind{
		"x": value.Long, "128": value.Byte, "1.5": value.Integer, "yes": value.Boolean, "2020-13-01": value.DateKind,
		"0x10": value.Double, "noon": value.TimestampKind,
	} {
		_, err := parsePartition(value.Type{Kind: kind}, &text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), text)
	}
	long := "1.23"
	_, err := parsePartition(value.Type{Kind: value.DecimalKind, Precision: 3, Scale: 1}, &long)
	require.Error(t, err)
}

func TestStatsBoundsHoldWhatTheyBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune{'a', '~', 0x7f, 'é', 0xffff, 0x1f600, 0x10ffff}), 0, 80, -1).Draw(t, "text")
		low := shortest(s)
		if low > s || !strings.HasPrefix(s, low) {
			t.Fatalf("%q is no lower bound of %q", low, s)
		}
		if high, ok := longest(s); ok && high < s {
			t.Fatalf("%q is no upper bound of %q", high, s)
		}
	})
}

func TestLongTextsAreCutInStats(t *testing.T) {
	t.Parallel()
	a32 := strings.Repeat("a", 32)
	for s, want := range map[string]string{
		a32:                              a32,
		a32 + "b":                        a32 + "\x7f",
		a32 + "\x7f":                     a32 + "\U0010ffff",
		a32 + "é":                        a32 + "\U0010ffff",
		a32 + "\U0010ffffb":              a32 + "\U0010ffff\x7f",
		a32[1:] + "\U0001f600":           a32[1:] + "\U0010ffff",
		a32[1:] + "é" + "x":              a32[1:] + "é" + "\x7f",
		strings.Repeat("a", 40) + "\xff": a32 + "\x7f",
	} {
		got, ok := longest(s)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok := longest(a32 + strings.Repeat("\U0010ffff", 20) + "x")
	require.False(t, ok)
}

func TestMetadataRoundTrips(t *testing.T) {
	t.Parallel()
	m := NewMetadata(value.Schema{{Name: "a", Type: value.Type{Kind: value.Long}}}, []string{"a"}, map[string]string{"k": "v"})
	m.Name, m.Description, m.CreatedTime = "n", "d", 5
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	var back Metadata
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, m, back)
}

func TestLeastProtocolHasWhatTheColumnsNeed(t *testing.T) {
	t.Parallel()
	long, ntz := value.Type{Kind: value.Long}, value.Type{Kind: value.TimestampNTZ}
	require.Equal(t, Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, MinProtocol())
	require.Equal(t, Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, MinProtocol(value.Schema{{Name: "a", Type: long}}))
	deep := value.Type{Kind: value.MapKind, Key: &long, Elem: &value.Type{Kind: value.ArrayKind, Elem: &ntz}}
	require.Equal(t, Protocol{
		MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"timestampNtz"},
		WriterFeatures: []string{"appendOnly", "invariants", "timestampNtz"},
	}, MinProtocol(value.Schema{{Name: "a", Type: deep}}))
}
