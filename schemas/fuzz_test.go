package schemas_test

import (
	"errors"
	"testing"

	"varve/schemas"
)

func FuzzParse(f *testing.F) {
	f.Add(base)
	f.Add(change(base, full))
	f.Add("a: &a [*a]\n")
	f.Add("? [a, b]\n: {c: *d}\n")
	f.Add("columns: {a: \"array<array<map<string,struct<x:int>>>>\"}\n")
	f.Add("schedule: {cron: \"*/0 1-2/3,4 * jan-mar sun\", time_zone: ../x}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := schemas.Parse([]byte(text))
		if err != nil {
			problemsOnly(t, text, err)
			return
		}
		body, err := c.Publish(1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := schemas.ReadPublished("contract.json", body)
		if err != nil {
			t.Fatalf("%v in\n%s", err, body)
		}
		if changes := schemas.Diff(c, p.Contract); len(changes) > 0 {
			t.Fatalf("what is read back differs: %v", changes)
		}
		if err := schemas.Compatible(c, p.Contract); err != nil {
			t.Fatalf("does not follow itself: %v", err)
		}
	})
}

func FuzzParseProject(f *testing.F) {
	f.Add("warehouse: warehouse\nlanding: {s3: b/c, path_style: true}\nlimits: {memory: 2GiB}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := schemas.ParseProject([]byte(text)); err != nil {
			problemsOnly(t, text, err)
		}
	})
}

// problemsOnly holds an error to be problems in the order of their lines, each on a line of the text.
func problemsOnly(t *testing.T, text string, err error) {
	t.Helper()
	p, ok := errors.AsType[*schemas.Problems](err)
	if !ok || len(p.List) == 0 {
		t.Fatalf("not problems: %v", err)
	}
	last := 1
	for _, problem := range p.List {
		if problem.Line < last || problem.Line > len(text)+1 || problem.Message == "" || problem.Warning {
			t.Fatalf("line %d after %d: %v", problem.Line, last, problem)
		}
		last = problem.Line
	}
}
