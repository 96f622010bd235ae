package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"varve/activities"
	"varve/internal/stage"
	"varve/schemas"
)

// DailyInput is what a schedule starts Daily with.
type DailyInput struct {
	Dataset string `json:"dataset" example:"customer"`
	// TimeZone is the zone in which a time of the schedule has a date.
	TimeZone string `json:"time_zone" example:"Europe/Berlin"`
	// Day is previous or same: whether the date before or the date itself is done.
	Day string `json:"day" example:"previous"`
}

func (in DailyInput) problems() []string {
	out := datasetProblems(in.Dataset)
	if in.Day != schemas.DayPrevious && in.Day != schemas.DaySame {
		out = append(out, fmt.Sprintf("field %q is neither %q nor %q", "day", schemas.DayPrevious, schemas.DaySame))
	}
	return out
}

// daily does the day of a schedule's time, after the days before it that should be done and are not. Started by a trigger
// or by hand it does those that are due by now.
func (w Workflows) daily(ctx workflow.Context, raw, extra converter.RawValue) (DaysResult, error) {
	in, err := decode[DailyInput](Daily, raw, extra)
	if err != nil {
		return DaysResult{}, err
	}
	tags, err := w.tag(ctx, in.Dataset, "")
	if err != nil {
		return DaysResult{}, err
	}
	result := DaysResult{Dataset: in.Dataset}
	days, err := dueDays(ctx, in)
	if err == nil {
		asks := make([]activities.Ask, len(days))
		for i, day := range days {
			asks[i] = activities.Ask{Dataset: in.Dataset, Day: day}
		}
		var ended []DayEnded
		ended, err = ask(ctx, asks, len(asks), goOnAlways)
		result.add(ended)
	}
	if err != nil {
		status, out := failureOf(err)
		return result, firstError(tags.status(ctx, status), out)
	}
	return result, firstError(tags.status(ctx, result.status()), result.failure(""))
}

// dueDays are the days that a start of Daily does, oldest first.
func dueDays(ctx workflow.Context, in DailyInput) ([]string, error) {
	var a *activities.Activities
	due, err := call(ctx, question, "", a.Due, activities.DueRequest{Dataset: in.Dataset, At: nominalTime(ctx), TimeZone: in.TimeZone, Day: in.Day})
	if err != nil {
		return nil, err
	}
	pending, err := call(ctx, quick, "", a.Pending, stage.PendingRequest{Dataset: in.Dataset, Through: due.Day})
	if err != nil {
		return nil, err
	}
	days := pending.Days
	if due.Scheduled && !slices.Contains(days, due.Day) {
		days = append(days, due.Day)
	}
	return days, nil
}

// nominalTime is the time for which a schedule started this workflow, or else when it was started.
func nominalTime(ctx workflow.Context) time.Time {
	at, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime"))
	if !ok {
		at = workflow.GetInfo(ctx).WorkflowStartTime
	}
	return at
}
