package schemas

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"varve/internal/value"
)

// DraftSpec is what was found in a dataset's files, for a contract to start from.
type DraftSpec struct {
	Dataset string
	// Path and Format are the source's.
	Path, Format string
	// CSV is the dialect. Default that of a source that says nothing.
	CSV     Dialect
	Columns []DraftColumn
	// Keys, Sequences and Deletes are candidates, the best first: it is chosen, the others become comments.
	Keys      []KeyCandidate
	Sequences []Candidate
	// Deletes are SQL conditions.
	Deletes []Candidate
	// Except names columns that targets should not have.
	Except []string
}

// DraftColumn is a column that was found.
type DraftColumn struct {
	Name     string
	Type     value.Type
	Required bool
	// Evidence says in words why.
	Evidence string
}

// KeyCandidate is a set of columns that may be the key.
type KeyCandidate struct {
	Columns  []string
	Evidence string
}

// Candidate is a choice that could be made.
type Candidate struct{ Value, Evidence string }

// Draft renders a contract in YAML, each choice with its evidence as a comment. With a key and only columns that tables
// can have it is one that Parse takes; what a person must add is said in comments.
func Draft(d DraftSpec) []byte {
	w := &draft{}
	w.line("# A contract to start from: read every choice, its reason stands beside it.")
	w.line("dataset: " + quote(d.Dataset))
	w.line("source:")
	w.line("  path: " + quote(d.Path))
	w.line("  format: " + quote(d.Format))
	w.line("  delivery: changes  # changes: records that changed, deletes among them; incremental: never a delete")
	w.dialect(d)
	w.columns(d.Columns)
	w.keys(d.Keys)
	w.choice("sequence_by", d.Sequences, Candidate{Value: Arrival, Evidence: "no column orders the changes of a key, so the day, the file and the row do"}, quote)
	if len(d.Deletes) == 0 {
		w.line("# apply_as_deletes: operation = 'DELETE'  # no column looks like it says what is deleted")
	} else {
		w.choice("apply_as_deletes", d.Deletes, Candidate{}, quote)
	}
	if len(d.Except) > 0 {
		w.line("except_column_list: " + quoteList(d.Except) + "  # these steer the changes and describe nothing")
	}
	w.line("absent: keep  # a column that a record does not mention keeps its value")
	w.line("targets:")
	w.line("  - table: silver." + d.Dataset + "_current")
	w.line("    stored_as_scd_type: 1  # the current state")
	w.line("  - table: silver." + d.Dataset + "_history")
	w.line("    stored_as_scd_type: 2  # every version, with its interval")
	if len(d.Keys) > 0 && zorderable(d) {
		w.line("layout: {zorder: " + quoteList(d.Keys[0].Columns[:1]) + "}")
	}
	w.line("# schedule: {cron: \"30 3 * * *\", time_zone: UTC, day: previous, catch_up: 7d}")
	return []byte(w.b.String())
}

type draft struct{ b strings.Builder }

func (w *draft) line(text string) { w.b.WriteString(text + "\n") }

// reason gives evidence as a comment.
func reason(evidence string) string {
	words := strings.Join(strings.FieldsFunc(evidence, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }), " ")
	if words == "" {
		return ""
	}
	return "  # " + words
}

func (w *draft) dialect(d DraftSpec) {
	if d.Format != FormatCSV || d.CSV == (Dialect{}) || d.CSV == defaultDialect() {
		return
	}
	w.line("  csv:")
	w.line("    delimiter: " + strconv.Quote(d.CSV.Delimiter))
	w.line("    quote: " + strconv.Quote(d.CSV.Quote))
	w.line("    header: " + strconv.FormatBool(d.CSV.Header))
	if d.CSV.NullText != "" {
		w.line("    null_text: " + strconv.Quote(d.CSV.NullText))
	}
}

func (w *draft) columns(columns []DraftColumn) {
	w.line("columns:")
	for _, col := range columns {
		if fault := columnNameFault(col.Name); fault != "" || isReservedColumn(col.Name) {
			if fault == "" {
				fault = "varve uses the name itself"
			}
			w.line("  # " + strconv.Quote(col.Name) + " is left out: " + fault)
			continue
		}
		t, note := col.Type, col.Evidence
		if holds(t, value.Void, value.VariantKind) {
			t = value.Type{Kind: value.StringKind}
		}
		text := "  " + quote(col.Name) + ": {type: " + quote(t.String())
		if col.Required {
			text += ", required: true"
		}
		w.line(text + "}" + reason(note))
	}
}

func (w *draft) keys(keys []KeyCandidate) {
	if len(keys) == 0 {
		w.line("keys: []  # TO DO: no column or pair of columns is unique and never null; name the columns that name one thing")
		return
	}
	w.line("keys: " + quoteList(keys[0].Columns) + reason(keys[0].Evidence))
	for _, k := range keys[1:] {
		w.line("# keys: " + quoteList(k.Columns) + reason(k.Evidence))
	}
}

// choice writes the first candidate, and the others as comments; without candidates the one of last resort.
func (w *draft) choice(field string, found []Candidate, otherwise Candidate, text func(string) string) {
	if len(found) == 0 {
		found = []Candidate{otherwise}
	}
	for i, c := range found {
		mark := ""
		if i > 0 {
			mark = "# "
		}
		w.line(mark + field + ": " + text(c.Value) + reason(c.Evidence))
	}
}

var plainWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// quote gives text as YAML reads it back, plain where it can be.
func quote(text string) string {
	if plainWord.MatchString(text) {
		var n yaml.Node
		if yaml.Unmarshal([]byte(text), &n) == nil && len(n.Content) == 1 && n.Content[0].ShortTag() == "!!str" {
			return text
		}
	}
	return strconv.Quote(text)
}

func quoteList(names []string) string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, quote(n))
	}
	return fmt.Sprintf("[%s]", strings.Join(out, ", "))
}

// zorderable says whether files can be ordered by the first column of the key.
func zorderable(d DraftSpec) bool {
	return slices.ContainsFunc(d.Columns, func(c DraftColumn) bool {
		return c.Name == d.Keys[0].Columns[0] && !holds(c.Type, value.MapKind, value.ArrayKind, value.StructKind, value.BinaryKind, value.Boolean)
	})
}
