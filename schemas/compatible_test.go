package schemas_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"varve/schemas"
)

// before is what the contracts of these tests follow.
const before = `columns: {id: int, name: string, size: int, price: "decimal(10,2)", at: "struct<x:int>", seq: bigint, day: date}
keys: [id]
sequence_by: seq
drop apply_as_deletes
except_column_list: [seq, day]
targets:
  - {table: silver.a}
  - {table: silver.b, stored_as_scd_type: 2, history: {by: day}}
`

func TestContractsThatTablesCanFollow(t *testing.T) {
	t.Parallel()
	old := parse(t, before)
	for name, edits := range map[string]string{
		"the same":                      "",
		"a new column":                  "columns: {id: int, name: string, size: int, price: \"decimal(10,2)\", at: \"struct<x:int>\", seq: bigint, day: date, new: string}\n",
		"wider types":                   "columns: {id: int, name: string, size: bigint, price: \"decimal(12,3)\", at: \"struct<x:int>\", seq: bigint, day: date}\n",
		"whole numbers become decimals": "columns: {id: int, name: string, size: \"decimal(10,0)\", price: \"decimal(10,2)\", at: \"struct<x:int>\", seq: bigint, day: date}\n",
		"another order of columns":      "columns: {day: date, seq: bigint, id: int, name: string, size: int, price: \"decimal(10,2)\", at: \"struct<x:int>\"}\n",
		"a target more and one less":    "targets:\n  - {table: silver.a}\n  - {table: silver.c, stored_as_scd_type: 2}\n",
		"all targets new":               "keys: [name]\ntargets:\n  - {table: silver.c}\n",
		"the tracked set said in words": "targets:\n  - {table: silver.b, stored_as_scd_type: 2, history: {by: day}, track_history_column_list: [name, size, price, at]}\n",
		"another delete condition":      "apply_as_deletes: name = 'x'\n",
		"another sequence of that type": "columns: {id: int, name: string, size: int, price: \"decimal(10,2)\", at: \"struct<x:int>\", seq: bigint, day: date, lsn: bigint}\nsequence_by: lsn\nexcept_column_list: [seq, day, lsn]\n",
	} {
		if err := schemas.Compatible(old, parse(t, change(before, edits))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContractsThatTablesCannotFollow(t *testing.T) {
	t.Parallel()
	old := parse(t, before)
	for name, c := range map[string]struct{ edits, want string }{
		"another key":          {"keys: [name]\n", "keys: were [id]"},
		"a part more":          {"keys: [id, name]\n", "keys: were [id]"},
		"a key's type":         {"columns: {id: bigint, name: string, size: int, price: \"decimal(10,2)\", at: \"struct<x:int>\", seq: bigint, day: date}\n", "columns.id: the key's type was int"},
		"the sequence's type":  {"sequence_by: [day, seq]\n", "sequence_by: the sequence's type was bigint"},
		"arrival":              {"sequence_by: _arrival\n", "sequence_by: the sequence's type was bigint"},
		"the SCD type":         {"targets: [{table: silver.a, stored_as_scd_type: 2}]\n", "silver.a was made as type 1"},
		"logical deletes":      {"targets: [{table: silver.a, deletes: logical}]\n", "silver.a was made with deletes: physical"},
		"narrower":             {"columns: {id: int, name: string, size: smallint, price: \"decimal(10,2)\", at: \"struct<x:int>\", seq: bigint, day: date}\n", "columns.size: the type smallint does not hold every int"},
		"fewer digits":         {"columns: {id: int, name: string, size: int, price: \"decimal(10,3)\", at: \"struct<x:int>\", seq: bigint, day: date}\n", "columns.price: the type decimal(10,3)"},
		"a field more":         {"columns: {id: int, name: string, size: int, price: \"decimal(10,2)\", at: \"struct<x:int,y:int>\", seq: bigint, day: date}\n", "columns.at: the type"},
		"a field less":         {"columns: {id: int, name: string, size: int, price: \"decimal(10,2)\", at: \"struct<y:int>\", seq: bigint, day: date}\n", "columns.at: the type"},
		"text and number":      {"columns: {id: int, name: int, size: int, price: \"decimal(10,2)\", at: \"struct<x:int>\", seq: bigint, day: date}\n", "columns.name: the type int"},
		"a column gone":        {"columns: {id: int, size: int, price: \"decimal(10,2)\", at: \"struct<x:int>\", seq: bigint, day: date}\n", `the column "name" is gone`},
		"a column not kept":    {"except_column_list: [seq, day, name]\n", "columns.name: is not kept any more"},
		"the tracked set":      {"targets:\n  - {table: silver.b, stored_as_scd_type: 2, history: {by: day}, track_history_column_list: [name]}\n", "opens a version were [at, name, price, size] and cannot become [name]"},
		"the bounds":           {"targets:\n  - {table: silver.b, stored_as_scd_type: 2}\n", `silver.b was made with "day"`},
		"the interval's names": {"targets:\n  - {table: silver.b, stored_as_scd_type: 2, history: {by: day, start: s, end: e}}\n", `silver.b was made with "__START_AT"`},
		"another dataset":      {"dataset: other\n", `"other" cannot follow "customer"`},
	} {
		err := schemas.Compatible(old, parse(t, change(before, c.edits)))
		if _, ok := errors.AsType[*schemas.Problems](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "restating a table comes with a later version") && name != "another dataset" {
			t.Errorf("%s: names no way out: %v", name, err)
		}
	}
}

func TestEveryIncompatibilityIsNamedAtOnceWithItsLine(t *testing.T) {
	t.Parallel()
	err := schemas.Compatible(parse(t, before), parse(t, change(before, "sequence_by: day\nexcept_column_list: [seq, day, name, size]\ntargets: [{table: silver.a, deletes: logical}]\n")))
	p, ok := errors.AsType[*schemas.Problems](err)
	if !ok || len(p.List) != 4 {
		t.Fatalf("got %v", err)
	}
	for _, problem := range p.List {
		if problem.Line == 0 {
			t.Errorf("%s has no line", problem)
		}
	}
}

func TestDiffTellsWhatChanged(t *testing.T) {
	t.Parallel()
	after := change(before, `columns: {id: int, name: {type: string, required: true}, size: bigint, at: "struct<x:int>", seq: bigint, day: date, new: string}
except_column_list: [seq, day, new]
description: New.
targets:
  - {table: silver.a, max_delete_share: 0.05}
  - {table: silver.c}
schedule: {cron: "30 3 * * *"}
`)
	changes := schemas.Diff(parse(t, before), parse(t, after))
	got := make([]string, 0, len(changes))
	for _, c := range changes {
		got = append(got, c.String())
	}
	want := `~ columns in order: [id, name, size, price, at, seq, day] → [id, name, size, at, seq, day, new]
~ columns.name: string → string, required
+ columns.new: string
- columns.price: decimal(10,2)
~ columns.size: int → bigint
+ description: New.
~ except_column_list: [seq, day] → [seq, day, new]
+ schedule.cron: 30 3 * * *
~ targets.silver.a.max_delete_share: 0.1 → 0.05
- targets.silver.b.deletes: physical
- targets.silver.b.history.by: day
- targets.silver.b.history.current: is_current
- targets.silver.b.history.end: __END_AT
- targets.silver.b.history.max_ahead: 1y
- targets.silver.b.history.start: __START_AT
- targets.silver.b.max_delete_share: 0.1
- targets.silver.b.stored_as_scd_type: 2
- targets.silver.b.table: silver.b
+ targets.silver.c.deletes: physical
+ targets.silver.c.max_delete_share: 0.1
+ targets.silver.c.stored_as_scd_type: 1
+ targets.silver.c.table: silver.c`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s", text)
	}
	if same := schemas.Diff(parse(t, before), parse(t, before)); len(same) != 0 {
		t.Error(fmt.Sprint("equal contracts differ: ", same))
	}
}
