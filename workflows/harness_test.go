package workflows_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"varve/activities"
	"varve/internal/stage"
	"varve/workflows"
)

// script is an engine on paper: what each activity answers, and what was asked of it in which order.
type script struct {
	mu    sync.Mutex
	calls []string
	// conflicts is how often the commit of a target loses.
	conflicts map[string]int
	// fails has an error by the name of an activity, or of an activity and a day.
	fails    map[string]error
	recorded []stage.RecordRequest
	asked    []activities.Ask
	landed   []stage.LandRequest
	due      activities.Due
	pending  []string
	// waiting is why Record finds that a day without fault is not done.
	waiting string
	// lost is how many requests the lane forgets.
	lost int
}

func (s *script) note(call, day string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	if err := s.fails[call+" "+day]; err != nil {
		return err
	}
	return s.fails[call]
}

// environment is a Temporal on paper whose activities follow the script.
func environment(t *testing.T, s *script) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a busy machine is no deadlock
	workflows.Register(env, workflows.Workflows{Attributes: true})
	env.RegisterActivity(&activities.Activities{})
	env.OnActivity("Pin", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.PinRequest) (stage.Pinned, error) {
		return stage.Pinned{Contract: 7, Targets: []string{"silver.now", "silver.history"}}, s.note("Pin", in.Dataset)
	})
	env.OnActivity("Land", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.LandRequest) (stage.Landed, error) {
		err := s.note("Land", in.Run.Day)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.landed = append(s.landed, in)
		return stage.Landed{Batches: []int64{4}}, err
	})
	env.OnActivity("Normalize", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.NormalizeRequest) (stage.Normalized, error) {
		return stage.Normalized{ChangeSet: "cs", Files: 1, Records: 10, Events: 9, Quarantined: 1}, s.note("Normalize", in.Run.Day)
	})
	env.OnActivity("Prepare", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.PrepareRequest) (stage.Prepared, error) {
		return stage.Prepared{Plan: "plan " + in.Target, Target: in.Target}, s.note("Prepare "+in.Target, in.Run.Day)
	})
	env.OnActivity("Audit", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.AuditRequest) (stage.Audited, error) {
		return stage.Audited{}, s.note("Audit", in.Run.Day)
	})
	env.OnActivity("Commit", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.CommitRequest) (stage.Committed, error) {
		target := in.Plan[len("plan "):]
		err := s.note("Commit "+target, in.Run.Day)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conflicts[target] > 0 {
			s.conflicts[target]--
			err = final(activities.Conflict, "somebody else was first")
		}
		return stage.Committed{Target: target, Version: 3, Counts: map[string]int64{"inserted": 2}}, err
	})
	env.OnActivity("Publish", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.PublishRequest) (stage.Published, error) {
		return stage.Published{Versions: map[string]int64{"gold.sales": 1}}, s.note("Publish", in.Run.Day)
	})
	env.OnActivity("Record", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.RecordRequest) (stage.Recorded, error) {
		err := s.note("Record", in.Run.Day)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.recorded = append(s.recorded, in)
		if s.waiting != "" {
			return stage.Recorded{Status: stage.SetAside, Reason: s.waiting}, err
		}
		return stage.Recorded{Status: in.Status, Reason: in.Reason}, err
	})
	s.lanes(env)
	return env
}

// lanes answers what Daily, Replay and Backfill ask.
func (s *script) lanes(env *testsuite.TestWorkflowEnvironment) {
	env.OnActivity("Pending", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.PendingRequest) (stage.Pending, error) {
		return stage.Pending{Days: s.pending}, s.note("Pending through "+in.Through, "")
	})
	env.OnActivity("Due", mock.Anything, mock.Anything).Return(func(context.Context, activities.DueRequest) (activities.Due, error) {
		return s.due, s.note("Due", "")
	})
	env.OnActivity("Maintain", mock.Anything, mock.Anything).Return(func(_ context.Context, in stage.MaintainRequest) (stage.Maintained, error) {
		return stage.Maintained{Tables: []stage.MaintainedTable{{Table: "silver.now", Done: "compacted"}}}, s.note("Maintain", in.Dataset)
	})
	env.OnActivity("Enqueue", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.Ask) (activities.Ticket, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, in)
		if s.lost > 0 {
			s.lost--
			return activities.Ticket{}, nil
		}
		ended := workflows.DayEnded{Key: in.Key(), Day: in.Day, Status: stage.Succeeded, Result: workflows.DayResult{Day: in.Day}}
		if err, ok := errors.AsType[*temporal.ApplicationError](s.fails["day "+in.Day]); ok {
			ended.Status, ended.Type, ended.Reason = stage.Failed, err.Type(), err.Message()
		}
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(activities.DayEndedSignal, ended) }, time.Second)
		return activities.Ticket{}, nil
	})
}

// inLane runs a lane that has days waiting, until it ends.
func inLane(t *testing.T, env *testsuite.TestWorkflowEnvironment, days ...activities.Ask) {
	t.Helper()
	in := activities.LaneInput{Dataset: "customer"}
	for _, ask := range days {
		ask.Dataset = "customer"
		in.Queue = append(in.Queue, activities.Waiting{Ask: ask})
	}
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: activities.LaneID("customer"), TaskQueue: "varve"})
	env.ExecuteWorkflow(workflows.Lane, in)
	require.True(t, env.IsWorkflowCompleted())
}

func final(kind, message string) error {
	return temporal.NewNonRetryableApplicationError(message, kind, nil)
}

// requireFailure checks the type and the words of a workflow's failure.
func requireFailure(t *testing.T, err error, kind, words string) {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, kind, app.Type())
	require.Contains(t, app.Message(), words)
}
