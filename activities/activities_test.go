package activities_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"varve/activities"
	"varve/internal/columnar"
	"varve/internal/delta"
	"varve/internal/format"
	"varve/internal/merge"
	"varve/internal/normalize"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/quality"
	"varve/internal/source"
	"varve/internal/stage"
	"varve/internal/state"
	"varve/schemas"
)

// landing is an engine of which only Land is asked.
type landing struct {
	activities.Engine
	land func(ctx context.Context) error
}

func (l landing) Land(ctx context.Context, _ stage.LandRequest) (stage.Landed, error) {
	return stage.Landed{Batches: []int64{1}}, l.land(ctx)
}

// try runs Land once.
func try(t *testing.T, land func(ctx context.Context) error) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	a := activities.New(landing{land: land}, nil)
	env.RegisterActivity(a)
	_, err := env.ExecuteActivity(a.Land, stage.LandRequest{})
	return err
}

func TestEveryFamilyOfFailuresHasItsTypeAndIsRetriedOrNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		kind string
		once bool
	}{
		"store away":         {object.ErrUnavailable, activities.StoreUnavailable, false},
		"store slow":         {context.DeadlineExceeded, activities.StoreUnavailable, false},
		"store full":         {object.ErrFull, activities.DiskFull, false},
		"store closed":       {object.ErrDenied, activities.PermissionDenied, true},
		"scratch closed":     {os.ErrPermission, activities.PermissionDenied, true},
		"worker ends":        {context.Canceled, activities.Interrupted, false},
		"commit lost":        {&delta.ConflictError{Table: "silver/now"}, activities.Conflict, true},
		"table too new":      {&delta.UnsupportedError{Feature: "typeWidening"}, activities.Refused, true},
		"source missing":     {&source.MissingError{}, activities.SourceMissing, true},
		"file replaced":      {&source.ReplacedError{}, activities.FileReplaced, true},
		"too many bad":       {&normalize.InvalidShareError{}, activities.InvalidShare, true},
		"too many deletes":   {&quality.ApprovalNeededError{}, activities.ApprovalNeeded, true},
		"bad contract":       {&schemas.Problems{List: []schemas.Problem{{Message: "no"}}}, activities.ContractInvalid, true},
		"no contract":        {&stage.NoContractError{}, activities.ContractInvalid, true},
		"disk full":          {syscall.ENOSPC, activities.DiskFull, false},
		"file not readable":  {&source.UnreadableError{Err: os.ErrPermission}, activities.PermissionDenied, true},
		"table damaged":      {&delta.CorruptError{}, activities.Refused, true},
		"table foreign":      {&merge.NotOursError{}, activities.Refused, true},
		"table changed":      {&merge.ForeignChangeError{}, activities.Refused, true},
		"contract drifted":   {&merge.DriftError{}, activities.Refused, true},
		"no sequences":       {&merge.SequenceError{}, activities.Refused, true},
		"rule broken":        {&quality.BrokenError{}, activities.Refused, true},
		"newer format":       {&format.Error{}, activities.Refused, true},
		"state missing":      {&state.MissingError{}, activities.Refused, true},
		"column of a type":   {&columnar.TypeError{Column: "n", Reason: "no"}, activities.Refused, true},
		"models in a circle": {&stage.CycleError{}, activities.Refused, true},
		"nobody's":           {errors.New("the moon is full"), activities.Internal, false},
		"several":            {errors.Join(&source.MissingError{}, object.ErrUnavailable), activities.StoreUnavailable, false},
		"already classified": {temporal.NewNonRetryableApplicationError("no", activities.Refused, nil), activities.Refused, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := try(t, func(context.Context) error { return fmt.Errorf("land customer: %w", c.err) })
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, c.kind, app.Type())
			require.Equal(t, c.once, app.NonRetryable())
			require.NotEmpty(t, app.Message())
		})
	}
}

func TestFailureThatSeldomHealsIsFinalAfterAFewAttempts(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{"nobody's": errors.New("the moon is full"), "disk full": object.ErrFull} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			err := retried(t, landing{land: func(context.Context) error {
				tries.Add(1)
				return cause
			}})
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.True(t, app.NonRetryable())
			require.Equal(t, int32(3), tries.Load())
		})
	}
}

func TestFailuresOfOneFamilyDoNotUseUpThePatienceForAnother(t *testing.T) {
	t.Parallel()
	away, full, unknown := object.ErrUnavailable, object.ErrFull, errors.New("the moon is full")
	for name, c := range map[string]struct {
		fails []error
		kind  string
	}{
		"after a store that was away": {[]error{away, away, away, full, full, full}, activities.DiskFull},
		"in between":                  {[]error{full, away, full, away, full}, activities.DiskFull},
		"two that are counted":        {[]error{full, unknown, full, unknown, unknown}, activities.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			err := retried(t, landing{land: func(context.Context) error {
				return c.fails[min(int(tries.Add(1)), len(c.fails))-1]
			}})
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, c.kind, app.Type())
			require.True(t, app.NonRetryable())
			require.Equal(t, len(c.fails), int(tries.Load()))
		})
	}
}

// retried runs Land as a workflow does, until it succeeds or its failure is final.
func retried(t *testing.T, l landing) error {
	t.Helper()
	a := activities.New(l, nil)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(a)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		return workflow.ExecuteActivity(ctx, a.Land, stage.LandRequest{}).Get(ctx, nil)
	})
	return env.GetWorkflowError()
}

func TestMessageSaysWhatToDoAndIsBounded(t *testing.T) {
	t.Parallel()
	err := try(t, func(context.Context) error {
		return fmt.Errorf("write %s: %w", strings.Repeat("é", 1<<20), object.ErrFull)
	})
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Contains(t, app.Message(), "free some space, then run the day again")
	require.Less(t, len(app.Message()), 10<<10)
}

func TestPanicOfAStageIsAFailureWithItsStack(t *testing.T) {
	t.Parallel()
	err := try(t, func(context.Context) error { panic("impossible") })
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, activities.Internal, app.Type())
	require.Equal(t, "panic: impossible", app.Message())
	var stack string
	require.NoError(t, app.Details(&stack))
	require.Contains(t, stack, "activities_test.go")
}

// waiting is a store whose first question takes until somebody heard a heartbeat.
type waiting struct {
	object.Store
	until <-chan struct{}
}

func (w waiting) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	select {
	case <-w.until:
	case <-ctx.Done():
	}
	return w.Store.Read(ctx, key, offset, length)
}

func TestHeartbeatsCarryTheProgressOfAStage(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	var once sync.Once
	engine := stage.New(stage.Options{Warehouse: waiting{memstore.New(), heard}})
	a := activities.New(engine, nil)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(a)
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var progress struct{ At string }
		if details.Get(&progress) == nil && progress.At == "land" {
			once.Do(func() { close(heard) })
		}
	})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: time.Second})
		return workflow.ExecuteActivity(ctx, a.Land, stage.LandRequest{Run: stage.Run{Dataset: "customer", Contract: 1}}).Get(ctx, nil)
	})
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	require.Equal(t, activities.ContractInvalid, app.Type())
	select {
	case <-heard:
	default:
		t.Fatal("no heartbeat told how far the stage was")
	}
}

func TestLogicalDayFollowsTheClockOfTheSchedulesZone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nominal, zone string
		previous      bool
		want          string
	}{
		"plain":                             {"2026-09-15T01:30:00Z", "Europe/Berlin", true, "2026-09-14"},
		"same":                              {"2026-09-15T01:30:00Z", "Europe/Berlin", false, "2026-09-15"},
		"evening before in UTC":             {"2026-09-14T22:30:00Z", "Europe/Berlin", false, "2026-09-15"},
		"still yesterday in New York":       {"2026-09-15T03:30:00Z", "America/New_York", false, "2026-09-14"},
		"spring, before the skipped hour":   {"2026-03-29T00:59:00Z", "Europe/Berlin", true, "2026-03-28"},
		"spring, after the skipped hour":    {"2026-03-29T01:00:00Z", "Europe/Berlin", true, "2026-03-28"},
		"spring, day of 23 hours":           {"2026-03-29T22:00:00Z", "Europe/Berlin", true, "2026-03-29"},
		"autumn, first of the doubled hour": {"2026-10-25T00:30:00Z", "Europe/Berlin", true, "2026-10-24"},
		"autumn, second of it":              {"2026-10-25T01:30:00Z", "Europe/Berlin", true, "2026-10-24"},
		"autumn, day of 25 hours":           {"2026-10-25T22:59:00Z", "Europe/Berlin", false, "2026-10-25"},
		"midnight that does not exist":      {"2026-09-06T04:00:00Z", "America/Santiago", true, "2026-09-05"},
		"first of a month":                  {"2026-03-01T05:00:00Z", "UTC", true, "2026-02-28"},
		"after a leap day":                  {"2024-03-01T05:00:00Z", "UTC", true, "2024-02-29"},
		"first of a year":                   {"2026-01-01T00:00:00Z", "UTC", true, "2025-12-31"},
		"day that Samoa left out":           {"2011-12-31T12:00:00Z", "Pacific/Apia", true, "2011-12-31"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nominal, err := time.Parse(time.RFC3339, c.nominal)
			require.NoError(t, err)
			zone, err := time.LoadLocation(c.zone)
			require.NoError(t, err)
			require.Equal(t, c.want, activities.LogicalDay(nominal, zone, c.previous))
		})
	}
}

func TestSameRequestHasTheSameKeyWhoeverAsks(t *testing.T) {
	t.Parallel()
	base := activities.Ask{Dataset: "customer", Day: "2026-09-14"}
	other := base
	other.Waiter = "replay/customer/2026-09-14"
	require.Equal(t, base.Key(), other.Key())
	for _, change := range []func(*activities.Ask){
		func(a *activities.Ask) { a.Day = "2026-09-15" },
		func(a *activities.Ask) { a.Contract = 2 },
		func(a *activities.Ask) { a.Reopen = true },
	} {
		a := base
		change(&a)
		require.NotEqual(t, base.Key(), a.Key())
	}
}
