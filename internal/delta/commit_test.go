package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/value"
)

func TestRacingAppendsAllLandExactlyOnce(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	const writers = 16
	versions := make([]int64, writers)
	adds := make([]delta.Add, writers)
	for i := range writers {
		adds[i] = write(t, table, value.Row{int64(i), "x"})
	}
	var group sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		group.Go(func() {
			versions[i], errs[i] = table.Commit(t.Context(), 0, delta.Commit{
				ID: uuid.NewString(), Operation: "WRITE", Adds: adds[i : i+1], BlindAppend: true,
			})
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	seen := map[int64]bool{}
	for _, v := range versions {
		require.False(t, seen[v])
		seen[v] = true
	}
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, writers, s.Version())
	rows := scan(t.Context(), t, s, nil)
	require.Len(t, rows, writers)
	for i, row := range rows {
		require.Equal(t, value.Row{int64(i), "x"}, row)
	}
}

func TestRacingCreatorsMakeOneTable(t *testing.T) {
	t.Parallel()
	table := delta.At(memstore.New(), "")
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() {
			m := delta.NewMetadata(people(), nil, nil)
			_, errs[i] = table.Commit(t.Context(), -1, delta.Commit{ID: uuid.NewString(), Operation: "CREATE TABLE", Metadata: &m})
		})
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		var conflict *delta.ConflictError
		if err == nil {
			won++
		} else {
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, "CREATE TABLE", conflict.Operation)
		}
	}
	require.Equal(t, 1, won)
}

func TestOneOfTwoChangesOfTheSameFileWins(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	version, first := appendRow(t, table, 0, value.Row{int64(1), "a"})
	change := func() error {
		add := write(t, table, value.Row{int64(1), "b"})
		_, err := table.Commit(t.Context(), version, delta.Commit{
			ID: uuid.NewString(), Operation: "MERGE", Adds: []delta.Add{add},
			Removes: []delta.Remove{delta.RemoveOf(first, clock(), true)},
		})
		return err
	}
	require.NoError(t, change())
	var conflict *delta.ConflictError
	require.ErrorAs(t, change(), &conflict)
	require.Equal(t, "silver/people", conflict.Table)
	require.Equal(t, version+1, conflict.Version)
	require.Equal(t, "MERGE", conflict.Operation)
	require.Equal(t, "the same file was changed", conflict.Reason)
}

func TestCommitsFollowOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	type change func(t *testing.T, table delta.Table, files []delta.Add) delta.Commit
	grow := func(blind bool) change {
		return func(t *testing.T, table delta.Table, _ []delta.Add) delta.Commit {
			t.Helper()
			return delta.Commit{Adds: []delta.Add{write(t, table, value.Row{int64(9), "new"})}, BlindAppend: blind}
		}
	}
	rewrite := func(file int, dataChange bool) change {
		return func(t *testing.T, table delta.Table, files []delta.Add) delta.Commit {
			t.Helper()
			add := write(t, table, value.Row{int64(file), "again"})
			add.DataChange = dataChange
			return delta.Commit{Adds: []delta.Add{add}, Removes: []delta.Remove{delta.RemoveOf(files[file], clock(), dataChange)}}
		}
	}
	mark := func(appID string, read ...string) change {
		return func(*testing.T, delta.Table, []delta.Add) delta.Commit {
			c := delta.Commit{BlindAppend: true, ReadTxns: read}
			if appID != "" {
				c.Txns = []delta.Txn{{AppID: appID, Version: 7}}
			}
			return c
		}
	}
	rename := func(*testing.T, delta.Table, []delta.Add) delta.Commit {
		m := delta.NewMetadata(people(), nil, map[string]string{"owner": "x"})
		return delta.Commit{Metadata: &m}
	}
	cases := map[string]struct {
		winner, loser change
		reason        string
	}{
		"append after append":                  {grow(true), grow(true), ""},
		"append after merge":                   {rewrite(0, true), grow(true), ""},
		"append after metadata":                {rename, grow(true), "the metadata were changed"},
		"merge after append":                   {grow(true), rewrite(0, true), "rows were changed"},
		"merge after merge of another file":    {rewrite(1, true), rewrite(0, true), "rows were changed"},
		"merge after optimize of another file": {rewrite(1, false), rewrite(0, true), ""},
		"merge after optimize of the same":     {rewrite(0, false), rewrite(0, true), "the same file was changed"},
		"optimize after append":                {grow(true), rewrite(0, false), ""},
		"optimize after merge of the same":     {rewrite(0, true), rewrite(0, false), "the same file was changed"},
		"metadata after metadata":              {rename, rename, "the metadata were changed"},
		"metadata after append":                {grow(true), rename, "rows were changed"},
		"mark after the same mark":             {mark("a"), mark("a"), `the same writer's mark "a" was set`},
		"mark after another mark":              {mark("a"), mark("b"), ""},
		"after a mark that was read":           {mark("a"), mark("b", "a"), `the writer's mark "a", which was read, was set`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newPeople(t, nil)
			files := make([]delta.Add, 2)
			version := int64(0)
			for i := range files {
				version, files[i] = appendRow(t, table, version, value.Row{int64(i), "old"})
			}
			commit := func(make change) (int64, error) {
				c := make(t, table, files)
				c.ID, c.Operation = uuid.NewString(), "TEST"
				return table.Commit(t.Context(), version, c)
			}
			_, err := commit(c.winner)
			require.NoError(t, err)
			landed, err := commit(c.loser)
			if c.reason == "" {
				require.NoError(t, err)
				require.Equal(t, version+2, landed)
				return
			}
			var conflict *delta.ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, c.reason, conflict.Reason)
		})
	}
}

// lossy is a store whose next answers to conditional puts are lost after they took effect.
type lossy struct {
	object.Store
	lose bool
}

func (l *lossy) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	err := l.Store.PutIfAbsent(ctx, key, body)
	if err == nil && l.lose {
		return object.ErrUnavailable
	}
	return err
}

func TestLostAnswerIsRecognisedAsOwnCommit(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	add := write(t, table, value.Row{int64(1), "a"})
	c := delta.Commit{ID: uuid.NewString(), Operation: "WRITE", Adds: []delta.Add{add}, Txns: []delta.Txn{{AppID: "w", Version: 1}}}
	table.Store = &lossy{Store: table.Store, lose: true}
	version, err := table.Commit(t.Context(), 0, c)
	require.NoError(t, err)
	require.EqualValues(t, 1, version)
}

func TestCommitCalledAgainFindsItself(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	appendRow(t, table, 0, value.Row{int64(0), "before"})
	prepared, err := json.Marshal(delta.Commit{
		ID: uuid.NewString(), Operation: "WRITE", BlindAppend: true, Txns: []delta.Txn{{AppID: "w", Version: 1}},
		Adds: []delta.Add{write(t, table, value.Row{int64(1), "a"})},
	})
	require.NoError(t, err)
	for range 3 {
		var c delta.Commit
		require.NoError(t, json.Unmarshal(prepared, &c))
		version, err := table.Commit(t.Context(), 0, c)
		require.NoError(t, err)
		require.EqualValues(t, 2, version)
		appendRow(t, table, 0, value.Row{int64(2), "after"})
	}
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Files(), 5)
	mark, ok := s.Txn("w")
	require.True(t, ok)
	require.EqualValues(t, 1, mark)
}

func TestCommitIsWrittenAsSparkWritesIt(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	add := write(t, table, value.Row{int64(1), "a"})
	_, err := table.Commit(t.Context(), 0, delta.Commit{
		ID: "the-id", Operation: "WRITE", BlindAppend: true, UserMetadata: "note", Adds: []delta.Add{add},
		Parameters: map[string]any{"mode": "Append", "partitionBy": []string{}, "auto": true, "n": 3},
		Metrics:    map[string]string{"numFiles": "1"}, Txns: []delta.Txn{{AppID: "w", Version: 4}},
	})
	require.NoError(t, err)
	body, err := table.Store.Read(t.Context(), "silver/people/_delta_log/00000000000000000001.json", 0, -1)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(body)), "\n")
	require.Len(t, lines, 3)
	require.True(t, strings.HasPrefix(lines[0], `{"commitInfo":{"timestamp":`), "commitInfo comes first")
	require.JSONEq(t, `{"commitInfo":{"timestamp":1789356600123,"operation":"WRITE","operationParameters":{"auto":true,"mode":"Append",`+
		`"n":3,"partitionBy":"[]"},"readVersion":0,"isolationLevel":"Serializable","isBlindAppend":true,`+
		`"operationMetrics":{"numFiles":"1"},"userMetadata":"note","engineInfo":"varve","txnId":"the-id"}}`, lines[0])
	require.JSONEq(t, `{"txn":{"appId":"w","version":4,"lastUpdated":1789356600123}}`, lines[1])
	require.JSONEq(t, fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":%d,"modificationTime":1789356600123,"dataChange":true,`+
		`"stats":"{\"numRecords\":1,\"minValues\":{\"id\":1,\"name\":\"a\"},\"maxValues\":{\"id\":1,\"name\":\"a\"},`+
		`\"nullCount\":{\"id\":0,\"name\":0}}"}}`, add.Path, add.Size), lines[2])
}

func TestAppendOnlyTableKeepsItsRows(t *testing.T) {
	t.Parallel()
	table := newPeople(t, map[string]string{"delta.appendOnly": "true"})
	version, add := appendRow(t, table, 0, value.Row{int64(1), "a"})
	remove := func(dataChange bool) error {
		_, err := table.Commit(t.Context(), version, delta.Commit{
			ID: uuid.NewString(), Operation: "DELETE", Removes: []delta.Remove{delta.RemoveOf(add, clock(), dataChange)},
		})
		return err
	}
	require.ErrorIs(t, remove(true), delta.ErrAppendOnly)
	require.NoError(t, remove(false))
}

func TestTablesThatNeedMoreOfAWriterAreRefusedByName(t *testing.T) {
	t.Parallel()
	marked := func(property string) value.Schema {
		s := people()
		s[1].Metadata = map[string]any{property: "x"}
		return s
	}
	all := delta.Protocol{MinReaderVersion: 1, MinWriterVersion: 6}
	cases := map[string]struct {
		schema   value.Schema
		config   map[string]string
		protocol delta.Protocol
	}{
		`invariant of column "name"`:             {marked("delta.invariants"), nil, all},
		`generation expression of column "name"`: {marked("delta.generationExpression"), nil, all},
		`identity of column "name"`:              {marked("delta.identity.start"), nil, all},
		`check constraint "c"`:                   {people(), map[string]string{"delta.constraints.c": "id > 0"}, all},
		"column mapping by name":                 {people(), map[string]string{"delta.columnMapping.mode": "name"}, all},
		"in-commit timestamps":                   {people(), map[string]string{"delta.enableInCommitTimestamps": "true"}, all},
		`feature "rowTracking"`: {people(), nil, delta.Protocol{
			MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{"domainMetadata", "rowTracking"},
		}},
		"minWriterVersion 8": {people(), nil, delta.Protocol{MinReaderVersion: 1, MinWriterVersion: 8}},
	}
	for feature, c := range cases {
		t.Run(feature, func(t *testing.T) {
			t.Parallel()
			m := delta.NewMetadata(c.schema, nil, c.config)
			table := delta.At(memstore.New(), "t")
			_, err := table.Commit(t.Context(), -1, delta.Commit{ID: "a", Operation: "CREATE TABLE", Metadata: &m, Protocol: &c.protocol})
			var refused *delta.UnsupportedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, delta.UnsupportedError{Table: "t", Feature: feature, Write: true}, *refused)
		})
	}
}

func TestCommitThatDoesNotFitTheTableIsRefused(t *testing.T) {
	t.Parallel()
	table := newPeople(t, nil)
	version, add := appendRow(t, table, 0, value.Row{int64(1), "a"})
	stranger := write(t, table, value.Row{int64(2), "b"})
	outside, partitioned := stranger, stranger
	outside.Path = "../x.parquet"
	partitioned.PartitionValues = map[string]*string{"id": nil}
	for name, c := range map[string]delta.Commit{
		"removes what is not there": {Removes: []delta.Remove{delta.RemoveOf(stranger, clock(), true)}},
		"adds what is there":        {Adds: []delta.Add{add}},
		"adds a file twice":         {Adds: []delta.Add{stranger, stranger}},
		"adds a file outside":       {Adds: []delta.Add{outside}},
		"adds another partitioning": {Adds: []delta.Add{partitioned}},
	} {
		c.ID, c.Operation = uuid.NewString(), "WRITE"
		_, err := table.Commit(t.Context(), version, c)
		require.Error(t, err, name)
	}
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.Equal(t, version, s.Version())
}
