package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/value"
)

// condition compares a column with a value that is not null.
type condition struct {
	column, op string
	value      value.Value
	// blind are engines that do not skip all files that could be skipped: they do not look at such statistics, or there are none.
	blind []string
	// loses are engines that lose rows by a fault of theirs. One that finds them must go off the list.
	loses []string
}

// request gives the condition as the engines are asked.
func (c condition) request(schema value.Schema) map[string]any {
	kind := schema[schema.Index(c.column)].Type
	raw := strings.Trim(string(value.AppendJSON(nil, kind, c.value)), `"`)
	return map[string]any{"column": c.column, "op": c.op, "value": raw, "type": kind.String()}
}

// holds says whether a row fulfils the condition.
func (c condition) holds(schema value.Schema, row value.Row) bool {
	v := row[schema.Index(c.column)]
	if v == nil {
		return false
	}
	order := value.Compare(v, c.value)
	switch c.op {
	case "=":
		return order == 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	default:
		panic("no comparison " + c.op)
	}
}

// fileOf is the name of a version's commit.
func fileOf(version int64) string { return fmt.Sprintf("%020d.json", version) }

// check claims that varve and engines read every version as it must be. Spark is asked for the newest and for one between,
// since each costs it a second.
func (w *table) check(engines ...string) {
	w.t.Helper()
	quick := slices.DeleteFunc(slices.Clone(engines), func(engine string) bool { return engine == spark })
	for v, want := range w.versions {
		switch {
		case want.schema == nil:
		case v == len(w.versions)-1 || v == len(w.versions)/2:
			w.checkVersion(int64(v), want, engines)
		default:
			w.checkVersion(int64(v), want, quick)
		}
	}
}

// checkNow claims that varve and engines read the newest version as it must be.
func (w *table) checkNow(engines ...string) {
	w.t.Helper()
	w.checkVersion(w.at(), w.now(), engines)
}

func (w *table) checkVersion(v int64, want version, engines []string) {
	w.t.Helper()
	rows := texts(w.t, want.schema, want.rows)
	s, err := w.Version(w.t.Context(), v)
	require.NoError(w.t, err)
	same(w.t, fmt.Sprintf("version %d by varve", v), rows, w.read(s))
	for _, engine := range engines {
		got := ask[rowsReply](w.t, map[string]any{"verb": "read", "engine": engine, "path": w.path, "version": v})
		same(w.t, fmt.Sprintf("version %d by %s", v, engine), rows, ordered(w.t, want.schema, got.Rows))
	}
}

// read gives the rows that varve reads.
func (w *table) read(s *delta.Snapshot) []string {
	w.t.Helper()
	var rows []value.Row
	for row, err := range s.Scan(w.t.Context(), nil) {
		require.NoError(w.t, err)
		rows = append(rows, slices.Clone(row))
	}
	return texts(w.t, s.Schema(), rows)
}

// checkSkipping claims that engines find the rows of a condition, and read no file that has none.
func (w *table) checkSkipping(c condition, engines ...string) {
	w.t.Helper()
	now, s := w.now(), w.latest()
	where := c.request(now.schema)
	found := slices.DeleteFunc(slices.Clone(now.rows), func(row value.Row) bool { return !c.holds(now.schema, row) })
	want, files := texts(w.t, now.schema, found), 0
	for _, a := range s.Files() {
		for row, err := range s.ReadFile(w.t.Context(), a, nil) {
			require.NoError(w.t, err)
			if c.holds(now.schema, row) {
				files++
				break
			}
		}
	}
	require.Less(w.t, files, len(s.Files()), "every file has rows where %v: nothing can be skipped", where)
	for _, engine := range engines {
		who := fmt.Sprintf("%s where %s %s %s", engine, c.column, c.op, where["value"])
		got := ask[foundReply](w.t, map[string]any{"verb": "find", "engine": engine, "path": w.path, "where": where})
		rows := ordered(w.t, now.schema, got.Rows)
		if slices.Contains(c.loses, engine) {
			require.NotEqual(w.t, want, rows, "%s: loses no rows: take it off the list", who)
			continue
		}
		same(w.t, who, want, rows)
		switch blind := slices.Contains(c.blind, engine); {
		case !blind && got.Files != files:
			w.t.Errorf("%s: reads %d of %d files, want %d", who, got.Files, len(s.Files()), files)
		case blind && got.Files <= files:
			w.t.Errorf("%s: reads no file in vain: take it off the list", who)
		}
	}
}

// changeSchema is the columns of the change feed without the time of the commit.
func (w *table) changeSchema() value.Schema {
	return append(slices.Clone(w.now().schema),
		value.Field{Name: delta.ChangeTypeColumn, Type: value.Type{Kind: value.StringKind}},
		value.Field{Name: delta.CommitVersionColumn, Type: value.Type{Kind: value.Long}})
}

// feed gives the changes of all versions from one on, as varve reads them.
func (w *table) feed(from int64) []string {
	w.t.Helper()
	feed, err := w.Changes(w.t.Context(), from, -1)
	require.NoError(w.t, err)
	var rows []value.Row
	for c, err := range feed.Rows(w.t.Context()) {
		require.NoError(w.t, err)
		rows = append(rows, append(slices.Clone(c.Row), string(c.Type), c.Version))
	}
	return texts(w.t, w.changeSchema(), rows)
}

// checkChanges claims that varve and engines read the change feed as it must be.
func (w *table) checkChanges(engines ...string) {
	w.t.Helper()
	schema := w.changeSchema()
	rows := make([]value.Row, len(w.changes))
	for i, c := range w.changes {
		rows[i] = append(slices.Clone(c.row), c.kind, c.version)
	}
	want := texts(w.t, schema, rows)
	same(w.t, "changes by varve", want, w.feed(0))
	for _, engine := range engines {
		got := ask[rowsReply](w.t, map[string]any{"verb": "changes", "engine": engine, "path": w.path, "from": 0, "to": w.at()})
		same(w.t, "changes by "+engine, want, ordered(w.t, schema, got.Rows))
	}
}

// checkHistory claims that engines tell the operations of varve's versions, with their figures.
func (w *table) checkHistory(engines ...string) {
	w.t.Helper()
	for _, engine := range engines {
		got := ask[historyReply](w.t, map[string]any{"verb": "history", "engine": engine, "path": w.path})
		told := map[int64]string{}
		for _, v := range got.Versions {
			told[v.Version] = fmt.Sprint(v.Operation, v.Metrics)
		}
		for v, want := range w.versions {
			if want.operation == "" {
				continue
			}
			if is := fmt.Sprint(want.operation, w.metrics(int64(v))); told[int64(v)] != is {
				w.t.Errorf("history by %s: version %d is %q, want %q", engine, v, told[int64(v)], is)
			}
		}
	}
}

// metrics gives the figures that a commit tells of itself.
func (w *table) metrics(v int64) map[string]any {
	w.t.Helper()
	body, err := os.ReadFile(filepath.Join(w.path, "_delta_log", fileOf(v)))
	require.NoError(w.t, err)
	line, _, _ := bytes.Cut(body, []byte("\n"))
	var first struct {
		CommitInfo struct {
			OperationMetrics map[string]any `json:"operationMetrics"`
		} `json:"commitInfo"`
	}
	require.NoError(w.t, json.Unmarshal(line, &first))
	return first.CommitInfo.OperationMetrics
}

// logFiles gives the files of the log that match a pattern.
func (w *table) logFiles(pattern string) []string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.path, "_delta_log", pattern))
	require.NoError(w.t, err)
	return found
}
