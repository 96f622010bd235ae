package demo_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"varve/schemas"
	"varve/schemas/demo"
	"varve/schemas/scaffold"
)

// projects are what this repository gives away as files.
func projects() map[string]fs.FS {
	return map[string]fs.FS{"demo": demo.Files(), "scaffold": scaffold.Files()}
}

func read(t *testing.T, files fs.FS, name string) []byte {
	t.Helper()
	body, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func glob(t *testing.T, files fs.FS, pattern string) []string {
	t.Helper()
	names, err := fs.Glob(files, pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	return names
}

func TestProjectsHaveNoProblemAndNoWarning(t *testing.T) {
	t.Parallel()
	for name, files := range projects() {
		p, err := schemas.ParseProject(read(t, files, "varve.yaml"))
		if err != nil || p.Warehouse.Path != "warehouse" || p.Landing.Path != "landing" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		for _, file := range glob(t, files, "datasets/*.yaml") {
			c, err := schemas.Parse(read(t, files, file))
			if err != nil {
				t.Errorf("%s: %v", name, schemas.InFile(err, file))
			}
			if len(c.Warnings) > 0 {
				t.Errorf("%s: %s: %v", name, file, c.Warnings)
			}
			if c.Dataset != strings.TrimSuffix(path.Base(file), ".yaml") {
				t.Errorf("%s: %s is of dataset %q", name, file, c.Dataset)
			}
		}
		for _, file := range glob(t, files, "models/*.sql") {
			if table := strings.TrimSuffix(path.Base(file), ".sql"); !schemas.IsTableName(table) || schemas.IsReservedTable(table) {
				t.Errorf("%s: %s is not named after a table", name, file)
			}
		}
	}
}

func TestDaysAreThoseThatHaveFiles(t *testing.T) {
	t.Parallel()
	told := map[string]bool{}
	last := ""
	for _, d := range demo.Days() {
		if d.Day <= last || len(d.Story) == 0 {
			t.Errorf("day %s after %s, story %q", d.Day, last, d.Story)
		}
		last = d.Day
		for _, dataset := range d.Datasets {
			told["landing/"+dataset+"/"+d.Day] = true
		}
	}
	for _, file := range glob(t, demo.Files(), "landing/*/*/*") {
		if !told[path.Dir(file)] {
			t.Errorf("no day has %s", file)
		}
	}
	for folder := range told {
		glob(t, demo.Files(), folder+"/*")
	}
}

func TestResentFileIsTheFirstOneUnderAnotherName(t *testing.T) {
	t.Parallel()
	first := read(t, demo.Files(), "landing/customer/2026-01-05/part-1.json")
	if again := read(t, demo.Files(), "landing/customer/2026-01-06/part-1-resent.json"); !bytes.Equal(first, again) {
		t.Error("they differ")
	}
}

func TestHistoryOfTheCustomersHasTheColumnsOfItsDocument(t *testing.T) {
	t.Parallel()
	c, err := schemas.Parse(read(t, demo.Files(), "datasets/customers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Targets, func(t schemas.Target) bool { return t.Table == "gold.dim_customer_scd2" })
	day, _ := c.Column("effective_date")
	got := c.TargetSchema(c.Targets[i], day.Type).Names()
	if want := []string{"customer_id", "customer_name", "city", "phone", "effective_date", "end_date", "is_current"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if tracked := c.Tracked(c.Targets[i]); !slices.Equal(tracked, []string{"customer_name", "city"}) {
		t.Errorf("tracked are %q", tracked)
	}
}

func TestFilesOfAProjectDoNotGoToItsRepository(t *testing.T) {
	t.Parallel()
	for name, files := range projects() {
		if _, err := fs.Stat(files, ".gitignore"); errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has no .gitignore", name)
		}
	}
}
