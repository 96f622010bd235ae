package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"varve/activities"
)

// refusing is a client whose service answers everything with one error.
type refusing struct {
	client.Client
	err error
}

// refusingService is the same, one level below.
type refusingService struct {
	workflowservice.WorkflowServiceClient
	err error
}

func (refusing) NewWithStartWorkflowOperation(client.StartWorkflowOptions, any, ...any) client.WithStartWorkflowOperation {
	return nil
}

func (r refusing) UpdateWithStartWorkflow(context.Context, client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return nil, r.err
}

func (r refusing) WorkflowService() workflowservice.WorkflowServiceClient {
	return refusingService{err: r.err}
}

func (r refusingService) ListScheduleMatchingTimes(context.Context, *workflowservice.ListScheduleMatchingTimesRequest, ...grpc.CallOption) (*workflowservice.ListScheduleMatchingTimesResponse, error) {
	return nil, r.err
}

func TestServiceThatRefusesIsNotAskedForTwoDays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		kind string
		once bool
	}{
		"away":              {serviceerror.NewUnavailable("away"), activities.TemporalUnavailable, false},
		"slow":              {serviceerror.NewDeadlineExceeded("slow"), activities.TemporalUnavailable, false},
		"slow to update":    {client.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded), activities.TemporalUnavailable, false},
		"busy":              {&serviceerror.ResourceExhausted{Message: "busy"}, activities.TemporalUnavailable, false},
		"lane ends":         {serviceerror.NewAborted("closing"), activities.TemporalUnavailable, false},
		"rights withdrawn":  {serviceerror.NewPermissionDenied("no", ""), activities.PermissionDenied, true},
		"means nothing":     {serviceerror.NewInvalidArgument("no"), activities.InvalidInput, true},
		"namespace gone":    {serviceerror.NewNamespaceNotFound("shop"), activities.Refused, true},
		"too old a service": {serviceerror.NewUnimplemented("no"), activities.Refused, true},
		"nobody's":          {serviceerror.NewInternal("the moon is full"), activities.Internal, false},
	} {
		a := activities.New(nil, refusing{err: c.err})
		for activity, call := range map[string]func(env *testsuite.TestActivityEnvironment) error{
			"Enqueue": func(env *testsuite.TestActivityEnvironment) error {
				_, err := env.ExecuteActivity(a.Enqueue, activities.Ask{Dataset: "customer", Day: "2026-09-14"})
				return err
			},
			"Due": func(env *testsuite.TestActivityEnvironment) error {
				_, err := env.ExecuteActivity(a.Due, activities.DueRequest{Dataset: "customer", TimeZone: "UTC"})
				return err
			},
		} {
			t.Run(activity+" "+name, func(t *testing.T) {
				t.Parallel()
				var suite testsuite.WorkflowTestSuite
				env := suite.NewTestActivityEnvironment()
				env.RegisterActivity(a)
				var app *temporal.ApplicationError
				require.ErrorAs(t, call(env), &app)
				require.Equal(t, c.kind, app.Type())
				require.Equal(t, c.once, app.NonRetryable())
				require.Contains(t, app.Message(), "customer")
			})
		}
	}
}

func TestLaneThatIsNotFoundAgainAndAgainIsGivenUp(t *testing.T) {
	t.Parallel()
	a := activities.New(nil, refusing{err: serviceerror.NewNotFound("workflow execution already completed")})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(a)
	tries := 0
	env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) { tries++ })
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		return workflow.ExecuteActivity(ctx, a.Enqueue, activities.Ask{Dataset: "customer", Day: "2026-09-14"}).Get(ctx, nil)
	})
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	require.True(t, app.NonRetryable())
	require.Equal(t, activities.Internal, app.Type())
	require.Equal(t, 3, tries)
}
