package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// project makes a project to start from and gives its folder.
func project(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "project")
	must(t, "init", dir)
	return dir
}

func write(t *testing.T, body string, at ...string) {
	t.Helper()
	name := filepath.Join(at...)
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

// listing is every file below a folder with its size and time.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		out = append(out, fmt.Sprint(name, " ", info.Size(), " ", info.ModTime()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInitRunCatQuery(t *testing.T) {
	t.Parallel()
	dir := project(t)
	dry := must(t, "-C", dir, "run", "customer", "--day", "2026-01-05", "--dry-run")
	if !strings.Contains(dry, "Nothing was committed") || !strings.Contains(dry, "+") {
		t.Errorf("the dry run shows no rows:\n%s", dry)
	}
	for _, line := range listing(t, filepath.Join(dir, "warehouse")) {
		t.Errorf("the dry run left %s", line)
	}
	must(t, "-C", dir, "run", "customer", "--day", "2026-01-05")
	tables := must(t, "-C", dir, "query", "--json", "SELECT count(*) AS n FROM ops.runs WHERE status = 'succeeded'")
	if strings.TrimSpace(tables) != `{"n":1}` {
		t.Errorf("the ledger has %s", tables)
	}
	before := listing(t, filepath.Join(dir, "warehouse", "silver"))
	must(t, "-C", dir, "run", "customer", "--day", "2026-01-05")
	if after := listing(t, filepath.Join(dir, "warehouse", "silver")); !slices.Equal(before, after) {
		t.Errorf("a second run changed silver:\n%s", strings.Join(after, "\n"))
	}
	if o := varve(t, "init", dir); o.code != 1 || !strings.Contains(o.stderr, "project already") {
		t.Errorf("init over a project: exit %d, %s", o.code, o.stderr)
	}
}

func TestNewWritesAContractThatRuns(t *testing.T) {
	t.Parallel()
	dir := project(t)
	lines := "supplier_id,name,rating,seq,op\nS1,Acme,1.50,1,INSERT\nS2,Globex,2.25,2,INSERT\nS1,Acme Ltd,1.75,3,UPDATE\nS2,,,4,DELETE\n"
	write(t, lines, dir, "landing", "supplier", "2026-03-01", "a.csv")
	out := must(t, "-C", dir, "new", "supplier", "--from", filepath.Join(dir, "landing", "supplier", "2026-03-01", "a.csv"))
	if !strings.Contains(out, "supplier.yaml") {
		t.Errorf("new says %s", out)
	}
	must(t, "-C", dir, "run", "supplier", "--day", "2026-03-01")
	got := rows(t, dir, "silver.supplier_current")
	if len(got) != 1 || !strings.Contains(got[0], "Acme Ltd") {
		t.Errorf("silver.supplier_current has %v", got)
	}
	if o := varve(t, "-C", dir, "new", "supplier", "--from", filepath.Join(dir, "landing", "supplier", "2026-03-01", "a.csv")); o.code != 1 || !strings.Contains(o.stderr, "exists") {
		t.Errorf("new over a contract: exit %d, %s", o.code, o.stderr)
	}
}

// TestBadRecordsGoToQuarantineAndTheRestGoesOn is the bad input that costs one record.
func TestBadRecordsGoToQuarantineAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	dir := project(t)
	write(t, `dataset: mixed
source: {path: "mixed/{day}/*", format: json}
columns: {id: {type: bigint}, name: {type: string}, n: {type: int}, seq: {type: bigint}}
keys: [id]
sequence_by: seq
targets: [{table: silver.mixed}]
`, dir, "datasets", "mixed.yaml")
	write(t, `{"id":1,"name":"good","n":1,"seq":1}
{"id":2,"name":"broken
{"id":null,"name":"no key","n":1,"seq":1}
{"id":3,"name":"no number","n":"many","seq":1}
{"id":4,"name":"no sequence","n":4}
{"id":9007199254740993,"name":"exact","n":5,"seq":1}
`, dir, "landing", "mixed", "2026-03-01", "a.json")
	out := must(t, "-C", dir, "run", "mixed", "--day", "2026-03-01")
	if !strings.Contains(out, "4 records went to quarantine") {
		t.Errorf("the summary says nothing of quarantine: %s", out)
	}
	if got := rows(t, dir, "silver.mixed"); len(got) != 2 || !strings.Contains(strings.Join(got, ""), "9007199254740993") {
		t.Errorf("silver.mixed has %v", got)
	}
	bad := rows(t, dir, "quarantine.mixed")
	for _, want := range []string{`"_row":2`, `"_row":3`, `"_row":4`, `"_row":5`, `"_reason":"malformed"`, `"_reason":"null_key"`, `"_reason":"convert"`, `"_reason":"null_sequence"`, `mixed/2026-03-01/a.json`} {
		if !strings.Contains(strings.Join(bad, "\n"), want) {
			t.Errorf("quarantine lacks %s:\n%s", want, strings.Join(bad, "\n"))
		}
	}
}

// TestFaultsAreOneClearSentence is the bad input that stops a command.
func TestFaultsAreOneClearSentence(t *testing.T) {
	t.Parallel()
	dir := project(t)
	ran := project(t)
	must(t, "-C", ran, "run", "customer", "--day", "2026-01-05")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	busy := project(t)
	settings, err := os.ReadFile(filepath.Join(busy, "varve.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(settings)+"\ntemporal: {port: "+port+"}\n", busy, "varve.yaml")
	wrong := project(t)
	write(t, "dataset: wrong\nsorce: {path: x}\nkeys: []\n", wrong, "datasets", "wrong.yaml")
	nosql := project(t)
	write(t, "dataset: nosql\nsource: {path: \"x/{day}/*\", format: json}\ncolumns: {id: {type: int}, op: {type: string}}\nkeys: [id]\nsequence_by: _arrival\napply_as_deletes: opp = 'D'\ntargets: [{table: silver.nosql}]\n", nosql, "datasets", "nosql.yaml")
	alone := project(t)
	if settings, err = os.ReadFile(filepath.Join(alone, "varve.yaml")); err != nil {
		t.Fatal(err)
	}
	write(t, string(settings)+"\ntemporal: {address: \"127.0.0.1:1\"}\n", alone, "varve.yaml")
	outside := project(t)
	write(t, "", outside, "landing", "customer", "2026-05-05", "a.json")
	if err := os.Symlink("/etc/hostname", filepath.Join(outside, "landing", "customer", "2026-05-05", "b.json")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"no source folder":        {[]string{"-C", dir, "run", "customer", "--day", "2030-01-01"}, 1, []string{"customer/2030-01-01"}},
		"a file out of reach":     {[]string{"-C", outside, "run", "customer", "--day", "2026-05-05"}, 1, []string{"b.json"}},
		"unknown dataset":         {[]string{"-C", dir, "run", "custmer", "--day", "2026-01-05"}, 1, []string{"custmer", "customer"}},
		"a contract with errors":  {[]string{"-C", wrong, "run", "wrong", "--day", "2026-01-05"}, 1, []string{"wrong.yaml: line 2", "sorce", "source", "keys"}},
		"a bad SQL expression":    {[]string{"-C", nosql, "run", "nosql", "--day", "2026-01-05"}, 1, []string{"nosql.yaml", "opp", "op"}},
		"a port in use":           {[]string{"-C", busy, "dev"}, 1, []string{"port " + port, "in use"}},
		"no project":              {[]string{"-C", t.TempDir(), "dev"}, 1, []string{"varve.yaml", "varve init"}},
		"no Temporal":             {[]string{"-C", alone, "worker"}, 1, []string{"no Temporal service"}},
		"unknown table":           {[]string{"-C", dir, "cat", "silver.nothing"}, 1, []string{"silver.nothing"}},
		"no table in a folder":    {[]string{"cat", dir}, 1, []string{filepath.Base(dir)}},
		"bad SQL":                 {[]string{"-C", dir, "query", "SELEC 1"}, 1, []string{"query"}},
		"unknown flag":            {[]string{"run", "customer", "--dya", "2026-01-05"}, 2, []string{"dya"}},
		"unknown verb":            {[]string{"rnu"}, 2, []string{"rnu"}},
		"unknown part of a verb":  {[]string{"contract", "pblish"}, 2, []string{"contract"}},
		"no version before 0":     {[]string{"-C", dir, "cat", "--version", "-1", "ops.runs"}, 2, []string{"--version -1"}},
		"two questions":           {[]string{"-C", ran, "cat", "--version", "1", "--changes", "0..", "ops.runs"}, 2, []string{"--version", "--changes"}},
		"no range of versions":    {[]string{"-C", ran, "cat", "--changes", "1-2", "ops.runs"}, 2, []string{"3..7"}},
		"a range backwards":       {[]string{"-C", ran, "cat", "--changes", "2..1", "ops.runs"}, 2, []string{"ends before"}},
		"no change data feed":     {[]string{"-C", ran, "cat", "--changes", "0..", "silver.customer_current"}, 1, []string{"delta.enableChangeDataFeed", "version 0"}},
		"unknown version":         {[]string{"-C", ran, "cat", "--version", "99", "silver.customer_current"}, 1, []string{"99"}},
		"no dataset":              {[]string{"run"}, 2, []string{"varve run"}},
		"a day that is none":      {[]string{"-C", dir, "run", "customer", "--day", "yesterday"}, 2, []string{"yesterday"}},
		"a demo over other files": {[]string{"demo", "--exit", "--dir", filepath.Join(dir, "landing")}, 1, []string{"not empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := varve(t, tc.args...)
			if o.code != tc.code {
				t.Errorf("exit %d, want %d", o.code, tc.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(o.stderr, want) {
					t.Errorf("it does not say %q: %s", want, o.stderr)
				}
			}
			if strings.Contains(o.stderr, "goroutine ") || strings.Contains(o.stderr, "panic") {
				t.Errorf("it panics: %s", o.stderr)
			}
		})
	}
}

// serving is a varve that serves until it is told to end.
type serving struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// serve starts varve; it is killed after a minute.
func serve(t *testing.T, args ...string) serving {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := command(ctx, t, args...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return serving{t: t, cmd: cmd, lines: bufio.NewScanner(pipe)}
}

// until reads what it says up to a line with a word, and gives all of it.
func (s serving) until(word string) string {
	s.t.Helper()
	var said strings.Builder
	for s.lines.Scan() {
		said.WriteString(s.lines.Text() + "\n")
		if strings.Contains(s.lines.Text(), word) {
			return said.String()
		}
	}
	s.t.Fatalf("it never said %q: %s", word, said.String())
	return ""
}

// end ends it as Ctrl-C does.
func (s serving) end() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
	for s.lines.Scan() { // it may say more on its way out
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("it ended with %v", err)
	}
}

// between gives what stands between two marks of a text.
func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	found, _, _ := strings.Cut(rest, after)
	return found
}

// TestDevServesAProjectAndPublishesChanges starts varve dev, changes a contract, and ends it as Ctrl-C does.
func TestDevServesAProjectAndPublishesChanges(t *testing.T) {
	t.Parallel()
	dir := project(t)
	dev := serve(t, "-C", dir, "dev")
	response, err := http.Get(between(dev.until("ready:"), "its UI at ", ";"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("the UI answers %s", response.Status)
	}
	file := filepath.Join(dir, "datasets", "customer.yaml")
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, strings.Replace(string(body), "description:", "description: Changed.\n#", 1), file)
	dev.until("publishing number 2")
	write(t, "dataset: customer\nnonsense: 1\n", file)
	dev.until("not published")
	dev.end()
	var published struct{ Contract struct{ Description string } }
	last, err := os.ReadFile(filepath.Join(dir, "warehouse", "_varve", "contracts", "customer", "2.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(last, &published); err != nil || published.Contract.Description != "Changed." {
		t.Errorf("contract 2 is %s (%v)", last, err)
	}
}

// TestOnlyPublishPublishesWhatWorkersGoBy starts workers beside a project whose files differ from what is published.
func TestOnlyPublishPublishesWhatWorkersGoBy(t *testing.T) {
	t.Parallel()
	dev := serve(t, "-C", project(t), "dev")
	address := between(dev.until("ready:"), "Temporal at ", ",")
	dir := project(t)
	settings, err := os.ReadFile(filepath.Join(dir, "varve.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(settings)+"\ntemporal: {address: \""+address+"\", task_queue: another}\n", dir, "varve.yaml")
	work := func() string {
		t.Helper()
		w := serve(t, "-C", dir, "worker")
		said := w.until("ready:")
		w.end()
		return said
	}
	says := func(said string, words ...string) {
		t.Helper()
		for _, want := range words {
			if !strings.Contains(said, want) {
				t.Errorf("it does not say %q: %s", want, said)
			}
		}
	}
	published := func(want ...string) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "warehouse", "_varve", "*", "*", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			found[i] = strings.TrimPrefix(filepath.ToSlash(found[i]), filepath.ToSlash(filepath.Join(dir, "warehouse", "_varve"))+"/")
		}
		if !slices.Equal(found, want) {
			t.Errorf("published are %v, want %v", found, want)
		}
	}
	models, err := filepath.Glob(filepath.Join(dir, "models", "*.sql"))
	if err != nil || len(models) != 1 {
		t.Fatal(models, err)
	}
	model := "models/" + strings.TrimSuffix(filepath.Base(models[0]), ".sql") + "/"

	says(work(), "no contract is published yet", "-C "+dir+" contract publish")
	published()
	says(must(t, "-C", dir, "contract", "publish", "--dry-run"), "contract customer: publishing number 1", "Nothing was published.")
	published()
	says(must(t, "-C", dir, "contract", "publish"), "contract customer: publishing number 1", "model "+filepath.Base(model)+": published")
	published("contracts/customer/1.json", model+"1.json")
	says(must(t, "-C", dir, "contract", "publish"), "Nothing differs from what is published.")

	if err := os.Remove(models[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "datasets", "customer.yaml")); err != nil {
		t.Fatal(err)
	}
	if said := work(); strings.Contains(said, "publish") {
		t.Errorf("a worker with other files says %s", said)
	}
	published("contracts/customer/1.json", model+"1.json")
	says(must(t, "-C", dir, "contract", "publish"), "withdrawn")
	published("contracts/customer/1.json", model+"1.json", model+"2.json")
	dev.end()
}

func TestCatPrintsTablesOfOthers(t *testing.T) {
	t.Parallel()
	corpus := filepath.Join("..", "..", "..", "shared", "delta-corpus")
	if _, err := os.Stat(corpus); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("the corpus of Delta tables is not beside this clone")
	}
	for _, table := range []string{"basic-dv-with-checkpoint", "data-reader-timestamp_ntz", "table-with-columnmapping-mode-name", "v2-checkpoint-json", "multi-part-checkpoint"} {
		want, err := os.ReadFile(filepath.Join(corpus, table, "expected", "rows.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSpace(must(t, "cat", "--json", filepath.Join(corpus, table, "delta"))), "\n")
		if !sameJSON(t, got, strings.Split(strings.TrimSpace(string(want)), "\n")) {
			t.Errorf("%s: the rows differ", table)
		}
	}
	changes := strings.Split(strings.TrimSpace(must(t, "cat", "--changes", "1..2", "--json", filepath.Join(corpus, "cdf-table", "delta"))), "\n")
	for _, line := range changes {
		for _, part := range []string{`"id":`, `"_change_type":"update_p`, `"_commit_version":`, `"_commit_timestamp":"20`} {
			if !strings.Contains(line, part) {
				t.Errorf("a change lacks %s: %s", part, line)
			}
		}
	}
	if len(changes) == 0 || len(changes)%2 == 1 {
		t.Errorf("%d changes of updates", len(changes))
	}
	if all := must(t, "cat", "--changes", "0..", filepath.Join(corpus, "cdf-table", "delta")); strings.Count(all, "\n") != 24 {
		t.Errorf("not 23 changes and their names:\n%s", all)
	}
	first := must(t, "cat", "--version", "0", "--json", filepath.Join(corpus, "multi-part-checkpoint", "delta"))
	if n := strings.Count(first, "\n"); n != 1 {
		t.Errorf("version 0 has %d rows, want 1", n)
	}
}

// TestCommandsOfThePagesWork runs every shell command of the README and of the start page, in order, from the clone's root.
func TestCommandsOfThePagesWork(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"README.md", filepath.Join("docs", "start.md")} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(filepath.Join("..", "..", page))
			if err != nil {
				t.Fatal(err)
			}
			dir, commands := t.TempDir(), 0
			for _, block := range strings.Split(string(body), "```sh\n")[1:] {
				block, _, _ = strings.Cut(block, "```")
				for line := range strings.Lines(block) {
					line = strings.TrimSpace(line)
					if line == "" || strings.HasPrefix(line, "#") || line == "bash .ci/run" {
						continue
					}
					commands++
					shell(t, strings.ReplaceAll(line, "/tmp/", dir+"/"))
				}
			}
			if commands < 3 {
				t.Errorf("%s has %d commands", page, commands)
			}
		})
	}
}

func TestVersionIsTold(t *testing.T) {
	t.Parallel()
	if out := must(t, "--version"); !strings.HasPrefix(out, "varve version ") || !strings.Contains(out, runtime.Version()) {
		t.Errorf("%q", out)
	}
}

// TestOneWrongFileStopsNothingElse has a typo in another dataset's contract.
func TestOneWrongFileStopsNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, "init", filepath.Join(dir, "p"))
	dir = filepath.Join(dir, "p")
	write(t, "dataset: other\nfoo: 1\n", filepath.Join(dir, "datasets", "other.yaml"))
	write(t, "SELECT * FROM silver.customer_now, silver.customer_current", filepath.Join(dir, "models", "gold.typo.sql"))
	out := must(t, "-C", dir, "run", "customer", "--day", "2026-01-05")
	for _, want := range []string{"is at version 0", "gold.typo waits for silver.customer_now: it was not made"} {
		if !strings.Contains(out, want) {
			t.Errorf("the run does not say %q:\n%s", want, out)
		}
	}
	must(t, "-C", dir, "run", "customer", "--day", "2026-01-05", "--dry-run")
}
