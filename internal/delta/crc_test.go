package delta_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/value"
)

// TestEveryCommitGetsTheChecksumOfItsVersion compares the checksums that follow from commit to commit with those of the
// versions themselves, in every member.
func TestEveryCommitGetsTheChecksumOfItsVersion(t *testing.T) {
	t.Parallel()
	table := newPeople(t, map[string]string{"delta.checkpointInterval": "100"})
	var live []delta.Add
	for i := range int64(6) {
		c := delta.Commit{ID: uuid.NewString(), Operation: "WRITE", Txns: []delta.Txn{{AppID: fmt.Sprint("w", i%2), Version: i}}}
		c.Adds = []delta.Add{write(t, table, value.Row{i, strings.Repeat("x", int(i)*3000)})}
		if i%2 == 1 {
			c.Removes = []delta.Remove{delta.RemoveOf(live[0], clock(), true)}
			live = live[1:]
		}
		live = append(live, c.Adds...)
		if i == 3 {
			m := delta.NewMetadata(people(), nil, map[string]string{"delta.checkpointInterval": "100", "x": "<y>"})
			c.Metadata = &m
		}
		_, err := table.Commit(t.Context(), i, c)
		require.NoError(t, err)
	}
	for v := range int64(7) {
		s, err := table.Version(t.Context(), v)
		require.NoError(t, err)
		read, err := table.ReadChecksum(t.Context(), v)
		require.NoError(t, err)
		require.Equal(t, s.Checksum(), read, "version %d", v)
		require.Empty(t, s.Differs(read))
	}
}

func TestChecksumsOfTheCorpusAgreeWithItsLogs(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, folder := range corpusTables(t) {
		if filepath.Base(folder) == "crc-full" {
			continue // a checksum made to be parsed, beside a log that has no files
		}
		table := delta.At(load(t, filepath.Join(folder, "delta")), "")
		for v := range int64(30) {
			read, err := table.ReadChecksum(t.Context(), v)
			if err != nil {
				continue
			}
			s, err := table.Version(t.Context(), v)
			if err != nil {
				continue
			}
			require.Empty(t, s.Differs(read), "%s, version %d", folder, v)
			checked++
		}
	}
	require.Greater(t, checked, 30)
}

func TestChecksumThatContradictsIsFound(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	appendRow(t, table, 0, value.Row{int64(1), "a"})
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	for member, damage := range map[string][2]string{
		"numFiles": {`"numFiles":1`, `"numFiles":2`}, "tableSizeBytes": {`"tableSizeBytes":`, `"tableSizeBytes":9`},
		"setTransactions": {`"setTransactions":[]`, `"setTransactions":[{"appId":"a","version":1}]`},
		"metadata":        {`\"name\":\"name\"`, `\"name\":\"eman\"`}, "protocol": {`"minWriterVersion":2`, `"minWriterVersion":4`},
		"fileSizeHistogram": {`"fileCounts":[1,0`, `"fileCounts":[0,1`}, "domainMetadata": {`"domainMetadata":[]`, `"domainMetadata":[{"domain":"d"}]`},
		"numDeletionVectors": {`"numDeletionVectorsOpt":0`, `"numDeletionVectorsOpt":1`}, "numMetadata": {`"numMetadata":1`, `"numMetadata":2`},
	} {
		t.Run(member, func(t *testing.T) {
			t.Parallel()
			body, err := table.Store.Read(t.Context(), logKey("00000000000000000001.crc"), 0, -1)
			require.NoError(t, err)
			require.Contains(t, string(body), damage[0])
			other := delta.At(table.Store, "other/"+member)
			require.NoError(t, table.Store.Put(t.Context(), "other/"+member+"/_delta_log/00000000000000000001.crc", []byte(strings.Replace(string(body), damage[0], damage[1], 1))))
			read, err := other.ReadChecksum(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, []string{member}, s.Differs(read))
		})
	}
}

// TestChecksumIsNeverOverwrittenAndMayBeMissing breaks the chain of checksums: commits go on, reading too, and the next
// checkpoint begins a new chain.
func TestChecksumIsNeverOverwrittenAndMayBeMissing(t *testing.T) {
	t.Parallel()
	table := newPeople(t, map[string]string{"delta.checkpointInterval": "4"})
	appendRow(t, table, 0, value.Row{int64(1), "a"})
	require.NoError(t, table.Store.Delete(t.Context(), logKey("00000000000000000001.crc")))
	require.NoError(t, table.Store.Put(t.Context(), logKey("00000000000000000003.crc"), []byte("other's")))
	for i := range int64(4) {
		appendRow(t, table, 1+i, value.Row{i, "x"})
	}
	_, err := table.ReadChecksum(t.Context(), 2)
	require.ErrorIs(t, err, object.ErrNotFound)
	_, err = table.ReadChecksum(t.Context(), 3)
	var corrupt *delta.CorruptError
	require.ErrorAs(t, err, &corrupt)
	for _, v := range []int64{4, 5} {
		s, err := table.Version(t.Context(), v)
		require.NoError(t, err)
		read, err := table.ReadChecksum(t.Context(), v)
		require.NoError(t, err)
		require.Empty(t, s.Differs(read))
	}
	body, err := table.Store.Read(t.Context(), logKey("00000000000000000003.crc"), 0, -1)
	require.NoError(t, err)
	require.Equal(t, "other's", string(body))
}
