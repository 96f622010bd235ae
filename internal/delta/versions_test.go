package delta_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/value"
)

func TestHistoryTellsCommitsNewestFirst(t *testing.T) {
	t.Parallel()
	table, hands := ticking(t, nil)
	appendRow(t, table, 0, value.Row{int64(1), "a"}) // in the same millisecond as version 0
	hands.move(-time.Hour)
	_, err := table.Commit(t.Context(), 1, delta.Commit{
		ID: uuid.NewString(), Operation: "MERGE", Parameters: map[string]any{"predicate": []string{"(id = 3)"}, "auto": true, "n": 3},
		Metrics: map[string]string{"numOutputRows": "5"}, UserMetadata: "why",
	})
	require.NoError(t, err)
	rawCommit(t, table, 3, `{"txn":{"appId":"a","version":1}}`)
	rawCommit(t, table, 4, `{"commitInfo":{"timestamp":5,"operation":7,"operationParameters":"x","operationMetrics":{"a":5},"userName":"u","inCommitTimestamp":1700000000000,"isBlindAppend":"no"}}`)
	h, err := table.History(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, h, 5)
	require.Equal(t, []int64{4, 3, 2, 1, 0}, []int64{h[0].Version, h[1].Version, h[2].Version, h[3].Version, h[4].Version})
	require.Equal(t, delta.HistoryEntry{Version: 4, Timestamp: time.UnixMilli(1700000000000).UTC(), UserName: "u", OperationMetrics: map[string]string{"a": "5"}}, h[0])
	require.Equal(t, delta.HistoryEntry{Version: 3, Timestamp: h[4].Timestamp.Add(3 * time.Millisecond)}, h[1], "times rise")
	require.Equal(t, "MERGE", h[2].Operation)
	require.Equal(t, `"[\"(id = 3)\"]"`, string(h[2].OperationParameters["predicate"]))
	require.Equal(t, "5", h[2].OperationMetrics["numOutputRows"])
	require.Equal(t, "why", h[2].UserMetadata)
	require.EqualValues(t, 1, *h[2].ReadVersion)
	require.True(t, *h[3].IsBlindAppend)
	require.Equal(t, clock().Truncate(time.Millisecond), h[4].Timestamp)
	few, err := table.History(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, h[:2], few)
	_, err = delta.At(table.Store, "nowhere").History(t.Context(), 0)
	require.ErrorIs(t, err, delta.ErrNoTable)
}

func TestTotalsCountLiveRows(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	appendRow(t, table, 0, value.Row{int64(1), "a"})
	const vector = `"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":1,"sizeInBytes":34,"cardinality":2}`
	rawCommit(t, table, 2, `{"add":{"path":"a.parquet","partitionValues":{},"size":100,"modificationTime":1,"dataChange":true,"stats":"{\"numRecords\":5}",`+vector+`}}`)
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	totals := s.Totals()
	require.Equal(t, delta.Totals{Files: 2, Bytes: totals.Bytes, Rows: 4, Vectors: 1, Deleted: 2}, totals)
	require.Greater(t, totals.Bytes, int64(100))
	rawCommit(t, table, 3, `{"add":{"path":"b.parquet","partitionValues":{},"size":100,"modificationTime":1,"dataChange":true}}`)
	s, err = table.Latest(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, -1, s.Totals().Rows)
	require.Equal(t, []string{"id", "name"}, s.Metadata().StatsColumns())
	version, _, err := table.NewestCheckpoint(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, -1, version)
	require.NoError(t, table.Checkpoint(t.Context(), 2))
	version, at, err := table.NewestCheckpoint(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, version)
	require.False(t, at.IsZero())
}
