package delta_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/value"
)

func kind(k value.Kind) value.Type { return value.Type{Kind: k} }

// wide is a schema of all kinds that can be written.
func wide() value.Schema {
	text, whole := kind(value.StringKind), kind(value.Long)
	types := []value.Type{
		kind(value.Boolean), kind(value.Byte), kind(value.Short), kind(value.Integer), kind(value.Float), kind(value.Double),
		{Kind: value.DecimalKind, Precision: 9, Scale: 2},
		{Kind: value.DecimalKind, Precision: 38, Scale: 10},
		text, kind(value.BinaryKind), kind(value.DateKind), kind(value.TimestampKind), kind(value.TimestampNTZ),
		{Kind: value.StructKind, Fields: []value.Field{
			{Name: "a", Type: whole, Nullable: true}, {Name: "b", Type: text, Nullable: true},
		}},
		{Kind: value.ArrayKind, Elem: &text, ElemNullable: true},
		{Kind: value.MapKind, Key: &text, Elem: &whole, ElemNullable: true},
	}
	s := make(value.Schema, 0, 1+len(types))
	s = append(s, value.Field{Name: "id", Type: whole})
	for i, t := range types {
		name := fmt.Sprintf("c%d", i)
		s = append(s, value.Field{Name: name, Type: t, Nullable: true})
	}
	return s
}

// wideRow is a row of it.
func wideRow() value.Row {
	return value.Row{
		int64(1), true, int64(-3), int64(300), int64(70000), float32(1.5), 2.25,
		value.Decimal{Unscaled: big.NewInt(-12345), Scale: 2},
		value.Decimal{Unscaled: big.NewInt(7), Scale: 10},
		"text",
		value.Binary{0, 255},
		value.Date(20000), value.Timestamp(1_700_000_000_123_456),
		value.LocalTimestamp(1_700_000_000_123_456),
		value.Struct{{Name: "a", Value: int64(5)}, {Name: "b", Value: nil}},
		value.List{"x", nil},
		value.Map{{Key: "k", Value: int64(9)}},
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	table := newTable(t, delta.NewMetadata(wide(), nil, nil))
	nulls := make(value.Row, len(wide()))
	nulls[0] = int64(2)
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: wide()}, rowsOf(wideRow(), nulls))
	require.NoError(t, err)
	version, err := table.Commit(t.Context(), 0, delta.Commit{ID: "a", Operation: "WRITE", Adds: []delta.Add{add}})
	require.NoError(t, err)
	s, err := table.Version(t.Context(), version)
	require.NoError(t, err)
	require.Equal(t, []value.Row{wideRow(), nulls}, scan(t.Context(), t, s, nil))
	require.Equal(t, []string{"timestampNtz"}, s.Protocol().ReaderFeatures)
	require.Equal(t, wide(), s.Schema())
	count, ok := add.Records()
	require.True(t, ok)
	require.EqualValues(t, 2, count)
}

func TestStatsAreSparks(t *testing.T) {
	t.Parallel()
	table := newTable(t, delta.NewMetadata(wide(), nil, nil))
	row := wideRow()
	row[9] = strings.Repeat("é", 40)
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: wide()}, rowsOf(row))
	require.NoError(t, err)
	bounds := `{"id":1,"c1":-3,"c2":300,"c3":70000,"c4":1.5,"c5":2.25,"c6":-123.45,"c7":0.0000000007,"c8":"%s",` +
		`"c10":"2024-10-04","c11":"2023-11-14T22:13:20.123Z","c12":"2023-11-14T22:13:20.123","c13":{"a":5}}`
	short := strings.Repeat("é", 32)
	require.Equal(t, `{"numRecords":1,"minValues":`+fmt.Sprintf(bounds, short)+`,"maxValues":`+
		fmt.Sprintf(bounds, short+"\U0010ffff")+`,"nullCount":{"id":0,"c0":0,"c1":0,"c2":0,"c3":0,"c4":0,"c5":0,"c6":0,"c7":0,`+
		`"c8":0,"c9":0,"c10":0,"c11":0,"c12":0,"c13":{"a":0,"b":1},"c14":0,"c15":0}}`, add.Stats)
}

func TestStatsLeaveOutWhatHasNoBounds(t *testing.T) {
	t.Parallel()
	schema := value.Schema{
		{Name: "f", Type: kind(value.Double), Nullable: true}, {Name: "n", Type: kind(value.Long), Nullable: true},
	}
	table := newTable(t, delta.NewMetadata(schema, nil, nil))
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: schema}, rowsOf(value.Row{math.NaN(), nil}, value.Row{1.0, nil}))
	require.NoError(t, err)
	require.JSONEq(t, `{"numRecords":2,"minValues":{},"maxValues":{},"nullCount":{"f":0,"n":2}}`, add.Stats)
}

func TestStatsAreOfTheColumnsThatTheTableSays(t *testing.T) {
	t.Parallel()
	schema := wide()
	for name, c := range map[string]struct {
		config map[string]string
		want   string
	}{
		"named":    {map[string]string{"delta.dataSkippingStatsColumns": "c3, `c13`"}, `{"c3":0,"c13":{"a":0,"b":1}}`},
		"counted":  {map[string]string{"delta.dataSkippingNumIndexedCols": "2"}, `{"id":0,"c0":0}`},
		"none":     {map[string]string{"delta.dataSkippingNumIndexedCols": "0"}, `{}`},
		"the rule": {map[string]string{"delta.dataSkippingStatsColumns": "c3", "delta.dataSkippingNumIndexedCols": "2"}, `{"c3":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t, delta.NewMetadata(schema, nil, c.config))
			add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: schema, Config: c.config}, rowsOf(wideRow()))
			require.NoError(t, err)
			var stats struct {
				NullCount json.RawMessage `json:"nullCount"`
			}
			require.NoError(t, json.Unmarshal([]byte(add.Stats), &stats))
			require.Equal(t, c.want, string(stats.NullCount))
		})
	}
}

func TestPartitionValuesOfEveryTypeComeBack(t *testing.T) {
	t.Parallel()
	for i, f := range wide() {
		switch f.Type.Kind {
		case value.StructKind, value.ArrayKind, value.MapKind:
			continue
		default:
		}
		t.Run(f.Type.String(), func(t *testing.T) {
			t.Parallel()
			f.Name, f.Nullable = "p :=/%ü", true
			schema := value.Schema{f, {Name: "x", Type: kind(value.Long), Nullable: true}}
			table := newTable(t, delta.NewMetadata(schema, []string{f.Name}, nil))
			v := wideRow()[i]
			if f.Type.Kind == value.BinaryKind {
				v = value.Binary("bytes")
			}
			adds := make([]delta.Add, 2)
			for i, v := range []value.Value{v, nil} {
				add, err := table.WriteFile(t.Context(), delta.FileOptions{
					Schema: schema, Partition: map[string]value.Value{f.Name: v}, Prefix: "a folder",
				}, rowsOf(value.Row{v, int64(5)}))
				require.NoError(t, err)
				adds[i] = add
			}
			_, err := table.Commit(t.Context(), 0, delta.Commit{ID: "a", Operation: "WRITE", Adds: adds})
			require.NoError(t, err)
			s, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.Equal(t, []value.Row{{nil, int64(5)}, {v, int64(5)}}, scan(t.Context(), t, s, nil))
			for _, a := range s.Files() {
				has, err := s.HasColumn(t.Context(), a, f.Name)
				require.NoError(t, err)
				require.False(t, has)
			}
		})
	}
}

func TestPartitionFoldersAreEscapedTwice(t *testing.T) {
	t.Parallel()
	schema := people()
	table := newTable(t, delta.NewMetadata(schema, []string{"name"}, nil))
	add, err := table.WriteFile(t.Context(), delta.FileOptions{
		Schema: schema, Partition: map[string]value.Value{"name": `bar "`},
	}, rowsOf(value.Row{int64(1), `bar "`}))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(add.Path, "name=bar%20%2522/part-00000-"), add.Path)
	_, err = table.Commit(t.Context(), 0, delta.Commit{ID: "a", Operation: "WRITE", Adds: []delta.Add{add}})
	require.NoError(t, err)
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	key, err := s.Key(add)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(key, "silver/people/name=bar %22/part-00000-"), key)
}

func TestHiddenColumnsAreInTheFileAndNotInTheTable(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	hidden := value.Schema{{Name: "_varve_seq", Type: kind(value.Long), Nullable: true}}
	with, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: people(), Hidden: hidden},
		rowsOf(value.Row{int64(1), "a", int64(77)}))
	require.NoError(t, err)
	require.NotContains(t, with.Stats, "_varve_seq")
	without := write(t, table, value.Row{int64(2), "b"})
	_, err = table.Commit(t.Context(), 0, delta.Commit{ID: "a", Operation: "WRITE", Adds: []delta.Add{with, without}})
	require.NoError(t, err)
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.Equal(t, []value.Row{{int64(1), "a"}, {int64(2), "b"}}, scan(t.Context(), t, s, nil))
	require.Equal(t, []value.Row{{int64(1), "a", int64(77)}, {int64(2), "b", nil}}, scan(t.Context(), t, s, hidden))
	for _, a := range s.Files() {
		has, err := s.HasColumn(t.Context(), a, "_varve_seq")
		require.NoError(t, err)
		require.Equal(t, a.Path == with.Path, has)
	}
}

func TestRowsThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	strict := people()
	strict[0].Nullable = false
	nested := value.Schema{{Name: "s", Nullable: true, Type: value.Type{
		Kind: value.StructKind, Fields: []value.Field{{Name: "a", Type: kind(value.Long)}},
	}}}
	bad := errors.New("bad row")
	for name, c := range map[string]struct {
		o    delta.FileOptions
		rows iter.Seq2[value.Row, error]
	}{
		"null":            {delta.FileOptions{Schema: strict}, rowsOf(value.Row{nil, "a"})},
		"nested null":     {delta.FileOptions{Schema: nested}, rowsOf(value.Row{value.Struct{{Name: "a"}}})},
		"short row":       {delta.FileOptions{Schema: people()}, rowsOf(value.Row{int64(1)})},
		"other partition": {delta.FileOptions{Schema: people(), Partition: map[string]value.Value{"id": int64(1)}}, rowsOf(value.Row{int64(2), "a"})},
		"unknown column":  {delta.FileOptions{Schema: people(), Partition: map[string]value.Value{"x": int64(1)}}, rowsOf()},
		"empty partition": {delta.FileOptions{Schema: people(), Partition: map[string]value.Value{"name": ""}}, rowsOf()},
		"hidden twice":    {delta.FileOptions{Schema: people(), Hidden: people()}, rowsOf()},
		"folder outside":  {delta.FileOptions{Schema: people(), Prefix: "a/../.."}, rowsOf()},
		"folder of log":   {delta.FileOptions{Schema: people(), Prefix: "_delta_log"}, rowsOf()},
		"error":           {delta.FileOptions{Schema: people()}, func(yield func(value.Row, error) bool) { yield(nil, bad) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := table.WriteFile(t.Context(), c.o, c.rows)
			require.Error(t, err)
			if name == "error" {
				require.ErrorIs(t, err, bad)
			}
		})
	}
}

func TestTimeTravelGivesEachVersion(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	for i := range int64(12) {
		appendRow(t, table, i, value.Row{i, "x"})
	}
	for v := range int64(13) {
		s, err := table.Version(t.Context(), v)
		require.NoError(t, err)
		require.Equal(t, v, s.Version())
		require.Len(t, scan(t.Context(), t, s, nil), int(v))
	}
	_, err := table.Version(t.Context(), 13)
	require.ErrorIs(t, err, delta.ErrNoVersion)
	_, err = table.Version(t.Context(), -1)
	require.ErrorIs(t, err, delta.ErrNoVersion)
	_, err = delta.At(table.Store, "elsewhere").Version(t.Context(), 3)
	require.ErrorIs(t, err, delta.ErrNoTable)
}

func TestMissingDataFileIsNotCorruptButNotFound(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	_, add := appendRow(t, table, 0, value.Row{int64(1), "a"})
	require.NoError(t, table.Store.Delete(t.Context(), "silver/people/"+add.Path))
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	for _, err := range s.Scan(t.Context(), nil) {
		require.ErrorIs(t, err, object.ErrNotFound)
		require.ErrorContains(t, err, add.Path)
	}
}

func TestColumnsAreReadInTheOrderAskedFor(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	_, add := appendRow(t, table, 0, value.Row{int64(1), "a"})
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	columns := value.Schema{people()[1], people()[0]}
	for row, err := range s.ReadColumns(t.Context(), add, columns, nil) {
		require.NoError(t, err)
		require.Equal(t, value.Row{"a", int64(1)}, row)
	}
	for row, err := range s.ReadColumns(t.Context(), add, nil, nil) {
		require.NoError(t, err)
		require.Empty(t, row)
	}
}

func TestAddedColumnIsNullInOldFiles(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	version, _ := appendRow(t, table, 0, value.Row{int64(1), "a"})
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	m := s.Metadata()
	m.Schema = append(people(), value.Field{Name: "more", Type: kind(value.DateKind), Nullable: true})
	_, err = table.Commit(t.Context(), version, delta.Commit{ID: uuid.NewString(), Operation: "ADD COLUMNS", Metadata: &m})
	require.NoError(t, err)
	s, err = table.Latest(t.Context())
	require.NoError(t, err)
	require.Equal(t, []value.Row{{int64(1), "a", nil}}, scan(t.Context(), t, s, nil))
}
