package delta_test

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/columnar"
	"varve/internal/delta"
	"varve/internal/object/filestore"
	"varve/internal/value"
)

// kinds is a schema of every kind of column that has stats, and some that have none.
func kinds() value.Schema {
	text := value.Type{Kind: value.StringKind}
	of := func(name string, t value.Type) value.Field { return value.Field{Name: name, Type: t, Nullable: true} }
	return value.Schema{
		of("p", value.Type{Kind: value.DateKind}), of("i", value.Type{Kind: value.Integer}), of("l", value.Type{Kind: value.Long}),
		of("f", value.Type{Kind: value.Float}), of("d", value.Type{Kind: value.Double}),
		of("m", value.Type{Kind: value.DecimalKind, Precision: 20, Scale: 3}), of("s", text), of("b", value.Type{Kind: value.Boolean}),
		of("day", value.Type{Kind: value.DateKind}), of("at", value.Type{Kind: value.TimestampKind}), of("bin", value.Type{Kind: value.BinaryKind}),
		of("n", value.Type{Kind: value.StructKind, Fields: []value.Field{of("x.y", value.Type{Kind: value.Long}), of("z", text)}}),
		of("list", value.Type{Kind: value.ArrayKind, Elem: &text, ElemNullable: true}),
		of("none", value.Type{Kind: value.Long}),
	}
}

// kindsRow makes a row of kinds.
func kindsRow(i int64) value.Row {
	return value.Row{
		value.Date(20000 + i), i, math.MaxInt64 - i, float32(1.5), 1e300,
		value.Decimal{Unscaled: big.NewInt(123456789012 + i), Scale: 3},
		strings.Repeat("é", int(i)*20) + "a", true, value.Date(-i), value.Timestamp(1700000000123456 + i), value.Binary("x"),
		value.Struct{{Name: "x.y", Value: i}, {Name: "z", Value: "z"}},
		value.List{"a"},
		nil,
	}
}

// kindsTable makes a table of kinds partitioned by p with a file for each of some rows, each in its own version.
func kindsTable(t *testing.T, table delta.Table, rows int64, config map[string]string) {
	t.Helper()
	m := delta.NewMetadata(kinds(), []string{"p"}, config)
	_, err := table.Commit(t.Context(), -1, delta.Commit{ID: uuid.NewString(), Operation: "CREATE TABLE", Metadata: &m})
	require.NoError(t, err)
	for i := range rows {
		row := kindsRow(i)
		add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: kinds(), Partition: map[string]value.Value{"p": row[0]}}, rowsOf(row))
		require.NoError(t, err)
		_, err = table.Commit(t.Context(), i, delta.Commit{ID: uuid.NewString(), Operation: "WRITE", Adds: []delta.Add{add}})
		require.NoError(t, err)
	}
}

// parsedJSON reads stats so that they can be compared.
func parsedJSON(t *testing.T, stats string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(stats))
	dec.UseNumber()
	var out map[string]any
	require.NoError(t, dec.Decode(&out), stats)
	return out
}

// columnsOf gives the members of the add column of a checkpoint.
func columnsOf(t *testing.T, table delta.Table, key string) map[string]value.Type {
	t.Helper()
	body, err := table.Store.Read(t.Context(), key, 0, -1)
	require.NoError(t, err)
	f, err := columnar.OpenFile(strings.NewReader(string(body)), int64(len(body)))
	require.NoError(t, err)
	out := map[string]value.Type{}
	for _, column := range f.Schema() {
		for _, member := range column.Type.Fields {
			out[column.Name+"."+member.Name] = member.Type
		}
	}
	return out
}

// TestStatsOutliveCheckpointsInEitherForm reads the stats of a table back from its checkpoint alone.
func TestStatsOutliveCheckpointsInEitherForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config            map[string]string
		asJSON, asStructs bool
	}{
		"by default":  {nil, true, true},
		"struct only": {map[string]string{"delta.checkpoint.writeStatsAsJson": "false"}, false, true},
		"JSON only":   {map[string]string{"delta.checkpoint.writeStatsAsStruct": "false"}, true, false},
		"neither":     {map[string]string{"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "false"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newPeople(t, nil)
			table.Root = "silver/kinds"
			kindsTable(t, table, 3, c.config)
			want, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.NoError(t, table.Checkpoint(t.Context(), 3))
			for v := range 4 {
				require.NoError(t, table.Store.Delete(t.Context(), "silver/kinds/_delta_log/0000000000000000000"+string(rune('0'+v))+".json"))
			}
			columns := columnsOf(t, table, "silver/kinds/_delta_log/00000000000000000003.checkpoint.parquet")
			_, asJSON := columns["add.stats"]
			stats, asStructs := columns["add.stats_parsed"]
			_, parts := columns["add.partitionValues_parsed"]
			require.Equal(t, []bool{c.asJSON, c.asStructs, c.asStructs}, []bool{asJSON, asStructs, parts})
			if asStructs {
				bounds := value.Schema(stats.Fields[value.Schema(stats.Fields).Index("minValues")].Type.Fields).Names()
				require.Equal(t, []string{"i", "l", "f", "d", "m", "s", "day", "at", "n", "none"}, bounds)
			}
			require.NotContains(t, columns, "remove.modificationTime")
			require.NotContains(t, columns, "checkpointMetadata.version")
			got, err := table.Latest(t.Context())
			require.NoError(t, err)
			for i, a := range got.Files() {
				require.Equal(t, want.Files()[i].PartitionValues, a.PartitionValues)
				if !asJSON && !asStructs {
					require.Empty(t, a.Stats)
					continue
				}
				require.Equal(t, parsedJSON(t, want.Files()[i].Stats), parsedJSON(t, a.Stats))
			}
		})
	}
}

func TestStructsHaveTheColumnsThatHaveStats(t *testing.T) {
	t.Parallel()
	table := newPeople(t, map[string]string{"delta.dataSkippingStatsColumns": "name"})
	appendRow(t, table, 0, value.Row{int64(1), "a"})
	require.NoError(t, table.Checkpoint(t.Context(), 1))
	for _, part := range columnsOf(t, table, logKey("00000000000000000001.checkpoint.parquet"))["add.stats_parsed"].Fields {
		if part.Name != "numRecords" {
			require.Equal(t, []string{"name"}, value.Schema(part.Type.Fields).Names(), part.Name)
		}
	}
}

// TestStatsThatDoNotFitAreLeftOut has stats of other writers: a struct that tells less is right, one that tells wrong is not.
func TestStatsThatDoNotFitAreLeftOut(t *testing.T) {
	t.Parallel()
	for stats, want := range map[string]string{
		`{"numRecords":1,"minValues":{"id":"x","name":5,"more":1},"maxValues":{"id":1.5,"name":"b"},"nullCount":{"id":{"a":1},"name":0}}`: `{"numRecords":1,"minValues":{},"maxValues":{"name":"b"},"nullCount":{"name":0}}`,
		`{"numRecords":3}`: `{"numRecords":3}`,
		`{"numRecords":3,"minValues":"x","maxValues":[1],"nullCount":null}`: `{"numRecords":3}`,
		`not JSON`: ``, `[]`: ``,
	} {
		table := newPeople(t, map[string]string{"delta.checkpoint.writeStatsAsJson": "false"})
		add := write(t, table, value.Row{int64(1), "a"})
		add.Stats = stats
		_, err := table.Commit(t.Context(), 0, delta.Commit{ID: "a", Operation: "WRITE", Adds: []delta.Add{add}})
		require.NoError(t, err)
		require.NoError(t, table.Checkpoint(t.Context(), 1))
		dropCommits(t, table, 1)
		s, err := table.Latest(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, s.Files()[0].Stats, stats)
	}
}

func TestClassicCheckpointOfAV2TableFollowsTheV2Spec(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	rawCommit(t, table, 1, `{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["v2Checkpoint","deletionVectors"],"writerFeatures":["v2Checkpoint","deletionVectors"]}}`,
		`{"add":{"path":"a.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true,"stats":"{\"numRecords\":5,\"tightBounds\":false}","deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":1,"sizeInBytes":34,"cardinality":1}}}`)
	want, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.NoError(t, table.Checkpoint(t.Context(), 1))
	columns := columnsOf(t, table, logKey("00000000000000000001.checkpoint.parquet"))
	require.Contains(t, columns, "checkpointMetadata.version")
	require.Contains(t, value.Schema(columns["add.stats_parsed"].Fields).Names(), "tightBounds")
	dropCommits(t, table, 1)
	got, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.Equal(t, want.Protocol(), got.Protocol())
	require.Equal(t, withoutDataChange(want.Files()), withoutDataChange(got.Files()))
	hint, err := table.Store.Read(t.Context(), logKey("_last_checkpoint"), 0, -1)
	require.NoError(t, err)
	require.Contains(t, string(hint), `{"version":1,"size":4,`) // checkpointMetadata, protocol, metaData, add
}

func TestHintTellsTheSchemaAndIsBelievedOnlyWithItsChecksum(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	for i := range int64(12) {
		appendRow(t, table, i, value.Row{i, "x"})
	}
	body, err := table.Store.Read(t.Context(), logKey("_last_checkpoint"), 0, -1)
	require.NoError(t, err)
	var hint struct {
		CheckpointSchema json.RawMessage `json:"checkpointSchema"`
		Checksum         string          `json:"checksum"`
		NumOfAddFiles    int64           `json:"numOfAddFiles"`
	}
	require.NoError(t, json.Unmarshal(body, &hint))
	require.Len(t, hint.Checksum, 32)
	require.EqualValues(t, 10, hint.NumOfAddFiles)
	schema, err := delta.ParseSchema(string(hint.CheckpointSchema))
	require.NoError(t, err)
	require.Contains(t, schema.Names(), "add")
	// A hint for a version whose checkpoint is not the newest would be followed; with a wrong checksum it is not.
	require.NoError(t, table.Checkpoint(t.Context(), 5))
	older := strings.Replace(string(body), `"version":10`, `"version":5`, 1)
	require.NoError(t, table.Store.Put(t.Context(), logKey("_last_checkpoint"), []byte(older)))
	require.NoError(t, table.Checkpoint(t.Context(), 4))
	now, err := table.Store.Read(t.Context(), logKey("_last_checkpoint"), 0, -1)
	require.NoError(t, err)
	require.Contains(t, string(now), `"version":4`, "a hint with a wrong checksum stood in the way")
}

// TestCheckpointOfManyFilesNeedsLittleMemory makes the checkpoint of many files within four kilobytes of heap a file beside
// what any checkpoint takes, the table's state among it: a hundred thousand files take a few hundred megabytes.
func TestCheckpointOfManyFilesNeedsLittleMemory(t *testing.T) {
	const files, limit = 10_000, 32<<20 + 10_000*4<<10
	table := newPeople(t, nil)
	var body strings.Builder
	for range files {
		body.WriteString(`{"add":{"path":"part-00000-` + uuid.NewString() + `.c000.zstd.parquet","partitionValues":{},"size":1048576,"modificationTime":1789356600123,"dataChange":true,"stats":"{\"numRecords\":1000,\"minValues\":{\"id\":1,\"name\":\"a\"},\"maxValues\":{\"id\":1000,\"name\":\"z\"},\"nullCount\":{\"id\":0,\"name\":0}}"}}` + "\n")
	}
	require.NoError(t, table.Store.Put(t.Context(), logKey("00000000000000000001.json"), []byte(body.String())))
	body.Reset()
	peak, stop := watchHeap()
	err := table.Checkpoint(t.Context(), 1)
	stop()
	require.NoError(t, err)
	t.Logf("at most %d MiB of heap", peak.Load()>>20)
	require.Less(t, peak.Load(), uint64(limit))
}

// watchHeap watches how much of the heap is in use at most.
func watchHeap() (peak *atomic.Uint64, stop func()) {
	peak = &atomic.Uint64{}
	done, ended := make(chan struct{}), make(chan struct{})
	ticker := time.NewTicker(5 * time.Millisecond)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapAlloc))
			}
		}
	}()
	return peak, func() { ticker.Stop(); close(done); <-ended }
}

// python gives a Python with the other engines.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("VARVE_PYTHON")
	if name == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("VARVE_PYTHON names no Python with deltalake, polars and DuckDB")
		}
		t.Skip("set VARVE_PYTHON to a Python with deltalake, polars and DuckDB; .ci/run does")
	}
	return name
}

// TestEnginesOpenATableFromOurCheckpointAlone leaves a table with a checkpoint that has stats as a struct only, its commits
// up to there being gone, and lets other engines read it, with and without a filter that stats decide on.
func TestEnginesOpenATableFromOurCheckpointAlone(t *testing.T) {
	t.Parallel()
	python := python(t)
	for name, v2 := range map[string]bool{"classic": false, "v2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store, err := filestore.Open(dir)
			require.NoError(t, err)
			now := time.Now().Add(days(40))
			table := delta.Table{Store: store, Root: "kinds", Now: func() time.Time { return now }}
			kindsTable(t, table, 4, map[string]string{"delta.checkpoint.writeStatsAsJson": "false"})
			if v2 {
				require.NoError(t, store.Put(t.Context(), "kinds/_delta_log/00000000000000000005.json", []byte(`{"commitInfo":{"operation":"x"}}
{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["v2Checkpoint"],"writerFeatures":["v2Checkpoint"]}}`)))
			}
			s, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.NoError(t, table.Checkpoint(t.Context(), s.Version()))
			cleaned, err := table.CleanLog(t.Context())
			require.NoError(t, err)
			require.Equal(t, s.Version(), cleaned.Through)
			require.Len(t, s.Files(), 4)
			script := filepath.Join("testdata", "fromcheckpoint.py")
			out, err := exec.CommandContext(t.Context(), python, script, filepath.Join(dir, "kinds")).CombinedOutput()
			require.NoError(t, err, string(out))
			want := "deltalake 4 1 [0, 1, 2, 3]\nduckdb 4 1 [0, 1, 2, 3]\n"
			if !v2 { // polars does not know the feature
				want += "polars 4 1 [0, 1, 2, 3]\n"
			}
			require.Equal(t, want, string(out))
		})
	}
}
