package activities

import (
	"context"
	"fmt"
	"strconv"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
)

// The door of a lane: the workflow that runs a dataset's days one at a time.
const (
	// Lane is the type of the workflow.
	Lane = "Lane"
	// EnqueueUpdate is the update that puts a day into its queue.
	EnqueueUpdate = "enqueue"
	// DayEndedSignal is the signal that those who wait for a day get when it ended.
	DayEndedSignal = "day_ended"
)

// LaneID is the id of a dataset's lane.
func LaneID(dataset string) string { return "lane/" + dataset }

// LaneInput starts a lane.
type LaneInput struct {
	Dataset string `json:"dataset" example:"customer"`
	// Queue is what the lane's run before this one left waiting.
	Queue []Waiting `json:"queue,omitempty"`
}

// Waiting is a request in a lane's queue.
type Waiting struct {
	Ask Ask `json:"ask"`
	// Waiters are the ids of the workflows that are told when it ended.
	Waiters []string `json:"waiters,omitempty"`
}

// Ask is a day that is to be done; equal ones that wait or run are one.
type Ask struct {
	Dataset string `json:"dataset" example:"customer"`
	Day     string `json:"day" example:"2026-09-14"`
	// Contract is the number of the contract to use; 0 means the newest.
	Contract int64 `json:"contract,omitempty" example:"3"`
	// Reopen takes up again what was set aside.
	Reopen bool `json:"reopen,omitempty" example:"true"`
	// Waiter is the id of the workflow that is told when the day ended; empty where nobody waits.
	Waiter string `json:"waiter,omitempty" example:"replay/customer/2026-09-14"`
}

// Key tells what is asked for, whoever asks.
func (a Ask) Key() string {
	key := a.Day
	if a.Contract != 0 {
		key += "@" + strconv.FormatInt(a.Contract, 10)
	}
	if a.Reopen {
		key += "+reopen"
	}
	return key
}

// Ticket says that a lane has a request.
type Ticket struct {
	// Ahead is how many requests come before it.
	Ahead int `json:"ahead"`
	// Joined says that the same request was waiting or running already.
	Joined bool `json:"joined,omitempty"`
}

// Enqueue puts a day into its dataset's lane, starting the lane where none runs. Run twice, the second joins the first.
func (a *Activities) Enqueue(ctx context.Context, in Ask) (Ticket, error) {
	info := activity.GetInfo(ctx)
	tried := tallyOf(ctx)
	ticket, err := Enqueue(ctx, a.client, info.TaskQueue, info.WorkflowExecution.RunID+"/"+info.ActivityID, in)
	return ticket, classify(tried, temporalError(ctx, err))
}

// Enqueue puts a day into its dataset's lane through c; once names the call, so that a repeated one counts once.
func Enqueue(ctx context.Context, c client.Client, queue, once string, in Ask) (Ticket, error) {
	id := LaneID(in.Dataset)
	start := c.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: id, TaskQueue: queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary: "the days of " + in.Dataset + ", one at a time",
	}, Lane, LaneInput{Dataset: in.Dataset})
	update, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: once, WorkflowID: id, UpdateName: EnqueueUpdate, Args: []any{in}, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	var ticket Ticket
	if err == nil {
		err = update.Get(ctx, &ticket)
	}
	if err != nil {
		return Ticket{}, fmt.Errorf("put %s into %s: %w", in.Day, id, err)
	}
	return ticket, nil
}
