package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
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

// Schedules makes the service's schedules those of the contracts: one a dataset with a cron. A schedule that a person
// paused stays paused; one of a dataset that has no cron any more is removed, if it was made here.
func (s *Service) Schedules(ctx context.Context, contracts []schemas.Published) error {
	wanted := map[string]bool{}
	for _, p := range contracts {
		if p.Contract.Schedule.Cron == "" {
			continue
		}
		id := activities.DailyID(p.Contract.Dataset)
		wanted[id] = true
		if err := s.schedule(ctx, id, p.Contract); err != nil {
			return fmt.Errorf("schedule %s: %w", id, err)
		}
	}
	return s.unschedule(ctx, wanted)
}

func (s *Service) schedule(ctx context.Context, id string, c schemas.Contract) error {
	spec := client.ScheduleSpec{CronExpressions: []string{c.Schedule.Cron}, TimeZoneName: c.Schedule.TimeZone}
	action := &client.ScheduleWorkflowAction{
		ID: id, Workflow: workflows.Daily, TaskQueue: s.Queue,
		Args: []any{workflows.DailyInput{Dataset: c.Dataset, TimeZone: c.Schedule.TimeZone, Day: c.Schedule.Day}},
	}
	_, err := s.Client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: id, Spec: spec, Action: action, CatchupWindow: catchUp, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
		Memo: map[string]any{ownerMemo: s.Queue},
	})
	if err == nil {
		return nil
	}
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return s.Client.ScheduleClient().GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			now := in.Description.Schedule
			now.Spec, now.Action = &spec, action
			now.Policy = &client.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: catchUp}
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
		if err := s.Client.ScheduleClient().GetHandle(ctx, entry.ID).Delete(ctx); err != nil {
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
