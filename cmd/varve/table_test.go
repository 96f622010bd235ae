package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTableVerbsLookAfterATable runs every verb of table on a table of a project, by its name and by its folder.
func TestTableVerbsLookAfterATable(t *testing.T) {
	t.Parallel()
	dir := project(t)
	must(t, "-C", dir, "run", "customer", "--day", "2026-01-05")
	must(t, "-C", dir, "run", "customer", "--day", "2026-01-06")
	const table = "silver.customer_history"
	folder := filepath.Join(dir, "warehouse", "silver", "customer_history")
	before := rows(t, dir, table)

	info := must(t, "-C", dir, "table", "info", table)
	for _, want := range []string{"reader 1, writer 2", "customer_id", "agrees with the log", "DuckDB delta", "reads and writes", "reads and appends"} {
		if !strings.Contains(info, want) {
			t.Errorf("table info does not tell of %q:\n%s", want, info)
		}
	}
	if byFolder := must(t, "table", "info", folder); byFolder != info {
		t.Errorf("by its folder the table is\n%s\nby its name\n%s", byFolder, info)
	}

	lines := strings.Split(strings.TrimSpace(must(t, "-C", dir, "table", "history", "--json", table)), "\n")
	var newest struct {
		Version   int    `json:"version"`
		Operation string `json:"operation"`
		Engine    string `json:"engineInfo"`
	}
	if err := json.Unmarshal([]byte(lines[0]), &newest); err != nil {
		t.Fatal(err)
	}
	if newest.Version != len(lines)-1 || newest.Operation == "" || newest.Engine != "varve" {
		t.Errorf("the newest of %d commits is %+v", len(lines), newest)
	}
	if plain := must(t, "-C", dir, "table", "history", "--limit", "1", table); strings.Count(plain, "\n") != 2 || !strings.Contains(plain, newest.Operation) {
		t.Errorf("table history --limit 1 says\n%s", plain)
	}

	if out := must(t, "-C", dir, "table", "checkpoint", table); !strings.Contains(out, "checkpoint of version") {
		t.Errorf("table checkpoint says %s", out)
	}
	if after := must(t, "-C", dir, "table", "info", table); !strings.Contains(after, "0 versions ago") {
		t.Errorf("table info does not tell of the checkpoint:\n%s", after)
	}

	write(t, "x", folder, "stray.parquet")
	files := listing(t, folder)
	dry := must(t, "-C", dir, "table", "vacuum", "--dry-run", "--retain", "0s", "--force", table)
	if !strings.Contains(dry, "stray.parquet\t1\n") || !strings.Contains(dry, "would delete") || !slices.Equal(files, listing(t, folder)) {
		t.Errorf("the dry run says\n%s", dry)
	}
	if o := varve(t, "-C", dir, "table", "vacuum", "--retain", "0s", table); o.code != 1 || !strings.Contains(o.stderr, "--force") {
		t.Errorf("a retention of nothing: exit %d, %s", o.code, o.stderr)
	}
	if o := varve(t, "table", "vacuum", folder); o.code != 1 || !strings.Contains(o.stderr, "layer.name") {
		t.Errorf("a maintained table by its folder: exit %d, %s", o.code, o.stderr)
	}
	if out := must(t, "-C", dir, "table", "vacuum", table); !strings.Contains(out, "deleted 0 files") {
		t.Errorf("a vacuum at once says %s", out)
	}
	must(t, "-C", dir, "table", "vacuum", "--retain", "0s", "--force", table)
	if _, err := os.Stat(filepath.Join(folder, "stray.parquet")); !os.IsNotExist(err) {
		t.Errorf("the stray file is still there: %v", err)
	}
	if now := rows(t, dir, table); !slices.Equal(now, before) {
		t.Errorf("vacuum changed rows: %v, were %v", now, before)
	}
	must(t, "-C", dir, "run", "customer", "--day", "2026-01-06")
	for _, verb := range []string{"info", "history", "checkpoint", "vacuum"} {
		if o := varve(t, "-C", dir, "table", verb, "silver.nothing"); o.code != 1 || !strings.Contains(o.stderr, "there is no table") {
			t.Errorf("table %s of nothing: exit %d, %s", verb, o.code, o.stderr)
		}
		if o := varve(t, "table", verb); o.code != 2 {
			t.Errorf("table %s without a table: exit %d, %s", verb, o.code, o.stderr)
		}
	}
}
