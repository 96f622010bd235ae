package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"varve/activities"
	"varve/internal/stage"
)

// DayEnded tells those who wait for a day how it ended.
type DayEnded struct {
	Key    string `json:"key"`
	Day    string `json:"day"`
	Status string `json:"status"`
	// Type and Reason are those of the failure.
	Type   string    `json:"type,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Result DayResult `json:"result"`
}

// ask has the dataset's lane do days in order, at most ahead of them in its queue at once, and waits until all have ended.
// Where goOn says no to how one ended, no further day is asked for.
func ask(ctx workflow.Context, asks []activities.Ask, ahead int, goOn func(DayEnded) bool) ([]DayEnded, error) {
	var a *activities.Activities
	enqueue := func(in activities.Ask) error {
		in.Waiter = workflow.GetInfo(ctx).WorkflowExecution.ID
		_, err := call(ctx, question, in.Day, a.Enqueue, in)
		return err
	}
	signals := workflow.GetSignalChannel(ctx, activities.DayEndedSignal)
	ended := map[string]DayEnded{}
	var out []DayEnded
	for asked := 0; ; {
		for ; asked < len(asks) && asked-len(out) < ahead; asked++ {
			if err := enqueue(asks[asked]); err != nil {
				return out, err
			}
		}
		if len(out) == asked {
			return out, nil
		}
		var got DayEnded
		if ok, _ := signals.ReceiveWithTimeout(ctx, askAgain, &got); ok {
			ended[got.Key] = got
		} else if err := ctx.Err(); err != nil {
			return out, err //nolint:wrapcheck // the SDK knows a canceled workflow by it
		} else if err := enqueue(asks[len(out)]); err != nil {
			return out, err
		}
		for len(out) < asked {
			e, ok := ended[asks[len(out)].Key()]
			if !ok {
				break
			}
			out = append(out, e)
			if !goOn(e) {
				asks = asks[:asked]
			}
		}
	}
}

// askForDay has the lane do one day and passes on how it ended.
func (w Workflows) askForDay(ctx workflow.Context, in DayInput) (DayResult, error) {
	tags, err := w.tag(ctx, in.Dataset, in.Day)
	if err != nil {
		return DayResult{}, err
	}
	ended, err := ask(ctx, []activities.Ask{{Dataset: in.Dataset, Day: in.Day, Contract: in.Contract, Reopen: in.Reopen}}, 1, goOnAlways)
	if err != nil {
		status, out := failureOf(err)
		return DayResult{}, firstError(tags.status(ctx, status), out)
	}
	if err := tags.status(ctx, ended[0].Status); err != nil {
		return DayResult{}, err
	}
	if ended[0].Status != stage.Succeeded {
		return DayResult{}, typed(ended[0].Type, "%s", ended[0].Reason)
	}
	return ended[0].Result, nil
}

func goOnAlways(DayEnded) bool { return true }

// FailedDay is a day that did not succeed.
type FailedDay struct {
	Day    string `json:"day"`
	Status string `json:"status"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// DaysResult is what a workflow of several days did.
type DaysResult struct {
	Dataset string `json:"dataset"`
	// Succeeded and NotSucceeded are how many days did and did not.
	Succeeded    int `json:"succeeded"`
	NotSucceeded int `json:"not_succeeded,omitempty"`
	// Failed are the first of those that did not succeed.
	Failed []FailedDay `json:"failed,omitempty"`
	// First and Last are the days it began and ended with.
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
}

// add counts days that ended.
func (r *DaysResult) add(days []DayEnded) {
	for _, d := range days {
		if r.First == "" {
			r.First = d.Day
		}
		r.Last = d.Day
		if d.Status == stage.Succeeded {
			r.Succeeded++
			continue
		}
		r.NotSucceeded++
		if len(r.Failed) < maxFailures {
			r.Failed = append(r.Failed, FailedDay{Day: d.Day, Status: d.Status, Type: d.Type, Reason: short(d.Reason)})
		}
	}
}

// failure is the failure of a workflow some of whose days did not succeed, of the type of the first.
func (r *DaysResult) failure(more string) error {
	if r.NotSucceeded == 0 {
		return nil
	}
	lines := make([]string, len(r.Failed))
	for i, f := range r.Failed {
		lines[i] = fmt.Sprintf("%s: %s: %s", f.Day, f.Type, f.Reason)
	}
	return typed(r.Failed[0].Type, "%d of %d days of %s did not succeed%s: %s", r.NotSucceeded, r.NotSucceeded+r.Succeeded, r.Dataset, more, strings.Join(lines, "; "))
}

// status is the status of a workflow of several days.
func (r *DaysResult) status() string {
	if r.NotSucceeded > 0 {
		return stage.Failed
	}
	return stage.Succeeded
}

// firstError gives the first that is one.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
