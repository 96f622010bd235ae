package delta_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/value"
)

// corpus is the folder of the conformance corpus: tables of public repositories with the rows that they hold.
const corpus = "../../../shared/delta-corpus"

// expectedToFail are the tables that ought to be read and are not, with the reason. A table that is read must go off it.
func expectedToFail() map[string]string {
	return map[string]string{
		"spark-shredded-variant-preview-delta": "shredded variants are not put together",
	}
}

// expectedTable is what the corpus tells of a table.
type expectedTable struct {
	Name          string            `json:"name"`
	Tier          string            `json:"tier"`
	Version       int64             `json:"version"`
	NumRows       int64             `json:"numRows"`
	NumFiles      int               `json:"numFiles"`
	Txn           map[string]any    `json:"txn"`
	RowsByVersion map[string]*int64 `json:"rowsByVersion"`
	CDF           struct {
		StartVersion int64 `json:"startVersion"`
		Rows         int   `json:"rows"`
	} `json:"cdf"`
}

// corpusTables lists the tables of the corpus.
func corpusTables(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(corpus, "*", "expected", "meta.json"))
	require.NoError(t, err)
	if len(found) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("the conformance corpus is not there")
		}
		t.Skip("the conformance corpus is not there")
	}
	tables := make([]string, len(found))
	for i, p := range found {
		tables[i] = filepath.Dir(filepath.Dir(p))
	}
	return tables
}

// expected reads what the corpus tells of a table.
func expected(t *testing.T, folder string) expectedTable {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(folder, "expected", "meta.json"))
	require.NoError(t, err)
	var e expectedTable
	require.NoError(t, json.Unmarshal(body, &e))
	return e
}

func TestCorpusIsReadAsItsAuthorsReadIt(t *testing.T) {
	t.Parallel()
	for _, folder := range corpusTables(t) {
		e := expected(t, folder)
		if e.Tier == "negative" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			table := delta.At(load(t, filepath.Join(folder, "delta")), "")
			err := checkTable(t, table, folder, e)
			if reason, ok := expectedToFail()[e.Name]; ok {
				require.Error(t, err, "is read now, although %s: take it off the list", reason)
				return
			}
			require.NoError(t, err)
		})
	}
}

// checkTable compares a table with what the corpus tells of it.
func checkTable(t *testing.T, table delta.Table, folder string, e expectedTable) error {
	t.Helper()
	s, err := table.Latest(t.Context())
	if err != nil {
		return err
	}
	if s.Version() != e.Version || len(s.Files()) != e.NumFiles {
		return fmt.Errorf("version %d of %d files, want %d of %d", s.Version(), len(s.Files()), e.Version, e.NumFiles)
	}
	for appID := range e.Txn {
		if _, ok := s.Txn(appID); !ok {
			return fmt.Errorf("no txn of %q", appID)
		}
	}
	got, err := jsonRows(t, s)
	if err != nil {
		return err
	}
	want, err := expectedRows(s.Schema(), filepath.Join(folder, "expected", "rows.jsonl"))
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return differ(got, want)
	}
	return checkVersions(t, table, e)
}

// differ shows where two lists of rows part.
func differ(got, want []string) error {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("row %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
	return fmt.Errorf("%d rows, want %d", len(got), len(want))
}

// checkVersions counts the rows of each version.
func checkVersions(t *testing.T, table delta.Table, e expectedTable) error {
	t.Helper()
	for _, text := range slices.Sorted(maps.Keys(e.RowsByVersion)) {
		version, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		count, err := countRows(t, table, version)
		if want := e.RowsByVersion[text]; want == nil {
			if err == nil {
				return fmt.Errorf("version %d is read, although its files are gone", version)
			}
		} else if err != nil || count != *want {
			return fmt.Errorf("version %d: %d rows, want %d: %w", version, count, *want, err)
		}
	}
	return nil
}

// countRows counts the rows of a version.
func countRows(t *testing.T, table delta.Table, version int64) (int64, error) {
	t.Helper()
	s, err := table.Version(t.Context(), version)
	if err != nil {
		return 0, err
	}
	count := int64(0)
	for _, err := range s.Scan(t.Context(), nil) {
		if err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}

// jsonRows gives the rows of a snapshot as sorted JSON lines.
func jsonRows(t *testing.T, s *delta.Snapshot) ([]string, error) {
	t.Helper()
	var lines []string
	for row, err := range s.Scan(t.Context(), nil) {
		if err != nil {
			return nil, err
		}
		line := []byte("{")
		for i, f := range s.Schema() {
			if i > 0 {
				line = append(line, ',')
			}
			line = append(strconv.AppendQuote(line, f.Name), ':')
			line = value.AppendJSON(line, f.Type, row[i])
		}
		normal, err := normalLine(s.Schema(), append(line, '}'))
		if err != nil {
			return nil, err
		}
		lines = append(lines, normal)
	}
	slices.Sort(lines)
	return lines, nil
}

// expectedRows gives the rows of a file as sorted JSON lines.
func expectedRows(schema value.Schema, file string) ([]string, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var lines []string
	scanner := bufio.NewScanner(bytes.NewReader(body))
	scanner.Buffer(nil, len(body)+1)
	for scanner.Scan() {
		normal, err := normalLine(schema, scanner.Bytes())
		if err != nil {
			return nil, err
		}
		lines = append(lines, normal)
	}
	slices.Sort(lines)
	return lines, scanner.Err()
}

// normalLine writes a row so that equal rows are equal lines.
func normalLine(schema value.Schema, line []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var row any
	if err := dec.Decode(&row); err != nil {
		return "", fmt.Errorf("%w in %s", err, line)
	}
	out, err := json.Marshal(normal(value.Type{Kind: value.StructKind, Fields: schema}, row))
	return string(out), err
}

// normal gives numbers one spelling and the entries of maps one order.
func normal(t value.Type, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, f := range t.Fields {
			v[f.Name] = normal(f.Type, v[f.Name])
		}
		return v
	case []any:
		elem := value.Type{}
		if t.Kind == value.MapKind {
			elem = value.Type{Kind: value.StructKind, Fields: []value.Field{{Name: "key", Type: *t.Key}, {Name: "value", Type: *t.Elem}}}
		} else if t.Elem != nil {
			elem = *t.Elem
		}
		for i := range v {
			v[i] = normal(elem, v[i])
		}
		if t.Kind == value.MapKind {
			slices.SortFunc(v, func(a, b any) int { return bytes.Compare(fmt.Append(nil, a), fmt.Append(nil, b)) })
		}
		return v
	case json.Number:
		f, err := v.Float64()
		switch {
		case err == nil && t.Kind == value.Float:
			return strconv.FormatFloat(f, 'g', -1, 32)
		case err == nil && t.Kind == value.Double:
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
		return v
	default:
		return v
	}
}

func TestCompactionStandsInForCommitsThatAreGone(t *testing.T) {
	t.Parallel()
	corpusTables(t)
	folder := filepath.Join(corpus, "compacted-log-files-table")
	want, err := delta.At(load(t, folder), "delta").Latest(t.Context())
	require.NoError(t, err)
	table := delta.At(load(t, folder), "delta")
	drop := func(from, to int64) {
		for v := from; v <= to; v++ {
			require.NoError(t, table.Store.Delete(t.Context(), fmt.Sprintf("delta/_delta_log/%020d.json", v)))
		}
	}
	drop(2, 5)
	drop(7, 8)
	drop(12, 15)
	got, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.Equal(t, want.Files(), got.Files())
	require.Equal(t, want.Metadata(), got.Metadata())
	drop(16, 16)
	_, err = table.Latest(t.Context())
	var broken *delta.CorruptError
	require.ErrorAs(t, err, &broken)
	require.EqualValues(t, 16, broken.Version)
}

func TestStatsThatAreAStructAreStats(t *testing.T) {
	t.Parallel()
	corpusTables(t)
	s, err := delta.At(load(t, filepath.Join(corpus, "v1-multi-part-partitioned-struct-stats-only", "delta")), "").Latest(t.Context())
	require.NoError(t, err)
	for _, a := range s.Files() {
		count, ok := a.Records()
		require.True(t, ok, a.Path)
		require.EqualValues(t, 1, count)
		require.True(t, json.Valid([]byte(a.Stats)))
	}
}

func TestCorpusIsRefusedWhereItMustBe(t *testing.T) {
	t.Parallel()
	refusals := map[string]func(t *testing.T, table delta.Table){
		"deltalog-invalid-protocol-version":                              unsupported("minReaderVersion 99"),
		"deltalog-state-reconstruction-without-protocol":                 corrupt,
		"deltalog-state-reconstruction-from-checkpoint-missing-protocol": corrupt,
		"no-delta-log-folder":                                            absent,
		"simple_table_features":                                          unsupported(`minReaderVersion 5 with "blahabl"`),
		"table-with-geo":                                                 unsupported(`feature "geospatial"`),
		"catalog-owned-preview":                                          unsupported(`feature "catalogManaged"`),
		"collations-table":                                               readOnly(`feature "collations"`),
	}
	for _, folder := range corpusTables(t) {
		e := expected(t, folder)
		if e.Tier != "negative" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			refuses, ok := refusals[e.Name]
			require.True(t, ok, "the test does not know why this table is refused")
			refuses(t, delta.At(load(t, filepath.Join(folder, "delta")), ""))
		})
	}
}

// unsupported claims that a table is refused by the name of a feature.
func unsupported(feature string) func(t *testing.T, table delta.Table) {
	return func(t *testing.T, table delta.Table) {
		t.Helper()
		_, err := table.Latest(t.Context())
		var refused *delta.UnsupportedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, feature, refused.Feature)
		require.False(t, refused.Write)
	}
}

// readOnly claims that a table is read, and not written by the name of a feature.
func readOnly(feature string) func(t *testing.T, table delta.Table) {
	return func(t *testing.T, table delta.Table) {
		t.Helper()
		s, err := table.Latest(t.Context())
		require.NoError(t, err)
		_, err = table.Commit(t.Context(), s.Version(), delta.Commit{ID: "a", Operation: "WRITE", BlindAppend: true})
		var refused *delta.UnsupportedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, feature, refused.Feature)
		require.True(t, refused.Write)
	}
}

func corrupt(t *testing.T, table delta.Table) {
	t.Helper()
	_, err := table.Latest(t.Context())
	var broken *delta.CorruptError
	require.ErrorAs(t, err, &broken)
}

func absent(t *testing.T, table delta.Table) {
	t.Helper()
	_, err := table.Latest(t.Context())
	require.ErrorIs(t, err, delta.ErrNoTable)
}
