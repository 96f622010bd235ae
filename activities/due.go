package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"varve/schemas"
)

// DailyID is the id of the schedule that does a dataset's days.
func DailyID(dataset string) string { return "daily/" + dataset }

// MaintainID is the id of the schedule that looks after the files of a dataset's tables.
func MaintainID(dataset string) string { return "maintain/" + dataset }

// DueRequest asks which day a start of Daily means.
type DueRequest struct {
	Dataset string `json:"dataset"`
	// At is the start's nominal time: one of the schedule's times, or the moment of a trigger.
	At       time.Time `json:"at"`
	TimeZone string    `json:"time_zone"`
	// Day is that of the contract's schedule: schemas.DayPrevious or schemas.DaySame.
	Day string `json:"day"`
}

// Due is the day that a start of Daily means.
type Due struct {
	Day string `json:"day"`
	// Scheduled says that the start's time is one of the schedule's times; otherwise Day is the newest that is due.
	Scheduled bool `json:"scheduled"`
}

// Due finds the day that a start of Daily means. Only the server knows the times of a schedule, so it is asked.
func (a *Activities) Due(ctx context.Context, in DueRequest) (Due, error) {
	zone, err := time.LoadLocation(in.TimeZone)
	if err != nil {
		return Due{}, temporal.NewNonRetryableApplicationError(fmt.Sprintf("time_zone %q is not known; use a name such as Europe/Berlin", in.TimeZone), InvalidInput, nil)
	}
	tried := tallyOf(ctx)
	nominal, err := a.nominal(ctx, activity.GetInfo(ctx).Namespace, in)
	if err != nil {
		return Due{}, classify(tried, err)
	}
	return Due{Day: LogicalDay(nominal, zone, in.Day == schemas.DayPrevious), Scheduled: nominal.Equal(in.At)}, nil
}

// LogicalDay is the day that a schedule's nominal time means: its date in the schedule's zone, or the date before.
func LogicalDay(nominal time.Time, zone *time.Location, previous bool) string {
	y, m, d := nominal.In(zone).Date()
	if previous {
		d--
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

// nominal finds the newest time of the schedule that is not after the asked one. It looks back in growing steps, since the
// server lists a bounded number of times, from the oldest.
func (a *Activities) nominal(ctx context.Context, namespace string, in DueRequest) (time.Time, error) {
	const day = 24 * time.Hour
	for _, back := range []time.Duration{1, time.Hour, day, 8 * day, 32 * day, 367 * day} {
		times, err := a.client.WorkflowService().ListScheduleMatchingTimes(ctx, &workflowservice.ListScheduleMatchingTimesRequest{
			Namespace: namespace, ScheduleId: DailyID(in.Dataset),
			StartTime: timestamppb.New(in.At.Add(-back)), EndTime: timestamppb.New(in.At),
		})
		if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
			return time.Time{}, temporal.NewNonRetryableApplicationError(fmt.Sprintf("there is no schedule %q, so no day is due; run Day or Backfill with the days you mean", DailyID(in.Dataset)), Refused, nil)
		}
		if err != nil {
			return time.Time{}, temporalError(ctx, fmt.Errorf("times of schedule %q: %w", DailyID(in.Dataset), err))
		}
		if n := len(times.GetStartTime()); n > 0 {
			return times.GetStartTime()[n-1].AsTime(), nil
		}
	}
	return time.Time{}, temporal.NewNonRetryableApplicationError(fmt.Sprintf("schedule %q had no time in the last year, so no day is due", DailyID(in.Dataset)), Refused, nil)
}
