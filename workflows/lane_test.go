package workflows_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"varve/activities"
	"varve/internal/stage"
	"varve/workflows"
)

// endedOf reads what a mocked signal carried.
func endedOf(t *testing.T, arg any) workflows.DayEnded {
	t.Helper()
	if out, ok := arg.(workflows.DayEnded); ok {
		return out
	}
	var out workflows.DayEnded
	payload, err := converter.GetDefaultDataConverter().ToPayload(arg)
	require.NoError(t, err)
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &out))
	return out
}

func inLaneFor(t *testing.T, env *testsuite.TestWorkflowEnvironment, waiter string, ask activities.Ask) {
	t.Helper()
	ask.Dataset = "customer"
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: activities.LaneID("customer"), TaskQueue: "varve"})
	env.ExecuteWorkflow(workflows.Lane, activities.LaneInput{
		Dataset: "customer", Queue: []activities.Waiting{{Ask: ask, Waiters: []string{waiter}}},
	})
	require.True(t, env.IsWorkflowCompleted())
}

// ears hear the signals that a lane on paper sends, each as "who key status type".
type ears struct {
	mu    sync.Mutex
	heard []string
}

// listen hears everyone's signals; the workflow called gone is not there any more.
func (e *ears) listen(t *testing.T, env *testsuite.TestWorkflowEnvironment) {
	t.Helper()
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", activities.DayEndedSignal, mock.Anything).
		Return(func(_, id, _, _ string, arg any) error {
			how := endedOf(t, arg)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.heard = append(e.heard, strings.TrimSpace(strings.Join([]string{id, how.Key, how.Status, how.Type}, " ")))
			if id == "gone" {
				return temporal.NewApplicationError("no such workflow", "NotFound")
			}
			return nil
		})
}

// days replaces the Day of a lane with one that takes an hour, and tells which days ran and how many at once at most.
type days struct {
	ran    []string
	now    int
	atOnce int
}

func (d *days) replace(env *testsuite.TestWorkflowEnvironment) {
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in workflows.DayInput) (workflows.DayResult, error) {
		d.ran = append(d.ran, in.Day)
		d.now++
		d.atOnce = max(d.atOnce, d.now)
		err := workflow.Sleep(ctx, time.Hour)
		d.now--
		return workflows.DayResult{Day: in.Day}, err
	}, workflow.RegisterOptions{Name: workflows.Day, DisableAlreadyRegisteredCheck: true})
}

// enqueue asks a lane on paper for a day, after a while.
func enqueue(t *testing.T, env *testsuite.TestWorkflowEnvironment, after time.Duration, args ...any) *activities.Ticket {
	t.Helper()
	var out activities.Ticket
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(activities.EnqueueUpdate, "", &testsuite.TestUpdateCallback{
			OnReject: func(err error) { t.Errorf("rejected: %v", err) },
			OnAccept: func() {},
			OnComplete: func(got any, err error) {
				if err != nil {
					t.Errorf("enqueue: %v", err)
				}
				out, _ = got.(activities.Ticket)
			},
		}, args...)
	}, after)
	return &out
}

func lane(env *testsuite.TestWorkflowEnvironment) {
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: activities.LaneID("customer"), TaskQueue: "varve"})
	env.ExecuteWorkflow(workflows.Lane, activities.LaneInput{Dataset: "customer"})
}

func TestLaneRunsOneDayAtATimeInTheOrderOfRequests(t *testing.T) {
	t.Parallel()
	env := environment(t, &script{})
	var d days
	d.replace(env)
	for i, day := range []string{"2026-09-03", "2026-09-01", "2026-09-02"} {
		enqueue(t, env, time.Duration(i+1)*time.Minute/10, activities.Ask{Dataset: "customer", Day: day})
	}
	lane(env)
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"2026-09-03", "2026-09-01", "2026-09-02"}, d.ran)
	require.Equal(t, 1, d.atOnce)
}

func TestSameRequestWhileItWaitsOrRunsIsOneAndAfterwardsNew(t *testing.T) {
	t.Parallel()
	env := environment(t, &script{})
	var d days
	d.replace(env)
	first, second := activities.Ask{Dataset: "customer", Day: "2026-09-01"}, activities.Ask{Dataset: "customer", Day: "2026-09-02"}
	enqueue(t, env, time.Second, first)
	running := enqueue(t, env, 2*time.Second, first)
	enqueue(t, env, 3*time.Second, second)
	waiting := enqueue(t, env, 4*time.Second, second)
	again := enqueue(t, env, 61*time.Minute, first)
	lane(env)
	require.Equal(t, []string{"2026-09-01", "2026-09-02", "2026-09-01"}, d.ran)
	require.Equal(t, activities.Ticket{Joined: true}, *running)
	require.Equal(t, activities.Ticket{Ahead: 1, Joined: true}, *waiting)
	require.Equal(t, activities.Ticket{Ahead: 1}, *again)
}

func TestReplayIsAnotherRequestThanTheDayThatRuns(t *testing.T) {
	t.Parallel()
	env := environment(t, &script{})
	var d days
	d.replace(env)
	enqueue(t, env, time.Second, activities.Ask{Dataset: "customer", Day: "2026-09-01"})
	enqueue(t, env, 2*time.Second, activities.Ask{Dataset: "customer", Day: "2026-09-01", Reopen: true})
	lane(env)
	require.Equal(t, []string{"2026-09-01", "2026-09-01"}, d.ran)
	require.Equal(t, 1, d.atOnce)
}

func TestEveryoneWhoWaitsIsToldOnce(t *testing.T) {
	t.Parallel()
	env := environment(t, &script{})
	var d days
	d.replace(env)
	var e ears
	e.listen(t, env)
	for i, waiter := range []string{"one", "two", "one", "gone", ""} {
		enqueue(t, env, time.Duration(i+1)*time.Second, activities.Ask{Dataset: "customer", Day: "2026-09-01", Waiter: waiter})
	}
	lane(env)
	require.NoError(t, env.GetWorkflowError())
	require.ElementsMatch(t, []string{"one 2026-09-01 succeeded", "two 2026-09-01 succeeded", "gone 2026-09-01 succeeded"}, e.heard)
}

func TestLaneContinuesAsNewBetweenDaysWithItsQueue(t *testing.T) {
	t.Parallel()
	env := environment(t, &script{})
	var d days
	d.replace(env)
	env.SetContinueAsNewSuggested(true)
	enqueue(t, env, time.Second, activities.Ask{Dataset: "customer", Day: "2026-09-01"})
	enqueue(t, env, 2*time.Second, activities.Ask{Dataset: "customer", Day: "2026-09-02", Waiter: "one"})
	lane(env)
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	require.Equal(t, []string{"2026-09-01"}, d.ran)
	var in activities.LaneInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &in))
	require.Equal(t, activities.LaneInput{Dataset: "customer", Queue: []activities.Waiting{
		{Ask: activities.Ask{Dataset: "customer", Day: "2026-09-02"}, Waiters: []string{"one"}},
	}}, in)
}

func TestEndedLaneTellsThoseWhoWait(t *testing.T) {
	t.Parallel()
	env := environment(t, &script{})
	var d days
	d.replace(env)
	var e ears
	e.listen(t, env)
	enqueue(t, env, time.Second, activities.Ask{Dataset: "customer", Day: "2026-09-01", Waiter: "one"})
	enqueue(t, env, 2*time.Second, activities.Ask{Dataset: "customer", Day: "2026-09-02", Waiter: "two"})
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	statuses := statusesOf(env)
	lane(env)
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()))
	require.Equal(t, []string{"one 2026-09-01 failed Canceled", "two 2026-09-02 failed Canceled"}, e.heard)
	require.Equal(t, []string{"running", stage.Failed}, *statuses)
}

// statusesOf notes what a workflow on paper says of its status, one after the other.
func statusesOf(env *testsuite.TestWorkflowEnvironment) *[]string {
	var out []string
	env.OnUpsertTypedSearchAttributes(mock.MatchedBy(func(set temporal.SearchAttributes) bool {
		if status, ok := set.GetKeyword(temporal.NewSearchAttributeKeyKeyword(workflows.StatusAttribute)); ok {
			out = append(out, status)
		}
		return true
	})).Return(nil)
	return &out
}

func TestEndedIdleLaneHasItsStatusToo(t *testing.T) {
	t.Parallel()
	env := environment(t, &script{})
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Second)
	statuses := statusesOf(env)
	lane(env)
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()))
	require.Equal(t, []string{"running", stage.Failed}, *statuses)
}

func TestFullLaneTakesWhatItHasAlready(t *testing.T) {
	t.Parallel()
	env := environment(t, &script{})
	var d days
	d.replace(env)
	in := activities.LaneInput{Dataset: "customer"}
	day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 2001 { // one runs, the others fill the queue
		in.Queue = append(in.Queue, activities.Waiting{Ask: activities.Ask{Dataset: "customer", Day: day.AddDate(0, 0, i).Format(time.DateOnly)}})
	}
	running := enqueue(t, env, time.Second, in.Queue[0].Ask)
	waiting := enqueue(t, env, time.Second, in.Queue[1000].Ask)
	var rejected error
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(activities.EnqueueUpdate, "", &testsuite.TestUpdateCallback{
			OnReject:   func(err error) { rejected = err },
			OnAccept:   func() { t.Error("accepted") },
			OnComplete: func(any, error) {},
		}, activities.Ask{Dataset: "customer", Day: "2026-09-14"})
	}, time.Second)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: activities.LaneID("customer"), TaskQueue: "varve"})
	env.ExecuteWorkflow(workflows.Lane, in)
	require.Equal(t, activities.Ticket{Joined: true}, *running)
	require.Equal(t, activities.Ticket{Ahead: 1000, Joined: true}, *waiting)
	requireFailure(t, rejected, activities.Refused, "2000 days of customer wait already")
}

func TestLaneRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []any
		words string
	}{
		"other dataset": {[]any{activities.Ask{Dataset: "product", Day: "2026-09-01"}}, `this lane is of dataset "customer"`},
		"no day":        {[]any{map[string]any{"dataset": "customer"}}, `field "day" is missing`},
		"misspelt":      {[]any{map[string]any{"dataset": "customer", "dya": "2026-09-01"}}, `did you mean "day"?`},
		"not a day":     {[]any{activities.Ask{Dataset: "customer", Day: "yesterday"}}, "is not a day"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := environment(t, &script{})
			var rejected error
			env.RegisterDelayedCallback(func() {
				env.UpdateWorkflow(activities.EnqueueUpdate, "", &testsuite.TestUpdateCallback{
					OnReject:   func(err error) { rejected = err },
					OnAccept:   func() { t.Error("accepted") },
					OnComplete: func(any, error) {},
				}, c.args...)
			}, time.Second)
			lane(env)
			requireFailure(t, rejected, activities.InvalidInput, c.words)
		})
	}
}
