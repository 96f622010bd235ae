package schemas_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"varve/internal/value"
	"varve/schemas"
)

func TestDraftIsAContractWithItsReasons(t *testing.T) {
	t.Parallel()
	text := string(schemas.Draft(schemas.DraftSpec{
		Dataset: "orders", Path: "orders/{day}/*.csv", Format: schemas.FormatCSV,
		CSV: schemas.Dialect{Delimiter: "\t", Quote: `"`, Header: true, NullText: "NULL"},
		Columns: []schemas.DraftColumn{
			{Name: "order_id", Type: value.Type{Kind: value.Long}, Required: true, Evidence: "20 of 20 values are whole numbers"},
			{Name: "line", Type: value.Type{Kind: value.Integer}},
			{Name: "amount", Type: value.Type{Kind: value.DecimalKind, Precision: 10, Scale: 2}, Evidence: "at most\n2 digits"},
			{Name: "op", Type: value.Type{Kind: value.StringKind}},
			{Name: "yes", Type: value.Type{Kind: value.Void}, Evidence: "every value is null"},
			{Name: "null", Type: value.Type{Kind: value.StringKind}},
			{Name: "_row", Type: value.Type{Kind: value.Long}},
			{Name: "unit price", Type: value.Type{Kind: value.Double}},
			{Name: "changed_at", Type: value.Type{Kind: value.TimestampKind}},
		},
		Keys: []schemas.KeyCandidate{
			{Columns: []string{"order_id", "line"}, Evidence: "unique and never null in 20 records"},
			{Columns: []string{"changed_at"}, Evidence: "unique, but a time"},
		},
		Sequences: []schemas.Candidate{{Value: "changed_at", Evidence: "rises with the rows of each file"}},
		Deletes:   []schemas.Candidate{{Value: "op = 'D'", Evidence: "op holds I, U, D"}, {Value: "yes IS NOT NULL"}},
		Except:    []string{"op"},
	}))
	c, err := schemas.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got := names(c.Columns); got != "order_id line amount op yes null changed_at" || c.SequenceBy != "changed_at" || c.ApplyAsDeletes != "op = 'D'" ||
		strings.Join(c.Keys, " ") != "order_id line" || c.Source.CSV.Delimiter != "\t" || c.Source.CSV.NullText != "NULL" || len(c.Targets) != 2 {
		t.Errorf("got %+v", c)
	}
	for _, want := range []string{
		"20 of 20 values are whole numbers", "at most 2 digits", "# keys: [changed_at]  # unique, but a time", "# apply_as_deletes: ", `"unit price" is left out`, `"_row" is left out`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestDraftWithoutAKeyHasOneProblem(t *testing.T) {
	t.Parallel()
	text := schemas.Draft(schemas.DraftSpec{
		Dataset: "log", Path: "log/{day}/*.json", Format: schemas.FormatJSON,
		Columns: []schemas.DraftColumn{{Name: "message", Type: value.Type{Kind: value.StringKind}}},
	})
	_, err := schemas.Parse(text)
	p, ok := errors.AsType[*schemas.Problems](err)
	if !ok || len(p.List) != 1 || p.List[0].Field != "keys" {
		t.Errorf("got %v\n%s", err, text)
	}
}

func TestEveryDraftWithAKeyParses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		kinds := []value.Kind{value.Void, value.Boolean, value.Long, value.Double, value.StringKind, value.DateKind, value.TimestampKind}
		d := schemas.DraftSpec{
			Dataset: rapid.StringMatching(`[a-z][a-z0-9_]{0,8}`).Draw(r, "dataset"), Path: "in/{day}/*.json", Format: schemas.FormatJSON,
			Columns: []schemas.DraftColumn{{Name: "id", Type: value.Type{Kind: value.Long}, Required: true}},
			Keys:    []schemas.KeyCandidate{{Columns: []string{"id"}, Evidence: rapid.String().Draw(r, "evidence")}},
		}
		seen := map[string]bool{"id": true, "is_current": true, "__start_at": true, "__end_at": true}
		for _, name := range rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z_]{1,5}|[0-9]{1,3}|~|-|null|true|no`)), 0, 8).Draw(r, "names") {
			if seen[strings.ToLower(name)] {
				continue
			}
			seen[strings.ToLower(name)] = true
			d.Columns = append(d.Columns, schemas.DraftColumn{
				Name: name, Type: value.Type{Kind: rapid.SampledFrom(kinds).Draw(r, "kind")}, Evidence: rapid.String().Draw(r, "why"),
			})
		}
		text := schemas.Draft(d)
		if _, err := schemas.Parse(text); err != nil {
			r.Fatalf("%v\n%s", err, text)
		}
	})
}
