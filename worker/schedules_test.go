package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"varve/activities"
	"varve/internal/stage"
	"varve/schemas"
	"varve/workflows"
)

// at gives the contract a schedule: a cron, a zone and which day it means.
func at(cron, zone, day string) string {
	return contract + "schedule: {cron: \"" + cron + "\", time_zone: " + zone + ", day: " + day + "}\n"
}

func (w *world) schedule(t *testing.T) client.ScheduleHandle {
	t.Helper()
	return w.Client.ScheduleClient().GetHandle(t.Context(), activities.DailyID(w.dataset))
}

func (w *world) described(t *testing.T) *client.ScheduleDescription {
	t.Helper()
	d, err := w.schedule(t).Describe(t.Context())
	require.NoError(t, err)
	return d
}

// hours are the hours of a schedule's times.
func hours(d *client.ScheduleDescription) []int {
	var out []int
	for _, c := range d.Schedule.Spec.Calendars {
		for _, h := range c.Hour {
			out = append(out, h.Start)
		}
	}
	return out
}

func TestSchedulesAreThoseOfTheContracts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "planned", "")
	plain := w.publish(t, contract)
	require.NoError(t, w.Schedules(t.Context(), []schemas.Published{plain}))
	_, err := w.schedule(t).Describe(t.Context())
	require.Error(t, err)

	require.NoError(t, w.Schedules(t.Context(), []schemas.Published{w.publish(t, at("30 3 * * *", "Europe/Berlin", "previous"))}))
	made := w.described(t)
	require.Equal(t, []int{3}, hours(made))
	require.Equal(t, "Europe/Berlin", made.Schedule.Spec.TimeZoneName)
	require.Equal(t, enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, made.Schedule.Policy.Overlap)
	require.Equal(t, time.Hour, made.Schedule.Policy.CatchupWindow)
	require.Equal(t, workflows.DailyInput{Dataset: "planned", TimeZone: "Europe/Berlin", Day: "previous"}, inputOf(t, made))

	require.NoError(t, w.schedule(t).Pause(t.Context(), client.SchedulePauseOptions{Note: "the source moves house"}))
	require.NoError(t, w.Schedules(t.Context(), []schemas.Published{w.publish(t, at("15 6 * * *", "Asia/Kolkata", "same"))}))
	changed := w.described(t)
	require.Equal(t, []int{6}, hours(changed))
	require.Equal(t, "Asia/Kolkata", changed.Schedule.Spec.TimeZoneName)
	require.Equal(t, workflows.DailyInput{Dataset: "planned", TimeZone: "Asia/Kolkata", Day: "same"}, inputOf(t, changed))
	require.True(t, changed.Schedule.State.Paused)
	require.Equal(t, "the source moves house", changed.Schedule.State.Note)
}

// inputOf is what a schedule starts Daily with.
func inputOf(t *testing.T, d *client.ScheduleDescription) workflows.DailyInput {
	t.Helper()
	action, ok := d.Schedule.Action.(*client.ScheduleWorkflowAction)
	require.True(t, ok)
	require.Equal(t, workflows.Daily, action.Workflow)
	require.Len(t, action.Args, 1)
	var in workflows.DailyInput
	payload, ok := action.Args[0].(*commonpb.Payload)
	require.True(t, ok)
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &in))
	return in
}

func TestOnlyOwnSchedulesAreRemovedWithTheirContracts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "removed", "")
	published := []schemas.Published{w.publish(t, at("30 3 * * *", "UTC", "previous"))}
	require.NoError(t, w.Schedules(t.Context(), published))
	others := map[string]map[string]any{"removed/by hand": nil, "removed/other project": {"varve": "another queue"}}
	for id, memo := range others {
		_, err := w.Client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
			ID: id, Memo: memo, Paused: true, Spec: client.ScheduleSpec{CronExpressions: []string{"0 4 * * *"}},
			Action: &client.ScheduleWorkflowAction{ID: id, Workflow: workflows.Maintain, TaskQueue: "nobody"},
		})
		require.NoError(t, err)
	}
	eventually(t, func() bool { return len(listed(t, w, others)) == len(others)+1 }) // the list lags behind
	require.NoError(t, w.Schedules(t.Context(), published))
	w.described(t)

	require.NoError(t, w.Schedules(t.Context(), nil))
	_, err := w.schedule(t).Describe(t.Context())
	require.Error(t, err)
	require.NoError(t, w.Schedules(t.Context(), nil)) // it may still be listed
	for id := range others {
		_, err := w.Client.ScheduleClient().GetHandle(t.Context(), id).Describe(t.Context())
		require.NoError(t, err)
	}
}

// listed are the listed schedules of this test.
func listed(t *testing.T, w *world, others map[string]map[string]any) []string {
	t.Helper()
	list, err := w.Client.ScheduleClient().List(t.Context(), client.ScheduleListOptions{})
	require.NoError(t, err)
	var out []string
	for list.HasNext() {
		entry, err := list.Next()
		require.NoError(t, err)
		if _, other := others[entry.ID]; other || entry.ID == activities.DailyID(w.dataset) {
			out = append(out, entry.ID)
		}
	}
	return out
}

func TestScheduledTablesAreMaintainedOnASchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "kept", "")
	w.plant(t, "2026-09-14")
	require.NoError(t, w.Run(t.Context(), w.id("day"), workflows.Day, w.day("2026-09-14"), nil))
	published := []schemas.Published{w.publish(t, at("30 3 * * *", "UTC", "previous"))}
	require.NoError(t, w.Schedules(t.Context(), published))
	upkeep := w.Client.ScheduleClient().GetHandle(t.Context(), activities.MaintainID("kept"))
	d, err := upkeep.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, 24*time.Hour, d.Schedule.Spec.Intervals[0].Every)
	require.Equal(t, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, d.Schedule.Policy.Overlap)

	require.NoError(t, upkeep.Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	eventually(t, func() bool {
		d, err = upkeep.Describe(t.Context())
		require.NoError(t, err)
		return len(d.Info.RecentActions) == 1
	})
	var done stage.Maintained
	started := d.Info.RecentActions[0].StartWorkflowResult
	require.NoError(t, w.Client.GetWorkflow(t.Context(), started.WorkflowID, started.FirstExecutionRunID).Get(t.Context(), &done))
	require.Contains(t, tables(done), "silver.kept_now")

	require.NoError(t, w.Schedules(t.Context(), []schemas.Published{w.publish(t, contract)}))
	_, err = upkeep.Describe(t.Context())
	require.Error(t, err)
}

func tables(m stage.Maintained) []string {
	out := make([]string, 0, len(m.Tables))
	for _, t := range m.Tables {
		out = append(out, t.Table)
	}
	return out
}

// daily waits for the n-th start of a schedule and gives its result and the time it was started for.
func (w *world) daily(t *testing.T, n int) (workflows.DaysResult, time.Time) {
	t.Helper()
	var started []client.ScheduleActionResult
	eventually(t, func() bool {
		started = w.described(t).Info.RecentActions
		return len(started) == n
	})
	id := started[n-1].StartWorkflowResult.WorkflowID
	var out workflows.DaysResult
	require.NoError(t, w.Client.GetWorkflow(t.Context(), id, "").Get(t.Context(), &out))
	d, err := w.Client.DescribeWorkflow(t.Context(), id, "")
	require.NoError(t, err)
	nominal, ok := d.TypedSearchAttributes.GetTime(temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime"))
	require.True(t, ok)
	return out, nominal
}

func TestTriggerNowDoesTheDueDayOnceAndATimeOfTheScheduleItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "triggered", "")
	now := time.Now().UTC()
	for _, day := range []time.Time{now.AddDate(0, 0, -1), now} { // midnight may pass meanwhile
		w.put(t, day.Format(time.DateOnly), `{"id": "a", "city": "Pune", "seq": 1}`)
	}
	require.NoError(t, w.Schedules(t.Context(), []schemas.Published{w.publish(t, at("0 0 * * *", "UTC", "previous"))}))
	require.NoError(t, w.schedule(t).Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	first, nominal := w.daily(t, 1)
	due := activities.LogicalDay(nominal, time.UTC, true)
	require.Equal(t, workflows.DaysResult{Dataset: "triggered", Succeeded: 1, First: due, Last: due}, first)

	midnight := time.Date(nominal.Year(), nominal.Month(), nominal.Day(), 0, 0, 0, 0, time.UTC)
	require.NoError(t, w.schedule(t).Backfill(t.Context(), client.ScheduleBackfillOptions{Backfill: []client.ScheduleBackfill{{
		Start: midnight.Add(-time.Minute), End: midnight.Add(time.Minute), Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
	}}}))
	again, nominal := w.daily(t, 2)
	require.Equal(t, midnight, nominal.UTC())
	require.Equal(t, workflows.DaysResult{Dataset: "triggered", Succeeded: 1, First: due, Last: due}, again)
}
