package interop_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/layout"
	"varve/internal/value"
)

// foreign is a table that another engine writes.
type foreign struct {
	write func(w *table)
	// readers are the engines that varve is compared with; the first is the one that wrote. Default all.
	readers []string
	// refusal is why varve does not write to such a table. Default it goes on with it.
	refusal string
	// vectors says that files have deletion vectors.
	vectors bool
	// checkpoints says how many checkpoint files there must be, at least.
	checkpoints string
	// misreads is an engine that reads the table's change feed wrongly. Default none.
	misreads string
}

// withoutArrow are the engines that know deletion vectors.
func withoutArrow() []string { return []string{spark, deltalake, duckdb, polars} }

// mapping are the engines that know column mapping, and checkpoints with sidecars.
func mapping() []string { return []string{spark, deltalake, duckdb} }

// sparks are the tables that Spark writes.
func sparks() map[string]foreign {
	const numbers = "INSERT INTO {t} SELECT id, concat('name ', id) FROM range(%d, %d, 1, 2)"
	return map[string]foreign{
		"every scalar type": {write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT NOT NULL, flag BOOLEAN, tiny TINYINT, small SMALLINT, whole INT, real FLOAT, double DOUBLE,
				price DECIMAL(9,2), amount DECIMAL(18,4), huge DECIMAL(38,10), text STRING, bytes BINARY, day DATE, at TIMESTAMP) USING delta`,
				`INSERT INTO {t} VALUES (1, true, 1, 2, 3, float('NaN'), double('-Infinity'), 1.25, -0.0001, 12345678901234567890.5, 'ü𝄞', X'00FF',
				DATE '1969-12-31', TIMESTAMP '1900-01-01 00:00:00.000001Z'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
				(3, false, -128, -32768, -2147483648, -0.0, 1e-300, -9999999.99, 99999999999999.9999, -0.0000000001, '', X'', DATE '9999-12-31',
				TIMESTAMP '2262-01-01 23:59:59.999999Z')`,
				`UPDATE {t} SET small = 7, at = TIMESTAMP '2024-02-29 12:00:00.5Z' WHERE id = 1`,
				`DELETE FROM {t} WHERE id = 2`)
		}},
		"nested and without a zone": {write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, s STRUCT<a: STRUCT<b: INT, c: ARRAY<STRING>>, d: DECIMAL(20,3)>, l ARRAY<ARRAY<INT>>,
				m MAP<STRING, STRUCT<x: DOUBLE, y: MAP<INT, DATE>>>, local TIMESTAMP_NTZ) USING delta`,
				`INSERT INTO {t} VALUES (1, struct(struct(1, array('a', NULL)), 1.5), array(array(1, NULL), NULL, array()),
				map('k', struct(1.5, map(1, DATE '2024-01-01', 2, NULL)), 'n', NULL), TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'),
				(2, struct(NULL, NULL), array(), map(), NULL), (3, NULL, NULL, NULL, TIMESTAMP_NTZ '2024-01-01 00:00:00')`,
				`ALTER TABLE {t} ADD COLUMNS (s.a.late STRING, more INT)`,
				`INSERT INTO {t} VALUES (4, struct(struct(5, NULL, 'late'), 2), NULL, NULL, NULL, 9)`)
		}},
		"partitions": {write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, text STRING, day DATE, n INT, price DECIMAL(9,2), flag BOOLEAN, at TIMESTAMP, f DOUBLE) USING delta
				PARTITIONED BY (text, day, n, price, flag, at, f)`,
				`INSERT INTO {t} VALUES (1, 'Köln', DATE '2024-01-01', 5, 1.50, true, TIMESTAMP '2024-01-01 00:00:00.123456Z', 1e10),
				(2, 'a b/c=d%20:"e"', DATE '1969-12-31', -5, 0.07, false, TIMESTAMP '1900-01-01 00:00:00Z', 0.5), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
				`DELETE FROM {t} WHERE text = 'Köln'`,
				`INSERT INTO {t} VALUES (4, 'x', NULL, 1, NULL, NULL, NULL, NULL)`)
		}},
		"deletion vectors": {vectors: true, readers: withoutArrow(), write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, name STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')`,
				fmt.Sprintf(numbers, 0, 100), `DELETE FROM {t} WHERE id % 7 = 0`, `UPDATE {t} SET name = 'new' WHERE id % 11 = 1`,
				`MERGE INTO {t} t USING (SELECT id, 'merged' name FROM range(90, 110)) s ON t.id = s.id
				WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *`,
				`DELETE FROM {t} WHERE id < 10`)
		}},
		// deltalake takes the rows that a removed file's deletion vector deletes for those that it had.
		"change feed": {vectors: true, readers: withoutArrow(), misreads: deltalake, write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, name STRING, place INT) USING delta PARTITIONED BY (place)
				TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')`,
				`INSERT INTO {t} SELECT id, 'n', id % 3 FROM range(0, 30, 1, 1)`, `UPDATE {t} SET name = 'new' WHERE id % 5 = 1`,
				`DELETE FROM {t} WHERE id % 4 = 0`, `DELETE FROM {t} WHERE place = 2`)
		}},
		"columns mapped by name": {readers: mapping(), refusal: "column mapping by name", write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, s STRUCT<a: INT, b: STRING>, gone INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')`,
				`INSERT INTO {t} VALUES (1, struct(1, 'x'), 1), (2, NULL, 2)`,
				`ALTER TABLE {t} RENAME COLUMN id TO key`, `ALTER TABLE {t} RENAME COLUMN s.a TO renamed`, `ALTER TABLE {t} DROP COLUMN gone`,
				`ALTER TABLE {t} ADD COLUMNS (gone STRING, `+"`with space, and more`"+` INT)`, `INSERT INTO {t} VALUES (3, struct(3, 'z'), 'back', 5)`)
		}},
		// DuckDB gives null for such columns.
		"partition columns mapped by name": {readers: []string{spark, deltalake}, refusal: "column mapping by name", write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, place STRING, day DATE) USING delta PARTITIONED BY (place, day) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')`,
				`INSERT INTO {t} VALUES (1, 'p', DATE '2024-01-01'), (2, NULL, NULL)`, `ALTER TABLE {t} RENAME COLUMN place TO spot`, `INSERT INTO {t} VALUES (3, 'q', NULL)`)
		}},
		"columns mapped by id": {readers: mapping(), refusal: "column mapping by id", write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, m MAP<STRING, STRUCT<a: INT>>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'id')`,
				`INSERT INTO {t} VALUES (1, map('k', struct(1))), (2, NULL)`, `ALTER TABLE {t} RENAME COLUMN id TO key`, `INSERT INTO {t} VALUES (3, map())`)
		}},
		"checkpoints in parts": {checkpoints: "*.checkpoint.*.*.parquet", write: func(w *table) {
			w.sparkWith(map[string]string{"spark.databricks.delta.checkpoint.partSize": "3"},
				`CREATE TABLE {t} (id BIGINT, name STRING) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '3')`,
				fmt.Sprintf(numbers, 0, 10), fmt.Sprintf(numbers, 10, 20), fmt.Sprintf(numbers, 20, 30), `DELETE FROM {t} WHERE id < 3`)
		}},
		"checkpoints with sidecars": {checkpoints: "_sidecars/*.parquet", vectors: true, readers: mapping(), write: func(w *table) {
			w.sparkWith(map[string]string{"spark.databricks.delta.checkpoint.partSize": "3"},
				`CREATE TABLE {t} (id BIGINT, name STRING) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '4',
				'delta.checkpointPolicy' = 'v2', 'delta.enableDeletionVectors' = 'true')`,
				fmt.Sprintf(numbers, 0, 10), fmt.Sprintf(numbers, 10, 20), fmt.Sprintf(numbers, 20, 30),
				`DELETE FROM {t} WHERE id < 3`, `DELETE FROM {t} WHERE id = 25`)
		}},
		"laid out and restored": {write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, name STRING) USING delta`, fmt.Sprintf(numbers, 0, 10), fmt.Sprintf(numbers, 5, 15), `OPTIMIZE {t} ZORDER BY (id)`,
				`DELETE FROM {t} WHERE id = 7`, `RESTORE TABLE {t} TO VERSION AS OF 3`)
		}},
		"replaced": {write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, name STRING) USING delta`, fmt.Sprintf(numbers, 0, 10),
				`CREATE OR REPLACE TABLE {t} USING delta AS SELECT 'a' AS key, 1 AS id`, `INSERT INTO {t} VALUES ('b', 2), (NULL, NULL)`)
		}},
		"clustered, with row ids": {readers: withoutArrow(), refusal: `feature "rowTracking"`, vectors: true, write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, name STRING) USING delta CLUSTER BY (id) TBLPROPERTIES ('delta.enableRowTracking' = 'true',
				'delta.enableDeletionVectors' = 'true')`, fmt.Sprintf(numbers, 0, 10), `DELETE FROM {t} WHERE id = 3`)
		}},
		"commit timestamps": {refusal: "in-commit timestamps", write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, name STRING) USING delta TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')`, fmt.Sprintf(numbers, 0, 10))
		}},
		"checks": {refusal: `check constraint "positive"`, write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, name STRING) USING delta`, `ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)`, fmt.Sprintf(numbers, 0, 10))
		}},
		"generated columns": {refusal: `generation expression of column "half"`, write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id BIGINT, half BIGINT GENERATED ALWAYS AS (id DIV 2)) USING delta`, `INSERT INTO {t} (id) VALUES (9), (NULL)`)
		}},
		"types widened": {readers: []string{spark, duckdb}, write: func(w *table) {
			w.spark(`CREATE TABLE {t} (id INT, price DECIMAL(9,2), f FLOAT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')`, `INSERT INTO {t} VALUES (1, 1.25, 1.5)`,
				`ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT`, `ALTER TABLE {t} ALTER COLUMN price TYPE DECIMAL(20,4)`, `ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE`,
				`INSERT INTO {t} VALUES (10000000000, 1.2345, 1e300)`)
		}},
	}
}

// deltalakes are the tables that deltalake writes.
func deltalakes() map[string]foreign {
	add := func(rows string) step { return do("write", map[string]any{"rows": rows, "mode": "append"}) }
	return map[string]foreign{
		"appended and rewritten": {readers: deltalakeFirst(), write: func(w *table) {
			w.deltalake(add(`SELECT range id, 'name ' || range AS name FROM range(20)`), add(`SELECT range id, NULL::VARCHAR AS name FROM range(30, 40)`),
				do("delete", map[string]any{"predicate": "id % 3 = 0"}),
				do("update", map[string]any{"predicate": "id = 4", "updates": map[string]string{"name": "'new'"}}),
				do("merge", map[string]any{
					"rows": `SELECT range id, 'merged' AS name FROM range(15, 50, 5)`, "on": "s.id = t.id",
					"clauses": [][2]any{{"when_matched_update_all", nil}, {"when_not_matched_insert_all", nil}},
				}),
				do("compact", nil), add(`SELECT 100::BIGINT id, 'late' AS name`), do("z_order", map[string]any{"columns": []string{"id"}}),
				do("create_checkpoint", nil), do("delete", map[string]any{"predicate": "id = 100"}))
		}},
		"partitions and other columns": {readers: deltalakeFirst(), write: func(w *table) {
			w.deltalake(do("write", map[string]any{"rows": `SELECT 1::BIGINT id, 'a b/ü:"' AS place, DATE '2024-01-01' AS day UNION ALL SELECT 2, NULL, NULL`, "partition_by": []string{"place", "day"}}),
				do("write", map[string]any{"rows": `SELECT 3::BIGINT id, 'x' AS place, NULL::DATE AS day, 1.25::DECIMAL(9,2) AS price`, "mode": "append", "schema_mode": "merge"}),
				do("delete", map[string]any{"predicate": "place = 'x'"}), do("create_checkpoint", nil),
				do("write", map[string]any{"rows": `SELECT 4::BIGINT id, 'y' AS place, DATE '1969-12-31' AS day, NULL::DECIMAL(9,2) AS price`, "mode": "append"}))
		}},
		"every type": {readers: deltalakeFirst(), write: func(w *table) {
			w.deltalake(add(`SELECT 1::BIGINT id, true b, 1::TINYINT i8, -2::SMALLINT i16, 3::INTEGER i32, 'nan'::FLOAT f, 'inf'::DOUBLE d, -1.25::DECIMAL(9,2) p, 1::DECIMAL(38,10) h,
				'ü' AS s, '\x00\xFF'::BLOB bin, DATE '1900-01-01' AS day, TIMESTAMPTZ '2024-01-01 00:00:00.123456+00' AS at, TIMESTAMP '1969-12-31 23:59:59.999999' AS local,
				{'a': 1, 'b': ['x', NULL]} st, [[1, NULL], NULL, []] l, MAP {'k': {'x': 1.5::DOUBLE}} m`),
				add(`SELECT 2::BIGINT id, NULL::BOOLEAN b, NULL::TINYINT i8, NULL::SMALLINT i16, NULL::INTEGER i32, NULL::FLOAT f, NULL::DOUBLE d, NULL::DECIMAL(9,2) p, NULL::DECIMAL(38,10) h,
				NULL::VARCHAR AS s, NULL::BLOB bin, NULL::DATE AS day, NULL::TIMESTAMPTZ AS at, NULL::TIMESTAMP AS local,
				NULL::STRUCT(a INTEGER, b VARCHAR[]) st, NULL::INTEGER[][] l, NULL::MAP(VARCHAR, STRUCT(x DOUBLE)) m`))
		}},
		"change feed": {readers: deltalakeFirst(), write: func(w *table) {
			w.deltalake(do("write", map[string]any{"rows": `SELECT range id, 'n' AS name FROM range(20)`, "configuration": map[string]string{"delta.enableChangeDataFeed": "true"}}),
				do("delete", map[string]any{"predicate": "id % 3 = 0"}),
				do("update", map[string]any{"predicate": "id = 4", "updates": map[string]string{"name": "'new'"}}))
		}},
	}
}

// deltalakeFirst are all engines, for tables that deltalake wrote.
func deltalakeFirst() []string { return []string{deltalake, spark, pyarrow, duckdb, polars} }

func TestWhatSparkWritesVarveReads(t *testing.T) {
	t.Parallel()
	checkForeign(t, sparks())
}

func TestWhatDeltalakeWritesVarveReads(t *testing.T) {
	t.Parallel()
	checkForeign(t, deltalakes())
}

// checkForeign claims that varve reads tables as the others do, and goes on with them.
func checkForeign(t *testing.T, tables map[string]foreign) {
	t.Helper()
	for name, f := range tables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines := f.readers
			if engines == nil {
				engines = readers()
			}
			w := noTable(t)
			f.write(w)
			s := w.latest()
			w.adopt(engines)
			if s.Metadata().HasChangeFeed() {
				for _, engine := range []string{spark, deltalake} {
					reply := ask[rowsReply](t, map[string]any{"verb": "changes", "engine": engine, "path": w.path, "from": 0, "to": s.Version()})
					want := ordered(t, w.changeSchema(), reply.Rows)
					if engine == f.misreads {
						require.NotEqual(t, want, w.feed(0), "%s reads the change feed rightly: take it off", engine)
						continue
					}
					same(t, "changes by varve, compared with "+engine, want, w.feed(0))
				}
			}
			found := slices.ContainsFunc(s.Files(), func(a delta.Add) bool { return a.DeletionVector != nil })
			require.Equal(t, f.vectors, found, "deletion vectors")
			if f.checkpoints != "" {
				require.Greater(t, len(w.logFiles(f.checkpoints)), 1, "checkpoint files")
			}
			checkRecords(t, s)
			w.goOn(f.refusal, engines)
		})
	}
}

// adopt takes the rows of every version from the engine that comes first, and claims that varve and the others read them too.
func (w *table) adopt(engines []string) {
	w.t.Helper()
	newest := w.latest().Version()
	for v := range newest + 1 {
		s, err := w.Version(w.t.Context(), v)
		require.NoError(w.t, err)
		got, asked := w.read(s), engines
		if v != newest && v != newest/2 {
			asked = slices.DeleteFunc(slices.Clone(engines), func(engine string) bool { return engine == spark })
		}
		for _, engine := range asked {
			want := ask[rowsReply](w.t, map[string]any{"verb": "read", "engine": engine, "path": w.path, "version": v})
			same(w.t, fmt.Sprintf("version %d by varve, compared with %s", v, engine), ordered(w.t, s.Schema(), want.Rows), got)
		}
	}
	for range newest {
		w.versions = append(w.versions, version{})
	}
	w.versions = append(w.versions, version{schema: w.latest().Schema(), rows: w.rows()})
}

// rows gives the rows of the newest version, as varve reads them.
func (w *table) rows() []value.Row {
	w.t.Helper()
	var rows []value.Row
	for row, err := range w.latest().Scan(w.t.Context(), nil) {
		require.NoError(w.t, err)
		rows = append(rows, slices.Clone(row))
	}
	return rows
}

// checkRecords claims that the numbers of rows in statistics and deletion vectors are the numbers of rows.
func checkRecords(t *testing.T, s *delta.Snapshot) {
	t.Helper()
	for _, a := range s.Files() {
		want, ok := a.Records()
		require.True(t, ok, "%s has no statistics", a.Path)
		if a.DeletionVector != nil {
			want -= a.DeletionVector.Cardinality
		}
		got := int64(0)
		for _, err := range s.ReadFile(t.Context(), a, nil) {
			require.NoError(t, err)
			got++
		}
		require.Equal(t, want, got, a.Path)
	}
}

// goOn claims that varve appends to the table and lays it out, and that all read what comes of it; or that it refuses.
func (w *table) goOn(refusal string, engines []string) {
	w.t.Helper()
	if refusal != "" {
		_, err := w.Commit(w.t.Context(), w.at(), delta.Commit{ID: "a", Operation: "WRITE", BlindAppend: true})
		var refused *delta.UnsupportedError
		require.ErrorAs(w.t, err, &refused)
		require.Equal(w.t, refusal, refused.Feature)
		require.True(w.t, refused.Write)
		return
	}
	w.insert(w.now().rows[:1]...)
	w.insert(w.now().rows[len(w.now().rows)-1])
	made, err := layout.Optimize(w.t.Context(), w.Table, layout.Options{})
	require.NoError(w.t, err)
	if made.Version > w.at() {
		w.versions = append(w.versions, version{schema: w.now().schema, rows: w.now().rows})
	}
	w.checkNow(engines...)
}
