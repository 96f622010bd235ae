package schemas_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"varve/schemas"
)

var rewrite = flag.Bool("rewrite", false, "write what the transcripts give into them")

// base is the contract that the sections of testdata/problems.txt change.
const base = `dataset: customer
source: {path: "customer/{day}/*.json", format: json}
columns:
  customer_id: {type: string, required: true}
  customer_name: {type: string}
  city: {type: string}
  address: {type: "struct<street:string,zip:string>"}
  tags: {type: "map<string,string>"}
  operation: {type: string}
  sequence_num: {type: bigint}
  effective_date: {type: date}
keys: [customer_id]
sequence_by: sequence_num
apply_as_deletes: operation = 'DELETE'
except_column_list: [operation, sequence_num, effective_date]
targets:
  - {table: silver.customer_current}
  - {table: silver.customer_history, stored_as_scd_type: 2}
`

// change gives text with the top-level fields of edits in place of its own; "drop F" takes the field F out.
func change(text, edits string) string {
	blocks := cut(text)
	for _, edit := range cut(edits) {
		name, _, _ := strings.Cut(edit, ":")
		drop, isDrop := strings.CutPrefix(strings.TrimSpace(edit), "drop ")
		if isDrop {
			name = drop
		}
		found := false
		for i, b := range blocks {
			if strings.HasPrefix(b, name+":") {
				found = true
				blocks[i] = edit
				if isDrop {
					blocks[i] = ""
				}
			}
		}
		if !found && !isDrop {
			blocks = append(blocks, edit)
		}
	}
	return strings.Join(blocks, "")
}

// cut cuts text before each line that is not indented.
func cut(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if len(out) == 0 || !strings.HasPrefix(line, " ") {
			out = append(out, "")
		}
		out[len(out)-1] += line
	}
	return out
}

// transcript runs the sections of a file: "=== name", the input, "---", the output.
func transcript(t *testing.T, file string, run func(input string) string) {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(body), "=== ")
	var out strings.Builder
	out.WriteString(head)
	for section := range strings.SplitSeq(rest, "\n=== ") {
		name, text, _ := strings.Cut(section, "\n")
		input, want, _ := strings.Cut(text, "---\n")
		want = strings.TrimSpace(want)
		got := run(input)
		out.WriteString("=== " + name + "\n" + input + "---\n" + got + "\n\n")
		if !*rewrite {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.TrimSuffix(out.String(), "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseNamesEveryProblem(t *testing.T) {
	t.Parallel()
	transcript(t, "testdata/problems.txt", func(input string) string {
		c, err := schemas.Parse([]byte(change(base, input)))
		return told(c.Warnings, err)
	})
}

func TestParseProjectNamesEveryProblem(t *testing.T) {
	t.Parallel()
	transcript(t, "testdata/project.txt", func(input string) string {
		_, err := schemas.ParseProject([]byte(input))
		return told(nil, err)
	})
}

// told gives warnings and problems as text.
func told(warnings []schemas.Problem, err error) string {
	var lines []string
	for _, w := range warnings {
		lines = append(lines, "warning: "+w.String())
	}
	if p, ok := errors.AsType[*schemas.Problems](err); ok {
		lines = append(lines, p.Error())
	} else if err != nil {
		lines = append(lines, "not a *Problems: "+err.Error())
	}
	if len(lines) == 0 {
		return "fine"
	}
	return strings.Join(lines, "\n")
}
