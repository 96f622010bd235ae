package source_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/source"
	"varve/schemas"
)

func infer(t *testing.T, name, body string) source.Draft {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	d, err := source.Infer(t.Context(), file)
	require.NoError(t, err)
	return d
}

func types(d source.Draft) map[string]string {
	out := map[string]string{}
	for _, c := range d.Columns {
		out[c.Name] = c.Type.String()
	}
	return out
}

func TestInferDraftsAFeedOfChanges(t *testing.T) {
	t.Parallel()
	d := infer(t, "part-1.json", `{"customer_id": "C100", "customer_name": "Acme", "city": "Delhi", "operation": "INSERT", "sequence_num": 10}
{"customer_id": "C100", "customer_name": "Acme", "city": "Bengaluru", "operation": "UPDATE", "sequence_num": 30}
{"customer_id": "C100", "customer_name": "Acme", "city": "Mumbai", "operation": "UPDATE", "sequence_num": 20}
{"customer_id": "C100", "customer_name": "Acme", "city": "Mumbai", "operation": "UPDATE", "sequence_num": 20}
{"customer_id": "C200", "customer_name": "Globex", "city": null, "operation": "INSERT", "sequence_num": 10}
{"customer_id": "C200", "operation": "DELETE", "sequence_num": 20}
{broken`)
	require.Equal(t, int64(7), d.Records)
	require.Equal(t, int64(1), d.Bad)
	require.True(t, d.Complete)
	require.Equal(t, source.JSON, d.Dialect.Format)
	require.Equal(t, map[string]string{
		"customer_id": "string", "customer_name": "string", "city": "string", "operation": "string", "sequence_num": "bigint",
	}, types(d))
	require.Equal(t, []string{"customer_id"}, d.Keys[0].Columns)
	require.Contains(t, d.Keys[0].Evidence, "unique together with sequence_num in 5 different records")
	require.Equal(t, []string{"sequence_num"}, d.Sequences[0].Columns)
	require.Contains(t, d.Sequences[0].Evidence, "it falls 2 times of 5")
	require.Equal(t, "operation = 'DELETE'", d.Deletes[0].Expr)
	require.Equal(t, "its values: DELETE 1, INSERT 2, UPDATE 3", d.Deletes[0].Evidence)
	require.Equal(t, "3 different values, 1 null, 1 absent", d.Columns[2].Evidence)
}

func TestInferDraftsATableWithoutASequence(t *testing.T) {
	t.Parallel()
	d := infer(t, "customers.csv", "customer_id;name;zip;limit;rate;since;seen;active\n"+
		"501;Anita;01234;10.50;1e3;2023-06-15;2024-01-01 10:00:00;true\n502;Karan;99999;-7;2;2024-01-01;2024-01-02T00:00:00;false\n")
	require.Equal(t, ";", d.Dialect.Delimiter)
	require.Equal(t, map[string]string{
		"customer_id": "bigint", "name": "string", "zip": "string", "limit": "decimal(18,2)", "rate": "double", "since": "date",
		"seen": "timestamp", "active": "boolean",
	}, types(d))
	require.Equal(t, []string{"customer_id"}, d.Keys[0].Columns)
	require.Empty(t, d.Deletes)
	require.Contains(t, d.Columns[6].Evidence, "no time zone: read as UTC")
}

func TestInferFindsAKeyOfTwoColumns(t *testing.T) {
	t.Parallel()
	d := infer(t, "cost.csv", "area,center,name,version\nA,1,x,1\nA,2,x,1\nB,1,x,1\nB,2,x,1\nA,1,y,2\n")
	require.Equal(t, []string{"area", "center"}, d.Keys[0].Columns)
	require.Equal(t, []string{"version"}, d.Sequences[0].Columns)
}

func TestInferTypesNestedValues(t *testing.T) {
	t.Parallel()
	d := infer(t, "n.json", `[{"id": 1, "a": {"x": 1, "y": [1, 2.5]}, "m": 1, "e": {}, "d": "2026-09-14"},
{"id": 2, "a": {"z": true}, "m": "1", "e": {}, "d": "2026-09-14T00:00:00Z"}]`)
	require.Equal(t, map[string]string{
		"id": "bigint", "a": "struct<x:bigint,y:array<decimal(18,1)>,z:boolean>", "m": "string", "e": "string", "d": "timestamp",
	}, types(d))
}

func TestInferRefusesWhatHoldsNoRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, want := range map[string]string{"empty.csv": "is empty", "bad.json": "no record in it", "header.csv": "no record in it"} {
		file := filepath.Join(dir, name)
		body := map[string]string{"bad.json": "{bad", "header.csv": "a,b\n"}[name]
		require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
		_, err := source.Infer(t.Context(), file)
		require.ErrorContains(t, err, want)
	}
	_, err := source.Infer(t.Context(), filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = source.Infer(t.Context())
	require.Error(t, err)
	csv, json := filepath.Join(dir, "1.csv"), filepath.Join(dir, "1.json")
	require.NoError(t, os.WriteFile(csv, []byte("a\n1\n"), 0o600))
	require.NoError(t, os.WriteFile(json, []byte(`{"a": 1}`), 0o600))
	_, err = source.Infer(t.Context(), csv, json)
	require.ErrorContains(t, err, "not of one format")
	require.NotContains(t, err.Error(), "\n")
}

func TestADraftRendersAsAContractThatParses(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"changes.json": `{"customer_id": "C1", "city": "Pune", "op type": "D", "operation": "D", "lsn": 1}
{"customer_id": "C1", "city": "Pune", "op type": "I", "operation": "I", "lsn": 2}`,
		"table.csv": "id;name\n1;a\n2;b\n",
	} {
		spec := infer(t, name, body).Spec("customer", "customer/{day}/*")
		text := schemas.Draft(spec)
		c, err := schemas.Parse(text)
		require.NoError(t, err, string(text))
		require.Equal(t, spec.Keys[0].Columns, c.Keys)
	}
}
