package delta_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/value"
)

// logKey is the key of a file of the log.
func logKey(name string) string { return "silver/people/_delta_log/" + name }

// dropCommits deletes the commits up to a version.
func dropCommits(t *testing.T, table delta.Table, through int64) {
	t.Helper()
	for v := range through + 1 {
		require.NoError(t, table.Store.Delete(t.Context(), logKey(fmt.Sprintf("%020d.json", v))))
	}
}

// same claims that two snapshots are equal in all that readers see.
func same(t *testing.T, want, got *delta.Snapshot) {
	t.Helper()
	require.Equal(t, want.Version(), got.Version())
	require.Equal(t, want.Metadata(), got.Metadata())
	require.Equal(t, want.Protocol(), got.Protocol())
	require.Equal(t, withoutDataChange(want.Files()), withoutDataChange(got.Files()))
	require.Equal(t, scan(t.Context(), t, want, nil), scan(t.Context(), t, got, nil))
}

func withoutDataChange(files []delta.Add) []delta.Add {
	for i := range files {
		files[i].DataChange = false
	}
	return files
}

func TestCheckpointIsReadBackEqual(t *testing.T) {
	t.Parallel()
	m := delta.NewMetadata(people(), []string{"name"}, map[string]string{"owner": "x"})
	m.Name, m.Description = "people", "those we know"
	table := newTable(t, m)
	var last delta.Add
	for i, name := range []value.Value{"a", nil, "c d"} {
		add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: people(), Partition: map[string]value.Value{"name": name}},
			rowsOf(value.Row{int64(i), name}))
		require.NoError(t, err)
		add.Tags = map[string]string{"k": "v"}
		c := delta.Commit{ID: uuid.NewString(), Operation: "WRITE", Adds: []delta.Add{add}, Txns: []delta.Txn{{AppID: "w", Version: int64(i)}}}
		if i == 2 {
			c.Removes = []delta.Remove{delta.RemoveOf(last, clock(), true)}
		}
		_, err = table.Commit(t.Context(), int64(i), c)
		require.NoError(t, err)
		last = add
	}
	want, err := table.Version(t.Context(), 3)
	require.NoError(t, err)
	require.NoError(t, table.Checkpoint(t.Context(), 3))
	dropCommits(t, table, 2)
	got, err := table.Latest(t.Context())
	require.NoError(t, err)
	same(t, want, got)
	mark, ok := got.Txn("w")
	require.True(t, ok)
	require.EqualValues(t, 2, mark)
	require.Equal(t, "WRITE", got.Operation())
	_, err = table.Version(t.Context(), 1)
	require.ErrorIs(t, err, delta.ErrNoVersion)
}

func TestCheckpointOfACheckpointIsTheSame(t *testing.T) {
	t.Parallel()
	for _, folder := range corpusTables(t) {
		e := expected(t, folder)
		if e.Tier == "negative" || expectedToFail()[e.Name] != "" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			table := delta.At(load(t, folder), "delta")
			table.Now = func() time.Time { return time.UnixMilli(0) } // no tombstone is too old
			want, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.NoError(t, table.Checkpoint(t.Context(), want.Version()))
			got, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.Equal(t, want.Metadata(), got.Metadata())
			require.Equal(t, want.Protocol(), got.Protocol())
			require.Equal(t, withoutDataChange(want.Files()), withoutDataChange(got.Files()))
		})
	}
}

func TestCheckpointIsMadeEveryTenVersions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config map[string]string
		want   []string
	}{
		"by default": {nil, []string{"00000000000000000010.checkpoint.parquet", "00000000000000000020.checkpoint.parquet"}},
		"as told":    {map[string]string{"delta.checkpointInterval": "15"}, []string{"00000000000000000015.checkpoint.parquet"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newPeople(t, c.config)
			for i := range int64(21) {
				appendRow(t, table, i, value.Row{i, "x"})
			}
			var made []string
			for info, err := range table.Store.List(t.Context(), logKey(""), "") {
				require.NoError(t, err)
				for _, want := range c.want {
					if info.Key == logKey(want) {
						made = append(made, want)
					}
				}
			}
			require.Equal(t, c.want, made)
			s, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.Len(t, s.Files(), 21)
		})
	}
}

func TestHintIsOnlyAHint(t *testing.T) {
	t.Parallel()
	for name, hint := range map[string]string{
		"garbage": "{", "empty": "", "future": `{"version":900,"size":3}`, "no checkpoint there": `{"version":5,"size":3}`,
		"negative": `{"version":-4}`, "text": `{"version":"10"}`, "huge": `{"version":99999999999999999999}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newPeople(t, nil)
			for i := range int64(12) {
				appendRow(t, table, i, value.Row{i, "x"})
			}
			require.NoError(t, table.Store.Put(t.Context(), logKey("_last_checkpoint"), []byte(hint)))
			s, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 12, s.Version())
			require.Len(t, s.Files(), 12)
		})
	}
}

func TestHintDoesNotGoBack(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	for i := range int64(10) {
		appendRow(t, table, i, value.Row{i, "x"})
	}
	before, err := table.Store.Read(t.Context(), logKey("_last_checkpoint"), 0, -1)
	require.NoError(t, err)
	require.Contains(t, string(before), `{"version":10,"size":12,`)
	require.NoError(t, table.Checkpoint(t.Context(), 4))
	after, err := table.Store.Read(t.Context(), logKey("_last_checkpoint"), 0, -1)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

func TestOldTombstonesAreForgotten(t *testing.T) {
	t.Parallel()
	table := newPeople(t, map[string]string{"delta.deletedFileRetentionDuration": "interval 2 days"})
	version, old := appendRow(t, table, 0, value.Row{int64(1), "a"})
	version, young := appendRow(t, table, version, value.Row{int64(2), "b"})
	version, err := table.Commit(t.Context(), version, delta.Commit{ID: "a", Operation: "DELETE", Removes: []delta.Remove{
		delta.RemoveOf(old, clock().Add(-49*time.Hour), true), delta.RemoveOf(young, clock().Add(-47*time.Hour), true),
	}})
	require.NoError(t, err)
	require.NoError(t, table.Checkpoint(t.Context(), version))
	hint, err := table.Store.Read(t.Context(), logKey("_last_checkpoint"), 0, -1)
	require.NoError(t, err)
	require.Contains(t, string(hint), `"size":3,`) // protocol, metaData, one tombstone
	require.Contains(t, string(hint), `"numOfAddFiles":0`)
}

func TestIncompleteCheckpointIsPassedOver(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	for i := range int64(3) {
		appendRow(t, table, i, value.Row{i, "x"})
	}
	require.NoError(t, table.Store.Put(t.Context(), logKey("00000000000000000002.checkpoint.0000000001.0000000002.parquet"), []byte("x")))
	require.NoError(t, table.Store.Put(t.Context(), logKey("00000000000000000002.checkpoint.parquet.tmp"), []byte("x")))
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Files(), 3)
}

func TestDomainsOutliveCheckpoints(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	lines := map[string]string{
		"00000000000000000001.json": `{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["domainMetadata"]}}
{"domainMetadata":{"domain":"a","configuration":"1","removed":false}}
{"domainMetadata":{"domain":"b","configuration":"2","removed":false}}`,
		"00000000000000000002.json": `{"domainMetadata":{"domain":"b","configuration":"2","removed":true}}`,
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		require.NoError(t, table.Store.PutIfAbsent(t.Context(), logKey(name), []byte(lines[name])))
	}
	require.NoError(t, table.Checkpoint(t.Context(), 2))
	dropCommits(t, table, 2)
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	got, ok := s.Domain("a")
	require.True(t, ok)
	require.Equal(t, "1", got)
	_, ok = s.Domain("b")
	require.False(t, ok)
}
