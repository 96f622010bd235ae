package workflows

import (
	"fmt"
	"slices"
	"strconv"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"varve/activities"
	"varve/internal/stage"
)

// laneInput is a lane's input, read strictly.
type laneInput activities.LaneInput

func (in laneInput) problems() []string { return datasetProblems(in.Dataset) }

// askInput is the input of a lane's update, read strictly.
type askInput activities.Ask

func (in askInput) problems() []string {
	return DayInput{Dataset: in.Dataset, Day: in.Day, Contract: in.Contract}.problems()
}

// queue is a lane's state: what runs and what waits.
type queue struct {
	dataset string
	running *activities.Waiting
	waiting []activities.Waiting
}

// lane runs the days of a dataset one at a time, in the order in which they were asked for. Losing it loses nothing: those
// who wait ask again, and the ledger knows what is not done.
func (w Workflows) lane(ctx workflow.Context, raw, extra converter.RawValue) error {
	in, err := decode[laneInput](Lane, raw, extra)
	if err != nil {
		return err
	}
	tags, err := w.tag(ctx, in.Dataset, "")
	if err != nil {
		return err
	}
	q := &queue{dataset: in.Dataset, waiting: in.Queue}
	if err := q.listen(ctx); err != nil {
		return err
	}
	for {
		if len(q.waiting) == 0 {
			if _, err := workflow.AwaitWithTimeout(ctx, laneIdle, func() bool { return len(q.waiting) > 0 }); err != nil {
				return q.abandon(ctx, tags, err)
			}
		}
		if len(q.waiting) == 0 && workflow.AllHandlersFinished(ctx) {
			return tags.status(ctx, stage.Succeeded)
		}
		if len(q.waiting) == 0 {
			continue
		}
		if err := q.next(ctx); err != nil {
			return q.abandon(ctx, tags, err)
		}
		if !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			continue
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return q.abandon(ctx, tags, err)
		}
		return workflow.NewContinueAsNewError(ctx, Lane, activities.LaneInput{Dataset: q.dataset, Queue: q.waiting})
	}
}

// listen takes requests. A handler never waits, so that whoever asks has an answer at once.
func (q *queue) listen(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, activities.EnqueueUpdate,
		func(_ workflow.Context, raw, extra converter.RawValue) (activities.Ticket, error) {
			in, err := decode[askInput](activities.EnqueueUpdate, raw, extra)
			if err != nil {
				return activities.Ticket{}, err
			}
			return q.enqueue(activities.Ask(in)), nil
		},
		workflow.UpdateHandlerOptions{
			Description: "Have a day done, after those that wait.",
			Validator: func(_ workflow.Context, raw, extra converter.RawValue) error {
				in, err := decode[askInput](activities.EnqueueUpdate, raw, extra)
				if err != nil {
					return err
				}
				return q.admit(activities.Ask(in))
			},
		})
	if err != nil {
		return fmt.Errorf("take requests of %s: %w", q.dataset, err)
	}
	return nil
}

// admit says why a request is not taken.
func (q *queue) admit(in activities.Ask) error {
	if in.Dataset != q.dataset {
		return invalid("this lane is of dataset %q, not of %q", q.dataset, in.Dataset)
	}
	if len(q.waiting) >= laneQueue && q.find(in) == nil {
		return typed(activities.Refused, "%d days of %s wait already; try again when some are done", len(q.waiting), q.dataset)
	}
	return nil
}

// enqueue puts a request last, or beside the same one that waits or runs.
func (q *queue) enqueue(in activities.Ask) activities.Ticket {
	if same := q.find(in); same != nil {
		join(same, in.Waiter)
		return activities.Ticket{Ahead: q.ahead(in), Joined: true}
	}
	entry := activities.Waiting{Ask: in}
	join(&entry, in.Waiter)
	entry.Ask.Waiter = ""
	q.waiting = append(q.waiting, entry)
	return activities.Ticket{Ahead: q.ahead(in)}
}

// find gives the same request where it waits or runs, nil where it does neither.
func (q *queue) find(in activities.Ask) *activities.Waiting {
	if q.running != nil && q.running.Ask.Key() == in.Key() {
		return q.running
	}
	for i := range q.waiting {
		if q.waiting[i].Ask.Key() == in.Key() {
			return &q.waiting[i]
		}
	}
	return nil
}

// ahead is how many requests come before one that waits or runs.
func (q *queue) ahead(in activities.Ask) int {
	ahead := 0
	if q.running != nil {
		if q.running.Ask.Key() == in.Key() {
			return 0
		}
		ahead++
	}
	return ahead + slices.IndexFunc(q.waiting, func(w activities.Waiting) bool { return w.Ask.Key() == in.Key() })
}

// join adds one who waits, once.
func join(w *activities.Waiting, waiter string) {
	if waiter != "" && !slices.Contains(w.Waiters, waiter) {
		w.Waiters = append(w.Waiters, waiter)
	}
}

// next runs the first day that waits and tells those who wait for it how it ended. An error is the lane's, not the day's.
func (q *queue) next(ctx workflow.Context) error {
	entry := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.running = &entry
	result, err := run(ctx, entry.Ask)
	q.running = nil
	status, _ := failureOf(err)
	tell(ctx, entry, DayEnded{
		Key: entry.Ask.Key(), Day: entry.Ask.Day, Status: status, Type: kindOf(err), Reason: reasonOf(err), Result: result,
	})
	return ctx.Err() //nolint:wrapcheck // the SDK knows a canceled workflow by it
}

// run does a day as a child. Somebody may have started one by hand under the day's id, and may even wait for this lane; so
// another id is taken then.
func run(ctx workflow.Context, in activities.Ask) (DayResult, error) {
	var result DayResult
	id := DayID(in.Dataset, in.Day)
	for try := 1; ; try++ {
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: id, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL, WaitForCancellation: true,
			StaticSummary: in.Dataset + " " + in.Key(),
		})
		err := workflow.ExecuteChildWorkflow(child, Day, DayInput{Dataset: in.Dataset, Day: in.Day, Contract: in.Contract, Reopen: in.Reopen}).Get(ctx, &result)
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) || try == laneTries {
			return result, err //nolint:wrapcheck // its type is read where the day ends
		}
		id = DayID(in.Dataset, in.Day) + "/" + strconv.Itoa(try+1)
	}
}

// tell signals everyone who waits for a request. One that is gone needs no answer.
func tell(ctx workflow.Context, w activities.Waiting, how DayEnded) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	sent := make([]workflow.Future, len(w.Waiters))
	for i, id := range w.Waiters {
		sent[i] = workflow.SignalExternalWorkflow(ctx, id, "", activities.DayEndedSignal, how)
	}
	for _, f := range sent {
		if err := f.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("nobody waits any more", "day", how.Day)
		}
	}
}

// abandon tells everyone in the queue that the lane was ended, sets its status, and ends with the reason.
func (q *queue) abandon(ctx workflow.Context, tags tags, err error) error {
	for _, w := range q.waiting {
		tell(ctx, w, DayEnded{Key: w.Ask.Key(), Day: w.Ask.Day, Status: stage.Failed, Type: Canceled, Reason: activities.LaneID(q.dataset) + " was ended"})
	}
	if workflow.GetVersion(ctx, endedLaneHasItsStatus, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return err
	}
	status, _ := failureOf(err)
	return firstError(tags.status(ctx, status), err)
}

// endedLaneHasItsStatus is the change since which a lane that is ended does not stay among those that run.
const endedLaneHasItsStatus = "lane-ended-status"
