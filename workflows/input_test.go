package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"varve/activities"
	"varve/workflows"
)

type object = map[string]any

func TestBadInputIsNamedBeforeAnyActivity(t *testing.T) {
	t.Parallel()
	good := object{"dataset": "customer", "day": "2026-09-14"}
	for name, c := range map[string]struct {
		workflow string
		args     []any
		words    []string
	}{
		"misspelt field": {workflows.Replay, []any{object{"dataset": "customer", "dya": "2026-09-14"}}, []string{
			`input of Replay: unknown field "dya" (did you mean "day"?); field "day" is missing`,
			`it looks like {"dataset": "customer", "day": "2026-09-14"}`,
		}},
		"other case":      {workflows.Day, []any{object{"dataset": "customer", "Day": "2026-09-14"}}, []string{`unknown field "Day" (did you mean "day"?)`}},
		"far off":         {workflows.Maintain, []any{object{"dataset": "customer", "everything": true}}, []string{`unknown field "everything" (known: dataset)`}},
		"no argument":     {workflows.Backfill, nil, []string{"no argument; give one JSON object", `"from": "2026-09-01", "to": "2026-09-14"`}},
		"null":            {workflows.Replay, []any{nil}, []string{"no argument"}},
		"two arguments":   {workflows.Replay, []any{good, good}, []string{"more than one argument"}},
		"text arguments":  {workflows.Replay, []any{"customer", "2026-09-14"}, []string{"more than one argument"}},
		"text":            {workflows.Replay, []any{"customer"}, []string{"the argument is not a JSON object"}},
		"list":            {workflows.Replay, []any{[]any{good}}, []string{"the argument is not a JSON object"}},
		"number as day":   {workflows.Replay, []any{object{"dataset": "customer", "day": 20260914}}, []string{`field "day" is not a string`}},
		"null day":        {workflows.Replay, []any{object{"dataset": "customer", "day": nil}}, []string{`field "day" is null`}},
		"empty dataset":   {workflows.Replay, []any{object{"dataset": "", "day": "2026-09-14"}}, []string{`field "dataset" is empty`}},
		"no such day":     {workflows.Replay, []any{object{"dataset": "customer", "day": "2026-02-30"}}, []string{`field "day" is not a day`}},
		"contract text":   {workflows.Day, []any{object{"dataset": "customer", "day": "2026-09-14", "contract": "2"}}, []string{`field "contract" is not a whole number`}},
		"range reversed":  {workflows.Backfill, []any{object{"dataset": "customer", "from": "2026-09-14", "to": "2026-09-13"}}, []string{`field "from" is after field "to"`}},
		"every problem":   {workflows.Backfill, []any{object{"datset": "customer", "from": 1}}, []string{`"datset"`, `field "from" is not a string`, `field "to" is missing`}},
		"day of schedule": {workflows.Daily, []any{object{"dataset": "customer", "time_zone": "UTC", "day": "2026-09-14"}}, []string{`field "day" is neither "previous" nor "same"`}},
		"path as dataset": {workflows.Maintain, []any{object{"dataset": "../customer"}}, []string{`not the name of a dataset`}},
		"lane":            {workflows.Lane, []any{object{"dataset": "customer", "queue": 1}}, []string{`field "queue" is not`}},
		"bytes":           {workflows.Replay, []any{[]byte(`{"dataset":"customer","day":"2026-09-14"}`)}, []string{"the argument is not a JSON object"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{}
			env := environment(t, s)
			env.ExecuteWorkflow(c.workflow, c.args...)
			require.True(t, env.IsWorkflowCompleted())
			for _, words := range c.words {
				requireFailure(t, env.GetWorkflowError(), activities.InvalidInput, words)
			}
			require.Empty(t, s.calls)
			require.Empty(t, s.asked)
		})
	}
}

func TestUnknownWorkflowIsAnsweredWithTheKnownOnes(t *testing.T) {
	t.Parallel()
	env := environment(t, &script{})
	env.ExecuteWorkflow("Replya", object{})
	requireFailure(t, env.GetWorkflowError(), activities.InvalidInput,
		`there is no workflow "Replya" (did you mean "Replay"?); the workflows are Backfill, Daily, Day, Maintain, Replay`)
}
