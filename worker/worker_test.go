package worker_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"varve/activities"
	"varve/internal/ledger"
	"varve/internal/object"
	"varve/internal/source"
	"varve/internal/stage"
	"varve/schemas"
	"varve/worker"
	"varve/workflows"
)

func TestDayByHandGoesThroughTheLaneAndIsOneActivityAStage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "by_hand", "")
	w.plant(t, "2026-09-14")
	var out workflows.DayResult
	require.NoError(t, w.Run(t.Context(), w.id("hand"), workflows.Day, w.day("2026-09-14"), &out))
	require.Equal(t, map[string]int64{"silver.by_hand_now": 0, "silver.by_hand_history": 0}, out.Versions)
	require.Equal(t, []string{"Enqueue"}, w.activities(t, w.id("hand")))

	inLane := workflows.DayID("by_hand", "2026-09-14")
	require.Equal(t, []string{
		"Pin", "Land", "Normalize", "Prepare", "Prepare", "Audit", "Commit", "Commit", "Publish", "Record",
	}, w.activities(t, inLane))
	started := w.events(t, inLane, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)[0].GetWorkflowExecutionStartedEventAttributes()
	require.Equal(t, activities.LaneID("by_hand"), started.GetParentWorkflowExecution().GetWorkflowId())
	days, err := ledger.Days(t.Context(), w.warehouse, "by_hand")
	require.NoError(t, err)
	require.Len(t, days, 1)
	require.Equal(t, out.Run, days[0].Run)
	require.Equal(t, stage.Succeeded, days[0].Status)
}

func TestDayUnderTheIDThatItsLaneUsesIsDoneAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "same_id", "")
	w.plant(t, "2026-09-14")
	var out workflows.DayResult
	require.NoError(t, w.Run(t.Context(), workflows.DayID("same_id", "2026-09-14"), workflows.Day, w.day("2026-09-14"), &out))
	require.Equal(t, int64(1), out.Counts["records"])
}

func TestEqualRequestsAtOnceAreOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "equal", "Land")
	w.plant(t, "2026-09-14")
	names := []string{"one", "two", "three"}
	for _, name := range names {
		w.start(t, name, workflows.Day, w.day("2026-09-14"))
	}
	for _, name := range names {
		eventually(t, func() bool { return len(w.events(t, w.id(name), enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)) == 1 })
	}
	close(w.gate)
	runs := map[string]bool{}
	for _, name := range names {
		var out workflows.DayResult
		require.NoError(t, w.Client.GetWorkflow(t.Context(), w.id(name), "").Get(t.Context(), &out))
		runs[out.Run] = true
	}
	require.Len(t, runs, 1)
	require.Equal(t, []string{"2026-09-14"}, w.saw("Land"))
}

func TestBackfillDoesDaysInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "backfill", "")
	days := []string{"2026-08-30", "2026-08-31", "2026-09-01"}
	w.plant(t, days...)
	var out workflows.DaysResult
	require.NoError(t, w.Run(t.Context(), w.id("backfill"), workflows.Backfill, workflows.BackfillInput{Dataset: "backfill", From: days[0], To: days[2]}, &out))
	require.Equal(t, workflows.DaysResult{Dataset: "backfill", Succeeded: 3, First: days[0], Last: days[2]}, out)
	require.Equal(t, days, w.saw("Land"))
}

func TestReplayTakesUpWhatWasSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "reopened", "")
	w.put(t, "2026-09-14", `{"id": "a", "city": "Pune", "seq": 1}`, `{"id": `)
	err := w.Run(t.Context(), w.id("hand"), workflows.Day, w.day("2026-09-14"), nil)
	requireFailure(t, err, activities.InvalidShare, "1 of 2 records of reopened are bad")
	require.Equal(t, source.SetAside, state(t, w))

	w.publish(t, contract+"description: more may be bad now\n")
	err = w.Run(t.Context(), w.id("too early"), workflows.Replay, workflows.ReplayInput{Dataset: "reopened", Day: "2026-09-14"}, nil)
	requireFailure(t, err, activities.InvalidShare, "1 of 2 records")

	w.publish(t, strings.Replace(contract, "max_invalid_share: 0.1", "max_invalid_share: 0.5", 1))
	var out workflows.DayResult
	require.NoError(t, w.Run(t.Context(), w.id("replay"), workflows.Replay, workflows.ReplayInput{Dataset: "reopened", Day: "2026-09-14"}, &out))
	require.Equal(t, source.Open, state(t, w))
	require.Equal(t, int64(3), out.Contract)
	require.Equal(t, int64(1), out.Counts["silver.reopened_now.inserted"])
}

// state is that of the dataset's only batch.
func state(t *testing.T, w *world) source.State {
	t.Helper()
	all, err := source.Batches(t.Context(), w.warehouse, w.dataset)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0].State
}

func TestFailedDayIsRecordedWithItsReasonAndKeepsItsType(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "failing", "")
	err := w.Run(t.Context(), w.id("hand"), workflows.Day, w.day("2026-09-14"), nil)
	requireFailure(t, err, activities.SourceMissing, `"failing`)
	child := w.Client.GetWorkflow(t.Context(), workflows.DayID("failing", "2026-09-14"), "").Get(t.Context(), nil)
	requireFailure(t, child, activities.SourceMissing, "does not exist")
	days, err := ledger.Days(t.Context(), w.warehouse, "failing")
	require.NoError(t, err)
	require.Len(t, days, 1)
	require.Equal(t, stage.Failed, days[0].Status)
	require.Contains(t, days[0].Reason, "does not exist")
}

func TestInputThatMeansNothingIsAnsweredBeforeAnyActivity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "strict", "")
	type object = map[string]any
	for name, c := range map[string]struct {
		workflow string
		args     []any
		words    string
	}{
		"misspelt":      {workflows.Replay, []any{object{"dataset": "strict", "dya": "2026-09-14"}}, `unknown field "dya" (did you mean "day"?); field "day" is missing`},
		"unknown":       {workflows.Maintain, []any{object{"dataset": "strict", "everything": true}}, `unknown field "everything" (known: dataset)`},
		"missing":       {workflows.Backfill, []any{object{"dataset": "strict", "from": "2026-09-01"}}, `field "to" is missing`},
		"more than one": {workflows.Day, []any{w.day("2026-09-14"), w.day("2026-09-15")}, "more than one argument; give one JSON object"},
		"none":          {workflows.Daily, nil, "no argument; give one JSON object"},
		"no such type":  {"Replya", []any{object{}}, `there is no workflow "Replya" (did you mean "Replay"?); the workflows are Backfill, Daily, Day, Maintain, Replay`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := w.start(t, name, c.workflow, c.args...)
			requireFailure(t, run.Get(t.Context(), nil), activities.InvalidInput, c.words)
			require.Empty(t, w.activities(t, run.GetID()))
		})
	}
}

func TestWorkflowsAreFoundByDatasetDayAndStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "found", "")
	w.plant(t, "2026-09-14")
	require.NoError(t, w.Run(t.Context(), w.id("good"), workflows.Day, w.day("2026-09-14"), nil))
	require.Error(t, w.Run(t.Context(), w.id("bad"), workflows.Day, w.day("2026-09-15"), nil))
	require.NoError(t, w.Run(t.Context(), w.id("upkeep"), workflows.Maintain, workflows.MaintainInput{Dataset: "found"}, nil))
	for query, want := range map[string][]string{
		`VarveStatus = "succeeded" AND VarveDay = "2026-09-14"`: {"day/found/2026-09-14", "found/good"},
		`VarveStatus = "failed"`:                                {"day/found/2026-09-15", "found/bad"},
		`VarveStatus = "succeeded" AND VarveDay IS NULL`:        {"found/upkeep"},
		`VarveStatus = "running"`:                               {"lane/found"},
	} {
		var got []string
		require.Eventually(t, func() bool {
			got = w.found(t, `VarveDataset = "found" AND `+query)
			return len(got) == len(want)
		}, patience, patience/1000, "%s", query)
		require.Equal(t, want, got, "%s", query)
	}
}

func TestWorkerStoppedMidwayAndStartedAgainOnTheSameStateFinishesTheDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "resumed", "Audit")
	w.plant(t, "2026-09-14")
	c := worker.Config{File: filepath.Join(t.TempDir(), "temporal.db"), Temporal: schemas.Temporal{Namespace: "resumed"}}.WithDefaults()
	first, err := worker.Serve(t.Context(), c, w.engine(t))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- first.Run(ctx, "hand", workflows.Day, w.day("2026-09-14"), nil) }()
	eventually(t, func() bool { return len(w.saw("Audit")) == 1 })
	cancel()
	require.Error(t, <-left)
	require.NoError(t, first.Stop())
	require.Empty(t, recorded(t, w))

	close(w.gate)
	second, err := worker.Serve(t.Context(), c, w.engine(t))
	require.NoError(t, err)
	var out workflows.DayResult
	require.NoError(t, second.Run(t.Context(), "hand", workflows.Day, w.day("2026-09-14"), &out))
	require.NoError(t, second.Stop())
	require.Equal(t, []string{"2026-09-14"}, w.saw("Land"))
	require.Equal(t, int64(1), out.Counts["silver.resumed_now.inserted"])
	require.Len(t, recorded(t, w), 1)
}

// crowd is an engine that maintains until its gate opens, and knows how many of it did so at once.
type crowd struct {
	activities.Engine
	gate      chan struct{}
	now, most atomic.Int32
}

func (c *crowd) Maintain(ctx context.Context, _ stage.MaintainRequest) (stage.Maintained, error) {
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	select {
	case <-c.gate:
		return stage.Maintained{}, nil
	case <-ctx.Done():
		return stage.Maintained{}, ctx.Err()
	}
}

func TestNoMoreStagesRunAtOnceThanTheWorkerMay(t *testing.T) {
	t.Parallel()
	s, err := server()
	require.NoError(t, err)
	engine := &crowd{gate: make(chan struct{})}
	w, err := worker.Join(t.Context(), worker.Config{Temporal: schemas.Temporal{Address: s.Address, Namespace: "default", TaskQueue: "crowd"}, Stages: 2}, engine)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Stop()) })
	runs := make([]client.WorkflowRun, 0, 8)
	for i := range cap(runs) {
		run, err := w.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: fmt.Sprint("crowd/", i), TaskQueue: "crowd"}, workflows.Maintain, workflows.MaintainInput{Dataset: "crowd"})
		require.NoError(t, err)
		runs = append(runs, run)
	}
	for _, run := range runs { // each asked for its activity, so as many run as may
		eventually(t, func() bool {
			d, err := w.Client.DescribeWorkflowExecution(t.Context(), run.GetID(), "")
			return err == nil && len(d.GetPendingActivities()) == 1
		})
	}
	eventually(t, func() bool { return engine.now.Load() == 2 })
	close(engine.gate)
	for _, run := range runs {
		require.NoError(t, run.Get(t.Context(), nil))
	}
	require.Equal(t, int32(2), engine.most.Load())
}

func TestServerRemembersWhatFailedFromAttemptToAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "counted", "")
	w.plant(t, "2026-09-14")
	fails := []error{object.ErrUnavailable, object.ErrUnavailable, object.ErrFull, object.ErrUnavailable, object.ErrFull, object.ErrFull}
	w.fail = func(name string) error {
		if name != "Land" {
			return nil
		}
		return fails[min(len(w.saw("Land")), len(fails))-1]
	}
	err := w.Run(t.Context(), w.id("hand"), workflows.Day, w.day("2026-09-14"), nil)
	requireFailure(t, err, activities.DiskFull, "free some space")
	require.Len(t, w.saw("Land"), len(fails))
}

func TestEmbeddedServiceHasNothingToDoWithTheEnvironment(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "temporal.invalid:7233")
	t.Setenv("TEMPORAL_NAMESPACE", "elsewhere")
	c := worker.Config{File: filepath.Join(t.TempDir(), "temporal.db")}.WithDefaults()
	s, err := worker.Serve(t.Context(), c, watched{})
	require.NoError(t, err)
	require.NoError(t, s.Ready(t.Context()))
	require.Equal(t, "default", s.Namespace)
	require.NoError(t, s.Stop())
}

func TestWorkerWithoutAServiceSaysWhatToDo(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	_, err := worker.Join(t.Context(), worker.Config{Temporal: schemas.Temporal{Address: nobody}}.WithDefaults(), watched{})
	require.ErrorContains(t, err, "no Temporal service answers at "+nobody)
	require.ErrorContains(t, err, "varve dev")
}

func recorded(t *testing.T, w *world) []ledger.Day {
	t.Helper()
	days, err := ledger.Days(t.Context(), w.warehouse, w.dataset)
	require.NoError(t, err)
	return days
}
