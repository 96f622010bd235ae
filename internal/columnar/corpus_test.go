package columnar_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/columnar"
	"varve/internal/value"
)

// corpus is where the tables of other writers lie: beside the repository.
const corpus = "../../../shared/delta-corpus"

func needCorpus(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(corpus); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("the corpus %s is missing", corpus)
	}
	t.Skipf("the corpus %s is missing", corpus)
}

type table struct {
	Mapping    string          `json:"columnMappingMode"`
	Partition  []string        `json:"partitionColumns"`
	NumRows    int64           `json:"numRows"`
	Schema     json.RawMessage `json:"schema"`
	Vectors    int             `json:"deletionVectors"`
	columns    value.Schema
	partitions []int
}

func loadTable(t *testing.T, name string) table {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus, name, "expected", "meta.json"))
	require.NoError(t, err)
	var tab table
	require.NoError(t, json.Unmarshal(raw, &tab))
	tab.columns = value.Schema(deltaType(t, tab.Schema).Fields)
	for i, f := range tab.columns {
		if slices.Contains(tab.Partition, f.Name) {
			tab.partitions = append(tab.partitions, i)
		}
	}
	return tab
}

// deltaType reads a type of Delta's schema JSON.
func deltaType(t *testing.T, raw json.RawMessage) value.Type {
	t.Helper()
	var word string
	if json.Unmarshal(raw, &word) == nil {
		typ, err := value.ParseType(word)
		require.NoError(t, err)
		return typ
	}
	var nested struct {
		Type      string
		Fields    []json.RawMessage
		Element   json.RawMessage `json:"elementType"`
		Key       json.RawMessage `json:"keyType"`
		Value     json.RawMessage `json:"valueType"`
		ElemNull  bool            `json:"containsNull"`
		ValueNull bool            `json:"valueContainsNull"`
	}
	require.NoError(t, json.Unmarshal(raw, &nested))
	switch nested.Type {
	case "array":
		elem := deltaType(t, nested.Element)
		return value.Type{Kind: value.ArrayKind, Elem: &elem, ElemNullable: nested.ElemNull}
	case "map":
		key, elem := deltaType(t, nested.Key), deltaType(t, nested.Value)
		return value.Type{Kind: value.MapKind, Key: &key, Elem: &elem, ElemNullable: nested.ValueNull}
	}
	out := value.Type{Kind: value.StructKind}
	for _, member := range nested.Fields {
		var f struct {
			Name     string
			Type     json.RawMessage
			Nullable bool
			Metadata map[string]any
		}
		require.NoError(t, json.Unmarshal(member, &f))
		out.Fields = append(out.Fields, value.Field{Name: f.Name, Type: deltaType(t, f.Type), Nullable: f.Nullable, Metadata: f.Metadata})
	}
	return out
}

// stated reads a value in the encoding of the corpus.
func stated(t *testing.T, typ value.Type, raw json.RawMessage) value.Value {
	t.Helper()
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	unhex := func(raw json.RawMessage) []byte {
		var text string
		require.NoError(t, json.Unmarshal(raw, &text))
		b, err := hex.DecodeString(text)
		require.NoError(t, err)
		return b
	}
	switch typ.Kind {
	case value.BinaryKind:
		return value.Binary(unhex(raw))
	case value.VariantKind:
		var parts struct{ Metadata, Value json.RawMessage }
		require.NoError(t, json.Unmarshal(raw, &parts))
		return value.Variant{Metadata: unhex(parts.Metadata), Value: unhex(parts.Value)}
	case value.StructKind:
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &members))
		out := value.Struct{}
		for _, f := range typ.Fields {
			out = append(out, value.Member{Name: f.Name, Value: stated(t, f.Type, members[f.Name])})
		}
		return out
	case value.ArrayKind:
		var items []json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &items))
		out := value.List{}
		for _, item := range items {
			out = append(out, stated(t, *typ.Elem, item))
		}
		return out
	case value.MapKind:
		var entries []struct{ Key, Value json.RawMessage }
		require.NoError(t, json.Unmarshal(raw, &entries))
		out := value.Map{}
		for _, e := range entries {
			out = append(out, value.Entry{Key: stated(t, *typ.Key, e.Key), Value: stated(t, *typ.Elem, e.Value)})
		}
		return out
	case value.Float:
		wide := stated(t, value.Type{Kind: value.Double}, raw)
		f, ok := wide.(float64)
		require.True(t, ok && (math.IsNaN(f) || float64(float32(f)) == f))
		return float32(f)
	default:
		v, err := value.FromJSON(typ, raw)
		require.NoError(t, err)
		return v
	}
}

func (tab table) stated(t *testing.T, name string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus, name, "expected", "rows.jsonl"))
	require.NoError(t, err)
	whole := value.Type{Kind: value.StructKind, Fields: tab.columns}
	var texts []string
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		members, ok := stated(t, whole, lines.Bytes()).(value.Struct)
		require.True(t, ok)
		row := make(value.Row, len(members))
		for i, m := range members {
			row[i] = m.Value
		}
		texts = append(texts, tab.text(row))
	}
	require.NoError(t, lines.Err())
	slices.Sort(texts)
	return texts
}

// text leaves the partition columns out: they are not in data files.
func (tab table) text(row value.Row) string {
	row = slices.Clone(row)
	for _, i := range tab.partitions {
		row[i] = nil
	}
	return value.KeyText(row)
}

func dataFiles(t *testing.T, name string) [][]byte {
	t.Helper()
	var files [][]byte
	root := filepath.Join(corpus, name, "delta")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "_"):
			return fs.SkipDir
		case filepath.Ext(path) != ".parquet":
			return nil
		}
		file, err := os.ReadFile(path)
		files = append(files, file)
		return err
	}))
	return files
}

func TestFilesOfOtherWritersAreRead(t *testing.T) {
	t.Parallel()
	needCorpus(t)
	for _, name := range []string{
		"parquet-all-types", "decimal-various-scale-precision", "data-reader-timestamp_ntz", "table-with-columnmapping-mode-name",
		"table-with-icebegCompatV2Enabled", "type-widening", "unshredded-variant", "void-column", "data-skipping-basic-stats-all-types",
		"log-replay-latest-metadata-protocol", "multi-part-checkpoint", "python-0.25.5-checkpoint", "table_with_liquid_clustering",
		"time-travel-start-start20-start40", "v2-checkpoint-json", "delta-2.2.0-partitioned-types", "time-travel-schema-changes-b",
		"app-txn-checkpoint", "v1-multi-part-partitioned-struct-stats-only", "partitioned_with_materialize_feature",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := loadTable(t, name)
			require.Zero(t, tab.Vectors)
			var got []string
			for _, file := range dataFiles(t, name) {
				for _, row := range read(t, file, columnar.ReadOptions{Columns: tab.columns, Mapping: tab.Mapping}) {
					got = append(got, tab.text(row))
				}
			}
			slices.Sort(got)
			require.Equal(t, tab.stated(t, name), got)
		})
	}
}

// Everything in the corpus is Parquet, checkpoints too: its own schema reads it, and what is read survives being written.
func TestFilesOfOtherWritersSurviveBeingWritten(t *testing.T) {
	t.Parallel()
	needCorpus(t)
	require.NoError(t, filepath.WalkDir(corpus, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".parquet" {
			return err
		}
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		f := open(t, file)
		rows := read(t, file, columnar.ReadOptions{})
		require.Len(t, rows, int(f.NumRows()), path)
		again, _ := write(t, f.Schema(), rows, columnar.WriteOptions{})
		require.Equal(t, canonical(rows), canonical(read(t, again, columnar.ReadOptions{Columns: f.Schema()})), path)
		return nil
	}))
}
