package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"varve/activities"
	"varve/workflows"
)

func askedDays(s *script) []string {
	var out []string //nolint:prealloc // nothing asked for is nil, as nothing pending is
	for _, a := range s.asked {
		out = append(out, a.Day)
	}
	return out
}

func TestDailyRepairsMissingDaysBeforeItsOwn(t *testing.T) {
	t.Parallel()
	s := &script{due: activities.Due{Day: "2026-09-14", Scheduled: true}, pending: []string{"2026-09-11", "2026-09-13"}}
	env := environment(t, s)
	env.ExecuteWorkflow(workflows.Daily, workflows.DailyInput{Dataset: "customer", TimeZone: "Europe/Berlin", Day: "previous"})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"2026-09-11", "2026-09-13", "2026-09-14"}, askedDays(s))
	require.Contains(t, s.calls, "Pending through 2026-09-14")
}

func TestTriggeredDailyDoesOnlyWhatIsDueAndNotDone(t *testing.T) {
	t.Parallel()
	for name, pending := range map[string][]string{"all is done": nil, "one is not": {"2026-09-14"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{due: activities.Due{Day: "2026-09-14"}, pending: pending}
			env := environment(t, s)
			env.ExecuteWorkflow(workflows.Daily, workflows.DailyInput{Dataset: "customer", TimeZone: "Europe/Berlin", Day: "previous"})
			require.NoError(t, env.GetWorkflowError())
			require.Equal(t, pending, askedDays(s))
		})
	}
}

func TestDailyFailsWithTheTypeOfTheDayThatFailedAndDoesTheOthers(t *testing.T) {
	t.Parallel()
	s := &script{
		due: activities.Due{Day: "2026-09-14", Scheduled: true}, pending: []string{"2026-09-13"},
		fails: map[string]error{"day 2026-09-13": final(activities.SourceMissing, "no folder")},
	}
	env := environment(t, s)
	env.ExecuteWorkflow(workflows.Daily, workflows.DailyInput{Dataset: "customer", TimeZone: "UTC", Day: "same"})
	requireFailure(t, env.GetWorkflowError(), activities.SourceMissing, "1 of 2 days of customer did not succeed: 2026-09-13: SourceMissing: no folder")
	require.Equal(t, []string{"2026-09-13", "2026-09-14"}, askedDays(s))
}

func TestReplayReopensThroughTheLaneAndWaits(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := environment(t, s)
	env.ExecuteWorkflow(workflows.Replay, workflows.ReplayInput{Dataset: "customer", Day: "2026-09-14", Contract: 2})
	require.NoError(t, env.GetWorkflowError())
	require.True(t, s.asked[0].Reopen)
	require.Equal(t, int64(2), s.asked[0].Contract)
	require.NotEmpty(t, s.asked[0].Waiter)
	var out workflows.DayResult
	require.NoError(t, env.GetWorkflowResult(&out))
	require.Equal(t, "2026-09-14", out.Day)
}

func TestDayStartedByHandGoesThroughTheLane(t *testing.T) {
	t.Parallel()
	s := &script{fails: map[string]error{"day 2026-09-14": final(activities.ApprovalNeeded, "too many deletes")}}
	env := environment(t, s)
	env.ExecuteWorkflow(workflows.Day, workflows.DayInput{Dataset: "customer", Day: "2026-09-14"})
	requireFailure(t, env.GetWorkflowError(), activities.ApprovalNeeded, "too many deletes")
	require.Len(t, s.asked, 1)
	require.Empty(t, s.calls)
}

func TestLostRequestIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := &script{lost: 1}
	env := environment(t, s)
	env.ExecuteWorkflow(workflows.Replay, workflows.ReplayInput{Dataset: "customer", Day: "2026-09-14"})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"2026-09-14", "2026-09-14"}, askedDays(s))
}

func TestBackfillDoesDaysInOrderOverTheEndOfAMonth(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := environment(t, s)
	env.ExecuteWorkflow(workflows.Backfill, workflows.BackfillInput{Dataset: "customer", From: "2024-02-27", To: "2024-03-02"})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"}, askedDays(s))
	var out workflows.DaysResult
	require.NoError(t, env.GetWorkflowResult(&out))
	require.Equal(t, workflows.DaysResult{Dataset: "customer", Succeeded: 5, First: "2024-02-27", Last: "2024-03-02"}, out)
}

func TestBackfillDrainsThenContinuesAsNewWithTheRest(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := environment(t, s)
	env.ExecuteWorkflow(workflows.Backfill, workflows.BackfillInput{Dataset: "customer", From: "2024-01-01", To: "2024-03-31", Contract: 4})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	require.Len(t, s.asked, 50)
	var in workflows.BackfillInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &in))
	require.Equal(t, workflows.BackfillInput{
		Dataset: "customer", From: "2024-02-20", To: "2024-03-31", Contract: 4,
		So: &workflows.DaysResult{Dataset: "customer", Succeeded: 50, First: "2024-01-01", Last: "2024-02-19"},
	}, in)
	rest := &script{}
	env = environment(t, rest)
	env.ExecuteWorkflow(workflows.Backfill, in)
	require.NoError(t, env.GetWorkflowError())
	var out workflows.DaysResult
	require.NoError(t, env.GetWorkflowResult(&out))
	require.Equal(t, workflows.DaysResult{Dataset: "customer", Succeeded: 91, First: "2024-01-01", Last: "2024-03-31"}, out)
}

func TestBackfillGoesOnAfterADayOfBadDataAndStopsWhereNoDayCanSucceed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind  string
		asked []string
		words string
	}{
		"bad data": {activities.SourceMissing, []string{"2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"}, "1 of 4 days"},
		"bad contract": {
			activities.ContractInvalid,
			[]string{"2024-01-01", "2024-01-02", "2024-01-03"},
			"1 of 3 days of customer did not succeed, the days after 2024-01-03 were not begun",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{fails: map[string]error{"day 2024-01-02": final(c.kind, "so it is")}}
			env := environment(t, s)
			env.ExecuteWorkflow(workflows.Backfill, workflows.BackfillInput{Dataset: "customer", From: "2024-01-01", To: "2024-01-04"})
			requireFailure(t, env.GetWorkflowError(), c.kind, c.words)
			require.Equal(t, c.asked, askedDays(s))
		})
	}
}

func TestMaintainKeepsTheTypeOfItsFailure(t *testing.T) {
	t.Parallel()
	s := &script{fails: map[string]error{"Maintain": final(activities.PermissionDenied, "may not")}}
	env := environment(t, s)
	env.ExecuteWorkflow(workflows.Maintain, workflows.MaintainInput{Dataset: "customer"})
	requireFailure(t, env.GetWorkflowError(), activities.PermissionDenied, "may not")
}
