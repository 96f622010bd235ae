package delta_test

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/value"
)

// breaks claims that reading a table fails, naming table, version and file.
func breaks(t *testing.T, table delta.Table, version int64, file string) {
	t.Helper()
	s, err := table.Latest(t.Context())
	if err == nil {
		for _, e := range s.Scan(t.Context(), nil) {
			err = e
		}
	}
	var broken *delta.CorruptError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, "silver/people", broken.Table)
	require.Equal(t, version, broken.Version)
	require.Equal(t, file, broken.File)
}

func TestCorruptCommitIsNamed(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"cut short":          `{"add":{"path":"x"`,
		"not an object":      `[1]`,
		"no path":            `{"add":{"size":1}}`,
		"wrong type":         `{"add":{"path":"x","size":"big"}}`,
		"bad schema":         `{"metaData":{"id":"a","schemaString":"{"}}`,
		"no schema":          `{"metaData":{"id":"a"}}`,
		"bad type":           `{"metaData":{"id":"a","schemaString":"{\"type\":\"list\"}"}}`,
		"no such partition":  `{"metaData":{"id":"a","partitionColumns":["p"],"schemaString":"{\"type\":\"struct\",\"fields\":[]}"}}`,
		"no protocol":        `{"protocol":{}}`,
		"txn without appId":  `{"txn":{"version":1}}`,
		"negative vector":    `{"add":{"path":"x","deletionVector":{"storageType":"i","pathOrInlineDv":"x","sizeInBytes":-1,"cardinality":1}}}`,
		"second line broken": "{\"txn\":{\"appId\":\"a\",\"version\":1}}\n}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newPeople(t, nil)
			require.NoError(t, table.Store.Put(t.Context(), logKey("00000000000000000001.json"), []byte(body)))
			breaks(t, table, 1, "_delta_log/00000000000000000001.json")
		})
	}
}

func TestUnknownActionsAndFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	require.NoError(t, table.Store.Put(t.Context(), logKey("00000000000000000001.json"),
		[]byte("{\"novelty\":{\"a\":1}}\n\n{\"txn\":{\"appId\":\"a\",\"version\":1,\"novelty\":[]}}\n{\"commitInfo\":{\"timestamp\":\"odd\"}}\n")))
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Version())
}

func TestProtocolIsLookedAtBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	require.NoError(t, table.Store.Put(t.Context(), logKey("00000000000000000001.json"), []byte(
		`{"add":{"path":7}}
{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["novelty"],"writerFeatures":["novelty"]}}`)))
	_, err := table.Latest(t.Context())
	var refused *delta.UnsupportedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, `feature "novelty"`, refused.Feature)
	require.Equal(t, "silver/people", refused.Table)
}

func TestGapInTheLogIsNamed(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	for i := range int64(3) {
		appendRow(t, table, i, value.Row{i, "x"})
	}
	require.NoError(t, table.Store.Delete(t.Context(), logKey("00000000000000000002.json")))
	breaks(t, table, 2, "_delta_log/00000000000000000002.json")
}

func TestPathsThatLeaveTheTableAreRefused(t *testing.T) {
	t.Parallel()
	for path, wantUnsupported := range map[string]bool{
		"../other/x.parquet": false, "a/%2e%2e/%2e%2e/x": false, "%2Fetc/passwd": false, "a%zz": false, ".": false, "a%00b": false,
		"/etc/passwd": true, "file:///etc/passwd": true, "s3://bucket/x": true,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			table := newPeople(t, nil)
			require.NoError(t, table.Store.Put(t.Context(), logKey("00000000000000000001.json"),
				[]byte(`{"add":{"path":"`+path+`","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}`)))
			if !wantUnsupported {
				breaks(t, table, 1, path)
				return
			}
			_, err := table.Latest(t.Context())
			var refused *delta.UnsupportedError
			require.ErrorAs(t, err, &refused)
		})
	}
}

func TestCorruptCheckpointIsNamed(t *testing.T) {
	t.Parallel()
	const name = "00000000000000000003.checkpoint.parquet"
	for how, spoil := range map[string]func([]byte) []byte{
		"cut short": func(b []byte) []byte { return b[:len(b)/2] },
		"garbage":   func(b []byte) []byte { return []byte(strings.Repeat("x", len(b))) },
		"empty":     func([]byte) []byte { return nil },
		"no footer": func(b []byte) []byte { return append(b, make([]byte, 64)...) },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			table := newPeople(t, nil)
			for i := range int64(3) {
				appendRow(t, table, i, value.Row{i, "x"})
			}
			require.NoError(t, table.Checkpoint(t.Context(), 3))
			body, err := table.Store.Read(t.Context(), logKey(name), 0, -1)
			require.NoError(t, err)
			require.NoError(t, table.Store.Put(t.Context(), logKey(name), spoil(slices.Clone(body))))
			breaks(t, table, 3, "_delta_log/"+name)
		})
	}
}

func TestCorruptDataFileIsNamed(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	_, add := appendRow(t, table, 0, value.Row{int64(1), "a"})
	require.NoError(t, table.Store.Put(t.Context(), "silver/people/"+add.Path, make([]byte, add.Size)))
	breaks(t, table, 1, add.Path)
}

// vectorFile frames a bitmap as a deletion vector file has it.
func vectorFile(blob []byte) []byte {
	b := []byte{1}
	b = binary.BigEndian.AppendUint32(b, uint32(len(blob)))
	b = append(b, blob...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(blob))
}

// oneRow is the bitmap of one row.
func oneRow(row byte) []byte {
	return []byte{
		0xd1, 0xd3, 0x39, 0x64, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, row, 0,
	}
}

func TestCorruptDeletionVectorIsNamed(t *testing.T) {
	t.Parallel()
	const place = "ab^-aqEH.-t@S}K{vb[*k^"
	const file = "silver/people/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
	good := vectorFile(oneRow(0))
	spoilt := func(at int) []byte {
		b := slices.Clone(good)
		b[at] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		body        []byte
		cardinality int64
		right       bool
	}{
		"right":             {good, 1, true},
		"cut short":         {good[:20], 1, false},
		"other size":        {spoilt(4), 1, false},
		"other bytes":       {spoilt(37), 1, false},
		"other checksum":    {spoilt(len(good) - 1), 1, false},
		"other cardinality": {good, 2, false},
		"beyond the file":   {vectorFile(oneRow(9)), 1, false},
		"other magic":       {vectorFile(append([]byte{0xd0}, oneRow(0)[1:]...)), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t, delta.NewMetadata(people(), nil, nil))
			version, err := table.Commit(t.Context(), 0, delta.Commit{ID: "p", Operation: "UPGRADE PROTOCOL", Protocol: &delta.Protocol{
				MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"deletionVectors"}, WriterFeatures: []string{"deletionVectors"},
			}})
			require.NoError(t, err)
			require.NoError(t, table.Store.Put(t.Context(), file, c.body))
			add := write(t, table, value.Row{int64(1), "deleted"}, value.Row{int64(2), "live"}, value.Row{int64(3), "live"})
			add.Stats = `{"numRecords":3,"tightBounds":false}`
			offset := int32(1)
			add.DeletionVector = &delta.DeletionVector{
				StorageType: "u", PathOrInlineDv: place, Offset: &offset, SizeInBytes: 34, Cardinality: c.cardinality,
			}
			version, err = table.Commit(t.Context(), version, delta.Commit{ID: "a", Operation: "DELETE", Adds: []delta.Add{add}})
			require.NoError(t, err)
			if !c.right {
				breaks(t, table, version, add.Path)
				return
			}
			s, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.Equal(t, []value.Row{{int64(2), "live"}, {int64(3), "live"}}, scan(t.Context(), t, s, nil))
		})
	}
}

// lateLister leaves a key out of its first listings, as a file system may that is written to meanwhile.
type lateLister struct {
	object.Store
	late     string
	listings int
}

func (l *lateLister) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	l.listings--
	hide := l.listings >= 0
	return func(yield func(object.Info, error) bool) {
		for info, err := range l.Store.List(ctx, prefix, after) {
			if hide && info.Key == l.late {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

func TestListingThatLeavesACommitOutIsMadeAgain(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	for id := range int64(4) {
		appendRow(t, table, id, value.Row{id, "somebody"})
	}
	lister := &lateLister{Store: table.Store, late: "silver/people/_delta_log/00000000000000000003.json"}
	table.Store = lister
	for version, want := range map[int64]int64{4: 4, 3: 3, 2: 2, -1: 2} { // 2 was the newest when the listing began
		lister.listings = 1
		s, err := table.Latest(t.Context())
		if version >= 0 {
			s, err = table.Version(t.Context(), version)
		}
		require.NoError(t, err)
		require.Equal(t, want, s.Version())
	}
	require.NoError(t, lister.Delete(t.Context(), lister.late))
	_, err := table.Latest(t.Context())
	require.ErrorContains(t, err, "missing from the log")
}
