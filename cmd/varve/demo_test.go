package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// targets are the tables that the demo maintains, with its models.
func targets() []string {
	return []string{
		"gold.dim_customer", "gold.dim_customer_scd2", "gold.sales_by_city", "silver.sales",
		"silver.customer_current", "silver.customer_current_flagged", "silver.customer_history",
	}
}

// rows are a table's rows as sorted JSON lines.
func rows(t *testing.T, dir, table string) []string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(must(t, "-C", dir, "cat", "--json", table)), "\n")
	slices.Sort(lines)
	return lines
}

// content is the rows of all the demo's targets.
func content(t *testing.T, dir string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, table := range targets() {
		out[table] = rows(t, dir, table)
	}
	return out
}

// commits are the commit files of the demo's targets, by path.
func commits(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	for _, layer := range []string{"silver", "gold"} {
		found, err := filepath.Glob(filepath.Join(dir, "warehouse", layer, "*", "_delta_log", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	return out
}

func TestDemoTwiceChangesNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	out := must(t, "demo", "--exit", "--dir", dir)
	for _, want := range []string{"2026-01-08", "gold.dim_customer_scd2", "Karan Verma", "/namespaces/"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not tell of %q:\n%s", want, out)
		}
	}
	before, files := content(t, dir), commits(t, dir)
	if len(files) == 0 {
		t.Fatal("no commits")
	}
	must(t, "demo", "--exit", "--dir", dir)
	for table, was := range before {
		if now := rows(t, dir, table); !slices.Equal(now, was) {
			t.Errorf("%s: got %v, want %v", table, now, was)
		}
	}
	if now := commits(t, dir); !slices.Equal(now, files) {
		t.Errorf("new table versions: got %v, want %v", now, files)
	}
}

// stages are the stages that the killing test must hit; the words are those of the log.
func stages() []string {
	return []string{"land", "normalize", "prepare", "audit", "commit", "publish", "record", "maintain"}
}

// TestKilledAtAnyMomentTheDemoEndsRight kills worker and embedded server together, at random moments of the days, until
// every stage was hit twice. Each time the demo is started again it goes on; in the end its tables are those of a demo
// that nobody disturbed.
func TestKilledAtAnyMomentTheDemoEndsRight(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("VARVE_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d (set VARVE_SEED to repeat it)", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	calm := filepath.Join(t.TempDir(), "calm")
	must(t, "demo", "--exit", "--dir", calm)
	want := content(t, calm)
	hits := map[string]int{}
	lacking := func() []string {
		return slices.DeleteFunc(stages(), func(s string) bool { return hits[s] >= 2 })
	}
	const most = 12 // fresh demos; a few are enough
	for round := 0; len(lacking()) > 0; round++ {
		if round == most {
			t.Fatalf("after %d demos not every stage was hit twice: %v", most, hits)
		}
		dir := filepath.Join(t.TempDir(), fmt.Sprint("killed-", round))
		for {
			wanted := lacking()
			if len(wanted) == 0 {
				wanted = []string{""} // all are hit: let it end
			}
			at, ended := disturb(t, dir, wanted[rng.IntN(len(wanted))], time.Duration(rng.IntN(40))*time.Millisecond)
			if ended {
				break
			}
			hits[at]++
			t.Logf("killed at %s", at)
		}
		for table, is := range content(t, dir) {
			if !slices.Equal(is, want[table]) {
				t.Errorf("round %d, %s: got %v, want %v", round, table, is, want[table])
			}
		}
	}
	t.Logf("hits: %v", hits)
}

// disturb runs the demo in dir and kills it a moment after it says that a stage begins. It tells the stage at which the
// demo was killed, or that it came to its end first.
func disturb(t *testing.T, dir, stage string, after time.Duration) (at string, ended bool) {
	t.Helper()
	cmd := command(t.Context(), t, "demo", "--exit", "--verbose", "--dir", dir)
	cmd.Stdout = io.Discard
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var tail []string
	lines := bufio.NewScanner(pipe)
	killed := false
	for lines.Scan() {
		tail = append(tail[max(0, len(tail)-20):], lines.Text())
		var line struct{ Msg, At string }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "stage" {
			continue
		}
		word, _, _ := strings.Cut(line.At, " ")
		if !killed {
			at = word
		}
		if word == stage && !killed {
			killed = true
			time.AfterFunc(after, func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
		}
	}
	err = cmd.Wait()
	switch {
	case err == nil:
		return "", true
	case killed && cmd.ProcessState.ExitCode() == -1:
		return at, false
	default:
		t.Fatalf("the demo failed: %v\n%s", err, strings.Join(tail, "\n"))
		return "", false
	}
}

// TestEveryEngineReadsEveryTable compares all rows of all tables of the demo, ledger and quarantine included, as
// deltalake, polars and DuckDB read them, with what varve cat says.
func TestEveryEngineReadsEveryTable(t *testing.T) {
	t.Parallel()
	python := os.Getenv("VARVE_PYTHON")
	if python == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("VARVE_PYTHON names no Python with deltalake, polars and DuckDB")
		}
		t.Skip("set VARVE_PYTHON to a Python with deltalake, polars and DuckDB; .ci/run does")
	}
	dir, out := filepath.Join(t.TempDir(), "demo"), t.TempDir()
	must(t, "demo", "--exit", "--dir", dir)
	script := filepath.Join("..", "..", ".ci", "interop.py")
	if text, err := exec.CommandContext(t.Context(), python, script, filepath.Join(dir, "warehouse"), out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, engine := range []string{"deltalake", "polars", "duckdb"} {
		files, err := filepath.Glob(filepath.Join(out, engine, "*.jsonl"))
		if err != nil || len(files) < len(targets())+3 {
			t.Fatalf("%s read %d tables, the demo has more: %v", engine, len(files), err)
		}
		for _, f := range files {
			table := strings.TrimSuffix(filepath.Base(f), ".jsonl")
			body, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(strings.TrimSpace(string(body)), "\n")
			if want := rows(t, dir, table); !sameJSON(t, got, want) {
				t.Errorf("%s, %s:\n got  %s\n want %s", engine, table, strings.Join(got, "\n      "), strings.Join(want, "\n      "))
			}
		}
	}
}

// sameJSON compares two lists of JSON objects as multisets, whatever the order of their members and spaces.
func sameJSON(t *testing.T, a, b []string) bool {
	t.Helper()
	plain := func(lines []string) []string {
		out := make([]string, 0, len(lines))
		for _, line := range lines {
			if line == "" {
				continue
			}
			var v any
			d := json.NewDecoder(strings.NewReader(line))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			text, err := json.Marshal(sortedMaps(v))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(text))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(plain(a), plain(b))
}

// sortedMaps puts the entries of maps, which have no order, in one, and numbers in one spelling.
func sortedMaps(v any) any {
	switch x := v.(type) {
	case json.Number:
		if f, err := x.Float64(); err == nil && strings.ContainsAny(x.String(), ".eE") {
			return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
		}
	case map[string]any:
		for k := range x {
			x[k] = sortedMaps(x[k])
		}
	case []any:
		isMap := true
		for i := range x {
			x[i] = sortedMaps(x[i])
			entry, ok := x[i].(map[string]any)
			_, key := entry["key"]
			isMap = isMap && ok && key
		}
		if isMap {
			slices.SortFunc(x, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	return v
}
