package interop_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/value"
)

// turn is what one engine does to varve's table, and what becomes of the rows.
type turn struct {
	name string
	act  func(w *table)
	// rows gives the rows after it. Default they stay.
	rows func(rows []value.Row) []value.Row
}

// placed is the schema of the tables that many write.
func placed() value.Schema { return append(people(), column("place", kind(value.StringKind))) }

// with gives rows with more rows.
func with(more ...value.Row) func([]value.Row) []value.Row {
	return func(rows []value.Row) []value.Row { return slices.Concat(rows, more) }
}

// by gives each row as a function does.
func by(change func(value.Row) []value.Row) func([]value.Row) []value.Row {
	return func(rows []value.Row) []value.Row { return mapped(rows, change) }
}

// unless drops rows by their key.
func unless(gone func(id int64) bool) func(value.Row) []value.Row {
	return func(row value.Row) []value.Row {
		if id, ok := row[0].(int64); ok && gone(id) {
			return nil
		}
		return []value.Row{row}
	}
}

// upsert is what a merge makes of rows: those of the keys get a name, keys that are not there come new.
func upsert(name, place string, keys ...int64) func([]value.Row) []value.Row {
	return func(rows []value.Row) []value.Row {
		left := slices.Clone(keys)
		rows = mapped(rows, func(row value.Row) []value.Row {
			if id, ok := row[0].(int64); ok && slices.Contains(keys, id) {
				row[1] = name
				left = slices.DeleteFunc(left, func(key int64) bool { return key == id })
			}
			return []value.Row{row}
		})
		for _, id := range left {
			rows = append(rows, value.Row{id, name, place})
		}
		return rows
	}
}

// bySpark are Spark's turns.
func bySpark() []turn {
	return []turn{
		{
			"appends", func(w *table) { w.spark(`INSERT INTO {t} VALUES (100, 'spark', 'x'), (101, NULL, NULL)`) },
			with(value.Row{int64(100), "spark", "x"}, value.Row{int64(101), nil, nil}),
		},
		{"deletes", func(w *table) { w.spark(`DELETE FROM {t} WHERE id % 5 = 0`) }, by(unless(func(id int64) bool { return id%5 == 0 }))},
		{"merges", func(w *table) {
			w.spark(`MERGE INTO {t} t USING (SELECT explode(array(3L, 101L, 102L)) AS id, 'merged' AS name, 'y' AS place) s ON t.id = s.id
				WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *`)
		}, upsert("merged", "y", 3, 101, 102)},
	}
}

// byDeltalake are deltalake's turns.
func byDeltalake() []turn {
	return []turn{
		{"appends", func(w *table) {
			w.deltalake(do("write", map[string]any{"rows": `SELECT 200::BIGINT id, 'deltalake' AS name, 'x' AS place UNION ALL SELECT 201, NULL, NULL`, "mode": "append"}))
		}, with(value.Row{int64(200), "deltalake", "x"}, value.Row{int64(201), nil, nil})},
		{"deletes", func(w *table) { w.deltalake(do("delete", map[string]any{"predicate": "id % 7 = 1"})) }, by(unless(func(id int64) bool { return id%7 == 1 }))},
		{"merges", func(w *table) {
			w.deltalake(do("merge", map[string]any{
				"rows": `SELECT unnest([4, 201, 202])::BIGINT id, 'joined' AS name, 'y' AS place`, "on": "s.id = t.id",
				"clauses": [][2]any{{"when_matched_update", map[string]string{"name": "s.name"}}, {"when_not_matched_insert_all", nil}},
			}))
		}, upsert("joined", "y", 4, 201, 202)},
	}
}

// varve is a turn of varve's own.
func (w *table) varve(n int64) {
	w.t.Helper()
	w.insert(value.Row{1000 + n, "varve", "x"}, value.Row{2000 + n, nil, "z"})
	w.rewrite("DELETE", unless(func(id int64) bool { return id == 2000+n }))
}

// take makes turns, after each of which all must read the same rows.
func (w *table) take(who string, turns []turn, engines []string) {
	w.t.Helper()
	for _, turn := range turns {
		rows := w.now().rows
		turn.act(w)
		if turn.rows != nil {
			rows = turn.rows(rows)
		}
		w.foreign(w.now().schema, rows)
		w.checkNow(engines...)
		if w.t.Failed() {
			w.t.Fatalf("%s %s", who, turn.name)
		}
	}
}

// together are the tables that all write.
func together() map[string]struct {
	partition []string
	hidden    value.Schema
	// before are statements of Spark before the turns.
	before []string
	// readers are the engines that must read the table then.
	readers []string
} {
	return map[string]struct {
		partition []string
		hidden    value.Schema
		before    []string
		readers   []string
	}{
		"plain":               {nil, nil, nil, readers()},
		"with hidden columns": {nil, hidden(), nil, readers()},
		"with partitions":     {[]string{"place"}, hidden(), nil, readers()},
		"with deletion vectors": {
			[]string{"place"}, hidden(), []string{`ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')`}, withoutArrow(),
		},
	}
}

func TestEveryEngineGoesOnWithVarvesTable(t *testing.T) {
	t.Parallel()
	for name, c := range together() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTable(t, delta.NewMetadata(placed(), c.partition, nil), nil, c.hidden)
			for i := range int64(3) {
				w.insert(value.Row{i * 10, "Ann", "x"}, value.Row{i*10 + 1, nil, "y"}, value.Row{i*10 + 3, "Bob", nil}, value.Row{i*10 + 4, "Cid", "x"})
			}
			if c.before != nil {
				w.spark(c.before...)
				w.foreign(w.now().schema, w.now().rows)
			}
			w.take("Spark", bySpark(), c.readers)
			w.varve(1)
			w.take("deltalake", byDeltalake(), c.readers)
			w.varve(2)
			w.take("Spark", []turn{{"optimizes", func(w *table) { w.spark(`OPTIMIZE {t}`) }, nil}}, c.readers)
			w.insert(value.Row{int64(3000), "varve", "x"})
			w.take("deltalake", []turn{{"optimizes", func(w *table) { w.deltalake(do("compact", nil)) }, nil}}, c.readers)
			w.insert(value.Row{int64(3001), "varve", "x"}, value.Row{int64(3002), "varve", "z"})
			w.insert(value.Row{int64(3003), "varve", "x"}, value.Row{int64(3004), "varve", "z"})
			w.optimize("id")
			w.checkNow(c.readers...)
			require.NoError(t, w.Checkpoint(t.Context(), w.at()))
			w.spark(`INSERT INTO {t} VALUES (4000, 'spark', 'x')`, `VACUUM {t} RETAIN 0 HOURS`)
			w.deltalake(do("vacuum", map[string]any{"retention_hours": 0, "enforce_retention_duration": false, "dry_run": false}))
			w.foreign(w.now().schema, with(value.Row{int64(4000), "spark", "x"})(w.now().rows))
			w.checkSequences()
			w.checkNow(c.readers...)
		})
	}
}

// checkSequences claims that the rows of files that varve wrote have their hidden values, and those of others none.
func (w *table) checkSequences() {
	w.t.Helper()
	s := w.latest()
	for _, f := range w.hidden {
		for _, a := range s.Files() {
			has, err := s.HasColumn(w.t.Context(), a, f.Name)
			require.NoError(w.t, err)
			for row, err := range s.ReadFile(w.t.Context(), a, w.hidden) {
				require.NoError(w.t, err)
				require.Equal(w.t, has, row[len(row)-1] != nil, a.Path)
			}
		}
	}
}

func TestDuckDBAppendsToVarvesTable(t *testing.T) {
	t.Parallel()
	w := newTable(t, delta.NewMetadata(placed(), nil, nil), nil, hidden())
	w.insert(value.Row{int64(1), "Ann", nil})
	ask[nothing](t, map[string]any{"verb": "insert", "path": w.path, "values": "(2, 'Bob', 'x'), (3, NULL, NULL)"})
	w.foreign(w.now().schema, with(value.Row{int64(2), "Bob", "x"}, value.Row{int64(3), nil, nil})(w.now().rows))
	w.varve(1)
	w.checkNow(readers()...)
}

func TestACommitFollowsAppendsOfOthersAndNotTheirChanges(t *testing.T) {
	t.Parallel()
	w := newTable(t, delta.NewMetadata(placed(), nil, nil), nil, nil)
	w.insert(value.Row{int64(1), "Ann", nil}, value.Row{int64(2), "Bob", nil})
	read := w.at()
	mine := w.write([]value.Row{{int64(3), "Cid", nil}})
	s := w.latest()
	w.spark(`INSERT INTO {t} VALUES (4, 'Dora', 'x')`, `DELETE FROM {t} WHERE id = 1`)
	w.foreign(w.now().schema, []value.Row{{int64(2), "Bob", nil}, {int64(4), "Dora", "x"}})
	_, err := w.Commit(t.Context(), read, delta.Commit{ID: "late", Operation: "DELETE", Removes: []delta.Remove{delta.RemoveOf(s.Files()[0], s.Timestamp(), true)}})
	var lost *delta.ConflictError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, "WRITE", lost.Operation)
	made, err := w.Commit(t.Context(), read, delta.Commit{ID: "blind", Operation: "WRITE", Adds: mine, BlindAppend: true})
	require.NoError(t, err)
	require.Equal(t, w.at()+1, made)
	w.versions = append(w.versions, version{schema: w.now().schema, rows: append(w.now().rows, value.Row{int64(3), "Cid", nil})})
	w.checkNow(readers()...)
}
