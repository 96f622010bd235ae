package worker_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"varve/internal/object"
	"varve/internal/object/objecttest"
	"varve/internal/stage"
	"varve/schemas"
	"varve/schemas/scaffold"
	"varve/worker"
)

// settings are the least that a project's file says.
const settings = "warehouse: warehouse\nlanding: landing\n"

// folder makes a project's folder with files, by path. The landing folder is there.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "landing"), 0o755))
	for name, text := range files {
		write(t, dir, name, text)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

func open(t *testing.T, dir string) *worker.Project {
	t.Helper()
	p, err := worker.OpenProject(t.Context(), dir, nil)
	require.NoError(t, err)
	return p
}

// scaffolded gives the files of the project that varve init makes.
func scaffolded(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, fs.WalkDir(scaffold.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(scaffold.Files(), name)
		out[name] = string(body)
		return err
	}))
	return out
}

// dataset is a contract with one target; more is lines added to it.
func dataset(name, table, more string) string {
	return "dataset: " + name + "\nsource: {path: \"" + name + "/{day}/*.json\", format: json, delivery: changes}\n" +
		"columns:\n  id: {type: string, required: true}\n  op: {type: string}\n  seq: {type: bigint}\n" +
		"keys: [id]\nsequence_by: seq\n" + more + "targets:\n  - {table: " + table + ", stored_as_scd_type: 1}\n"
}

func TestFolderWithoutAProjectIsSaidToBeNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := worker.OpenProject(t.Context(), dir, nil)
	var none *worker.NoProjectError
	require.ErrorAs(t, err, &none)
	require.Equal(t, dir, none.Dir)
	require.ErrorContains(t, err, "varve init")
	require.NoDirExists(t, filepath.Join(dir, ".varve"))
}

func TestBrokenSettingsAreNamedWithTheirLines(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{worker.ProjectFile: "warehouse: warehouse\nlandign: landing\n"})
	_, err := worker.OpenProject(t.Context(), dir, nil)
	var problems *schemas.Problems
	require.ErrorAs(t, err, &problems)
	require.Equal(t, filepath.Join(dir, worker.ProjectFile), problems.File)
	lines := map[int]string{}
	for _, one := range problems.List {
		lines[one.Line] = one.Field
	}
	require.Equal(t, "landign", lines[2])
	require.ErrorContains(t, err, `"landing"`)
	require.NoDirExists(t, filepath.Join(dir, "warehouse"))
}

func TestMissingLandingFolderIsNamedAndNotMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, worker.ProjectFile, settings)
	_, err := worker.OpenProject(t.Context(), dir, nil)
	require.ErrorContains(t, err, "make it, or correct landing in "+worker.ProjectFile)
	require.NoDirExists(t, filepath.Join(dir, "landing"))
	require.NoDirExists(t, filepath.Join(dir, "warehouse"))
}

func TestProjectThatInitMakesHasNoProblem(t *testing.T) {
	t.Parallel()
	p := open(t, folder(t, scaffolded(t)))
	contracts, err := p.Contracts(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, contracts)
	_, err = p.Models()
	require.NoError(t, err)
}

func TestLandingFolderIsNotTouched(t *testing.T) {
	t.Parallel()
	dir := folder(t, scaffolded(t))
	landing := filepath.Join(dir, "landing")
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(landing, long, long)) // what is made and removed again shows in the folder's time
	p := open(t, dir)
	require.ErrorIs(t, p.Engine.Landing.Put(t.Context(), "a", nil), object.ErrDenied)
	info, err := os.Stat(landing)
	require.NoError(t, err)
	require.Equal(t, long.UTC(), info.ModTime().UTC())
}

// TestOnS3NothingIsTouchedButThePrefixAndLandingIsOnlyRead opens a project through a proxy that lets through what its rights
// would allow.
func TestOnS3NothingIsTouchedButThePrefixAndLandingIsOnlyRead(t *testing.T) {
	server := objecttest.StartS3(t)
	target, err := url.Parse(server.Endpoint)
	require.NoError(t, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // the signature covers it
	}}
	warehouse, landing := "/"+server.NewBucket(t), "/"+server.NewBucket(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prefix := r.URL.Query().Get("prefix")
		writes := strings.HasPrefix(r.URL.Path, warehouse+"/lake/") || r.Method == http.MethodGet && strings.HasPrefix(prefix, "lake/")
		reads := r.Method == http.MethodGet && (strings.HasPrefix(r.URL.Path, landing+"/in/coming/") || strings.HasPrefix(prefix, "in/coming/"))
		if !writes && !reads {
			t.Errorf("%s %s", r.Method, r.URL)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	c := server.Config()
	t.Setenv("AWS_ACCESS_KEY_ID", c.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", c.SecretKey)
	location := func(s3 string) string {
		return "{s3: \"" + strings.TrimPrefix(s3, "/") + "\", endpoint: \"" + proxy.URL + "\", region: us-east-1, path_style: true}\n"
	}
	p := open(t, folder(t, map[string]string{
		worker.ProjectFile:  "warehouse: " + location(warehouse+"/lake") + "landing: " + location(landing+"/in/coming"),
		"datasets/one.yaml": dataset("one", "silver.one", ""),
	}))
	_, err = p.Publish(t.Context(), func(string) {})
	require.NoError(t, err)
	names, err := stage.Datasets(t.Context(), p.Engine.Warehouse)
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, names)
}

func TestProblemsOfAllContractsComeAtOnce(t *testing.T) {
	t.Parallel()
	p := open(t, folder(t, map[string]string{
		worker.ProjectFile:      settings,
		"datasets/good.yaml":    dataset("good", "silver.good", ""),
		"datasets/shape.yaml":   dataset("shape", "silver.shape", "sequence_bye: seq\n"),
		"datasets/sql.yml":      dataset("sql", "silver.sql", "apply_as_deletes: oops = 'D'\n"),
		"datasets/auto.sql":     "CREATE FLOW customer AS AUTO CDC INTO customer",
		"datasets/notes.txt":    "not a contract",
		"datasets/deeper/x.yml": "not read",
	}))
	good, err := p.Contracts(t.Context())
	require.Len(t, good, 1)
	require.Equal(t, "good", good[0].Dataset)
	found := map[string]schemas.Problem{}
	for _, one := range parts(t, err) {
		if problems, ok := errors.AsType[*schemas.Problems](one); ok {
			require.Len(t, problems.List, 1)
			found[problems.File] = problems.List[0]
		}
	}
	require.Len(t, found, 2)
	require.Equal(t, 9, found[filepath.Join("datasets", "shape.yaml")].Line)
	require.Equal(t, "apply_as_deletes", found[filepath.Join("datasets", "sql.yml")].Field)
	require.Equal(t, 9, found[filepath.Join("datasets", "sql.yml")].Line)
	require.ErrorContains(t, err, `"oops"`)
	require.ErrorContains(t, err, "auto.sql: contracts in AUTO CDC SQL come with a later version")
}

// parts are the errors that were joined.
func parts(t *testing.T, err error) []error {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok, "%v", err)
	return joined.Unwrap()
}

func TestDatasetAndTableHaveOneOwner(t *testing.T) {
	t.Parallel()
	p := open(t, folder(t, map[string]string{
		worker.ProjectFile: settings,
		"datasets/a.yaml":  dataset("one", "silver.one", ""),
		"datasets/b.yaml":  dataset("one", "silver.other", ""),
		"datasets/c.yaml":  dataset("two", "Silver.ONE", ""),
	}))
	good, err := p.Contracts(t.Context())
	require.Empty(t, good)
	require.ErrorContains(t, err, `datasets/a.yaml, datasets/b.yaml: dataset "one" is in each of them, and may have one owner`)
	require.ErrorContains(t, err, `datasets/a.yaml, datasets/c.yaml: table "silver.one" is in each of them, and may have one owner`)
}

func TestModelIsNamedAfterItsTable(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"no layer":       "models/sales.sql",
		"reserved layer": "models/bronze.sales.sql",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := open(t, folder(t, map[string]string{worker.ProjectFile: settings, file: "SELECT 1"})).Models()
			require.ErrorContains(t, err, "models/gold.sales.sql")
			require.ErrorContains(t, err, filepath.FromSlash(file))
		})
	}
	models, err := open(t, folder(t, map[string]string{worker.ProjectFile: settings, "models/gold.sales.sql": "SELECT 1"})).Models()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"gold.sales": "SELECT 1"}, models)
}

func TestPublishShowsTheDifferencesAndPublishesOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		worker.ProjectFile:      settings,
		"datasets/one.yaml":     dataset("one", "silver.one", ""),
		"models/gold.sales.sql": "SELECT id FROM silver.one",
	})
	p := open(t, dir)
	publish := func() ([]string, schemas.Published) {
		t.Helper()
		lines := []string{}
		done, err := p.Publish(t.Context(), func(line string) { lines = append(lines, line) })
		require.NoError(t, err)
		require.Len(t, done, 1)
		return lines, done[0]
	}
	lines, first := publish()
	require.Equal(t, []string{"contract one: publishing number 1", "model gold.sales: published"}, lines)
	lines, again := publish()
	require.Empty(t, lines)
	require.Equal(t, first, again)

	write(t, dir, "datasets/one.yaml", dataset("one", "silver.one", "apply_as_deletes: op = 'D'\n"))
	lines, second := publish()
	require.Equal(t, int64(2), second.Number)
	require.Equal(t, "contract one: publishing number 2", lines[0])
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], "apply_as_deletes")
	lines, _ = publish()
	require.Empty(t, lines)

	require.NoError(t, os.Remove(filepath.Join(dir, "models", "gold.sales.sql")))
	lines, _ = publish()
	require.Equal(t, []string{"model gold.sales: withdrawn, its table stays as it is"}, lines)
	lines, _ = publish()
	require.Empty(t, lines)
}

func TestPreviewShowsWhatPublishWouldDoAndDoesNothing(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		worker.ProjectFile:      settings,
		"datasets/one.yaml":     dataset("one", "silver.one", ""),
		"models/gold.sales.sql": "SELECT id FROM silver.one",
	})
	p := open(t, dir)
	preview := func() []string {
		lines := []string{}
		require.NoError(t, p.Preview(t.Context(), func(line string) { lines = append(lines, line) }))
		return lines
	}
	require.Equal(t, []string{"contract one: publishing number 1", "model gold.sales: published"}, preview())
	require.Empty(t, published(t, p))
	_, err := p.Publish(t.Context(), func(string) {})
	require.NoError(t, err)
	require.Empty(t, preview())

	require.NoError(t, os.Remove(filepath.Join(dir, "models", "gold.sales.sql")))
	write(t, dir, "datasets/one.yaml", dataset("one", "silver.one", "apply_as_deletes: op = 'D'\n"))
	lines := preview()
	require.Equal(t, "contract one: publishing number 2", lines[0])
	require.Equal(t, "model gold.sales: withdrawn, its table stays as it is", lines[len(lines)-1])
	require.Equal(t, map[string]int64{"one": 1}, published(t, p))
	names, err := stage.Models(t.Context(), p.Engine.Warehouse)
	require.NoError(t, err)
	require.Equal(t, []string{"gold.sales"}, names)
}

// published gives the number of the newest published contract of every dataset.
func published(t *testing.T, p *worker.Project) map[string]int64 {
	t.Helper()
	all, err := p.Published(t.Context())
	require.NoError(t, err)
	out := map[string]int64{}
	for _, one := range all {
		out[one.Contract.Dataset] = one.Number
	}
	return out
}

func TestModelThatIsNoSQLIsNotPublished(t *testing.T) {
	t.Parallel()
	p := open(t, folder(t, map[string]string{worker.ProjectFile: settings, "models/gold.sales.sql": "SELECT FROM WHERE"}))
	_, err := p.Publish(t.Context(), func(line string) { t.Errorf("shown: %s", line) })
	require.ErrorContains(t, err, "gold.sales")
	names, err := stage.Models(t.Context(), p.Engine.Warehouse)
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestWhatIsRightIsPublishedBesideWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"contract": {"datasets/b.yaml": dataset("b", "silver.b", "apply_as_deletes: oops\n")},
		"model":    {"models/sales.sql": "SELECT 1"},
		"empty":    {"models/gold.sales.sql": " \n"},
		"SQL":      {"models/gold.sales.sql": "SELECT FROM WHERE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files[worker.ProjectFile] = settings
			files["datasets/a.yaml"] = dataset("a", "silver.a", "")
			p := open(t, folder(t, files))
			done, err := p.Publish(t.Context(), func(string) {})
			for file := range files {
				if file != worker.ProjectFile && file != "datasets/a.yaml" {
					require.ErrorContains(t, err, file)
				}
			}
			require.Len(t, done, 1)
			require.Equal(t, map[string]int64{"a": 1}, published(t, p))
			names, err := stage.Models(t.Context(), p.Engine.Warehouse)
			require.NoError(t, err)
			require.Empty(t, names)
		})
	}
}
