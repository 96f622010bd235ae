package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"varve/activities"
)

// BackfillInput asks for a range of days, in order. It has no defaults.
type BackfillInput struct {
	Dataset string `json:"dataset" example:"customer"`
	// From and To are the first and the last day.
	From string `json:"from" example:"2026-09-01"`
	To   string `json:"to" example:"2026-09-14"`
	// Contract is the number of the contract to use; 0 means the newest.
	Contract int64 `json:"contract,omitempty"`
	// So is what the runs before this one did.
	So *DaysResult `json:"so,omitempty"`
}

func (in BackfillInput) problems() []string {
	out := append(datasetProblems(in.Dataset), dayProblems("from", in.From)...)
	out = append(append(out, dayProblems("to", in.To)...), contractProblems(in.Contract)...)
	if len(out) == 0 && in.From > in.To {
		out = append(out, fmt.Sprintf("field %q is after field %q", "from", "to"))
	}
	return out
}

// backfill does days in order through the lane, where others may come in between, a bounded number a run.
func (w Workflows) backfill(ctx workflow.Context, raw, extra converter.RawValue) (DaysResult, error) {
	in, err := decode[BackfillInput](Backfill, raw, extra)
	if err != nil {
		return DaysResult{}, err
	}
	tags, err := w.tag(ctx, in.Dataset, "")
	if err != nil {
		return DaysResult{}, err
	}
	result := DaysResult{Dataset: in.Dataset}
	if in.So != nil {
		result = *in.So
	}
	days, next := daysOf(in.From, in.To, backfillRun)
	asks := make([]activities.Ask, len(days))
	for i, day := range days {
		asks[i] = activities.Ask{Dataset: in.Dataset, Day: day, Contract: in.Contract}
	}
	ended, err := ask(ctx, asks, backfillAhead, func(d DayEnded) bool { return aboutOneDay(d.Type) })
	result.add(ended)
	if err != nil {
		status, out := failureOf(err)
		return result, firstError(tags.status(ctx, status), out)
	}
	if next != "" && len(ended) == len(days) {
		in.From, in.So = next, &result
		return DaysResult{}, workflow.NewContinueAsNewError(ctx, Backfill, in)
	}
	more := ""
	if len(ended) < len(days) {
		more = ", the days after " + result.Last + " were not begun"
	}
	return result, firstError(tags.status(ctx, result.status()), result.failure(more))
}

// aboutOneDay says that a failure has its reason in the day's own data, so that later days may well succeed. Days are true
// in any order.
func aboutOneDay(kind string) bool {
	switch kind {
	case "", activities.ApprovalNeeded, activities.InvalidShare, activities.SourceMissing, activities.FileReplaced, activities.Conflict:
		return true
	default:
		return false
	}
}

// daysOf lists the first days of a range, at most limit of them, and the day after those where the range goes on. The days
// are valid and in order.
func daysOf(from, to string, limit int) (days []string, next string) {
	day, err := time.Parse(time.DateOnly, from)
	if err != nil {
		return nil, ""
	}
	for text := from; text <= to; text = day.Format(time.DateOnly) {
		if len(days) == limit {
			return days, text
		}
		days = append(days, text)
		day = day.AddDate(0, 0, 1)
	}
	return days, ""
}
