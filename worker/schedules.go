package worker

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"varve/activities"
	"varve/schemas"
	"varve/workflows"
)

// catchUp is how late the service may start a schedule's time; older days are the ledger's to repair.
const catchUp = time.Hour

// ownerMemo marks a schedule with the queue of the workers that made it, so that only such are removed.
const ownerMemo = "varve"

// upkeep is how often the files of a scheduled dataset's tables are looked after.
const upkeep = 24 * time.Hour

// Schedules makes the service's schedules those of the contracts: for a dataset with a cron one that does its days and one
// that maintains its tables. A schedule that a person paused stays paused; one of a dataset that has no cron any more is
// removed, if it was made here.
func (s *Service) Schedules(ctx context.Context, contracts []schemas.Published) error {
	wanted := map[string]bool{}
	for _, p := range contracts {
		if p.Contract.Schedule.Cron == "" {
			continue
		}
		for _, o := range []client.ScheduleOptions{s.daily(p.Contract), s.maintain(p.Contract)} {
			wanted[o.ID] = true
			if err := s.schedule(ctx, o); err != nil {
				return fmt.Errorf("schedule %s: %w", o.ID, err)
			}
		}
	}
	return s.unschedule(ctx, wanted)
}

func (s *Service) daily(c schemas.Contract) client.ScheduleOptions {
	id := activities.DailyID(c.Dataset)
	return client.ScheduleOptions{
		ID:   id,
		Spec: client.ScheduleSpec{CronExpressions: []string{c.Schedule.Cron}, TimeZoneName: c.Schedule.TimeZone},
		Action: &client.ScheduleWorkflowAction{
			ID: id, Workflow: workflows.Daily, TaskQueue: s.Queue,
			Args: []any{workflows.DailyInput{Dataset: c.Dataset, TimeZone: c.Schedule.TimeZone, Day: c.Schedule.Day}},
		},
		CatchupWindow: catchUp, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
	}
}

// maintain spreads the datasets over the day, so that a project's upkeep does not begin all at once. A time that was missed,
// or that finds the one before still at work, is let go: the next does what is left.
func (s *Service) maintain(c schemas.Contract) client.ScheduleOptions {
	id := activities.MaintainID(c.Dataset)
	hash := fnv.New32a()
	hash.Write([]byte(id)) //nolint:gosec // a hash never fails
	offset := time.Duration(hash.Sum32()) * time.Second % upkeep
	return client.ScheduleOptions{
		ID:   id,
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: upkeep, Offset: offset.Truncate(time.Minute)}}},
		Action: &client.ScheduleWorkflowAction{
			ID: id, Workflow: workflows.Maintain, TaskQueue: s.Queue, Args: []any{workflows.MaintainInput{Dataset: c.Dataset}},
		},
		CatchupWindow: catchUp, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	}
}

func (s *Service) schedule(ctx context.Context, o client.ScheduleOptions) error {
	o.Memo = map[string]any{ownerMemo: s.Queue}
	_, err := s.Client.ScheduleClient().Create(ctx, o)
	if err == nil {
		return nil
	}
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return s.Client.ScheduleClient().GetHandle(ctx, o.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			now := in.Description.Schedule
			now.Spec, now.Action = &o.Spec, o.Action
			now.Policy = &client.SchedulePolicies{Overlap: o.Overlap, CatchupWindow: o.CatchupWindow}
			return &client.ScheduleUpdate{Schedule: &now}, nil
		},
	})
}

func (s *Service) unschedule(ctx context.Context, wanted map[string]bool) error {
	list, err := s.Client.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return fmt.Errorf("list schedules: %w", err)
	}
	for list.HasNext() {
		entry, err := list.Next()
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		if wanted[entry.ID] || !s.owns(entry) {
			continue
		}
		err = s.Client.ScheduleClient().GetHandle(ctx, entry.ID).Delete(ctx)
		if _, gone := errors.AsType[*serviceerror.NotFound](err); err != nil && !gone { // another worker may have been faster
			return fmt.Errorf("remove schedule %s: %w", entry.ID, err)
		}
	}
	return nil
}

// owns says whether a schedule was made for this task queue.
func (s *Service) owns(entry *client.ScheduleListEntry) bool {
	var queue string
	payload := entry.Memo.GetFields()[ownerMemo]
	return payload != nil && converter.GetDefaultDataConverter().FromPayload(payload, &queue) == nil && queue == s.Queue
}
