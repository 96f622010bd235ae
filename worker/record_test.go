package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"varve/activities"
	"varve/internal/delta"
	"varve/internal/quality"
	"varve/internal/source"
	"varve/internal/stage"
	"varve/schemas"
	"varve/worker/embedded"
	"varve/workflows"
)

const (
	// histories is where recorded histories are kept, beside the workflows that must replay them.
	histories = "../workflows/testdata/histories"
	// recorder is the name and the queue of everyone in a recorded history, so that it holds no machine's.
	recorder = "varve"
)

// paper is an engine on paper that has a story for some days.
type paper struct {
	activities.Engine
	lost atomic.Bool
}

func (*paper) Pin(context.Context, stage.PinRequest) (stage.Pinned, error) {
	return stage.Pinned{Contract: 7, Hash: "c0ffee", Targets: []string{"silver.now", "silver.history"}}, nil
}

func (*paper) Land(_ context.Context, in stage.LandRequest) (stage.Landed, error) {
	if in.Run.Day == "2026-09-18" {
		return stage.Landed{}, &source.MissingError{Path: "customer/2026-09-18", Hint: "deliver it, then replay the day"}
	}
	return stage.Landed{Batches: []int64{4}}, nil
}

func (*paper) Normalize(context.Context, stage.NormalizeRequest) (stage.Normalized, error) {
	return stage.Normalized{ChangeSet: "_varve/work/1/changes.json", Files: 1, Records: 10, Events: 9, Quarantined: 1}, nil
}

func (*paper) Prepare(_ context.Context, in stage.PrepareRequest) (stage.Prepared, error) {
	return stage.Prepared{Plan: "_varve/work/1/" + in.Target + ".json", Target: in.Target}, nil
}

func (*paper) Audit(_ context.Context, in stage.AuditRequest) (stage.Audited, error) {
	if in.Run.Day == "2026-09-15" {
		return stage.Audited{}, &quality.ApprovalNeededError{Table: "silver.now", Gone: 60, Live: 100, Share: 0.1}
	}
	return stage.Audited{Checks: 6}, nil
}

func (p *paper) Commit(_ context.Context, in stage.CommitRequest) (stage.Committed, error) {
	if in.Run.Day == "2026-09-16" && p.lost.CompareAndSwap(false, true) {
		return stage.Committed{}, &delta.ConflictError{Table: "silver/now", Version: 3, Operation: "WRITE", Reason: "it changed rows"}
	}
	return stage.Committed{Target: filepath.Base(in.Plan), Version: 3, Counts: map[string]int64{"inserted": 2}}, nil
}

func (*paper) Publish(context.Context, stage.PublishRequest) (stage.Published, error) {
	return stage.Published{Versions: map[string]int64{"gold.sales": 1}}, nil
}

func (*paper) Record(context.Context, stage.RecordRequest) (stage.Recorded, error) {
	return stage.Recorded{}, nil
}

func (*paper) Maintain(context.Context, stage.MaintainRequest) (stage.Maintained, error) {
	return stage.Maintained{Tables: []stage.MaintainedTable{{Table: "silver.now", Version: 4, Done: "compacted"}}}, nil
}

func (*paper) Pending(context.Context, stage.PendingRequest) (stage.Pending, error) {
	return stage.Pending{Days: []string{"2026-09-11"}}, nil
}

// TestRecordHistories records the histories that workflows replays, anew. They are those of the workflows that are in use,
// so a change of a workflow must pass them before it may replace them.
func TestRecordHistories(t *testing.T) {
	t.Parallel()
	if os.Getenv("VARVE_RECORD") != "1" {
		t.Skip("VARVE_RECORD=1 records the histories anew")
	}
	c := onPaper(t)
	run := func(id, workflow string, in any) error {
		r, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: recorder}, workflow, in)
		require.NoError(t, err)
		return r.Get(t.Context(), nil)
	}
	require.NoError(t, run("replay", workflows.Replay, workflows.ReplayInput{Dataset: "customer", Day: "2026-09-14"}))
	require.Error(t, run("by hand", workflows.Day, workflows.DayInput{Dataset: "customer", Day: "2026-09-15"}))
	require.NoError(t, run("conflict", workflows.Day, workflows.DayInput{Dataset: "customer", Day: "2026-09-16"}))
	require.Error(t, run("backfill", workflows.Backfill, workflows.BackfillInput{Dataset: "customer", From: "2026-09-17", To: "2026-09-19"}))
	require.NoError(t, run("maintain", workflows.Maintain, workflows.MaintainInput{Dataset: "customer"}))
	require.NoError(t, run("orders", workflows.Backfill, workflows.BackfillInput{Dataset: "orders", From: "2026-09-21", To: "2026-09-22"}))
	daily := scheduled(t, c)
	require.NoError(t, c.GetWorkflow(t.Context(), daily, "").Get(t.Context(), nil))
	require.NoError(t, c.GetWorkflow(t.Context(), activities.LaneID("orders"), "").Get(t.Context(), nil))
	_, err := activities.Enqueue(t.Context(), c, recorder, "once", activities.Ask{Dataset: "shops", Day: "2026-09-14"})
	require.NoError(t, err)
	eventually(t, func() bool {
		_, err := c.DescribeWorkflow(t.Context(), workflows.DayID("shops", "2026-09-14"), "")
		return err == nil
	})
	require.NoError(t, c.GetWorkflow(t.Context(), workflows.DayID("shops", "2026-09-14"), "").Get(t.Context(), nil))
	require.NoError(t, c.CancelWorkflow(t.Context(), activities.LaneID("shops"), ""))
	require.Error(t, c.GetWorkflow(t.Context(), activities.LaneID("shops"), "").Get(t.Context(), nil))
	for name, id := range map[string]string{
		"day_succeeded":       workflows.DayID("customer", "2026-09-14"),
		"day_approval_needed": workflows.DayID("customer", "2026-09-15"),
		"day_conflict":        workflows.DayID("customer", "2026-09-16"),
		"day_by_hand":         "by hand",
		"replay":              "replay",
		"backfill":            "backfill",
		"maintain":            "maintain",
		"daily":               daily,
		"lane":                activities.LaneID("orders"),
		"lane_ended":          activities.LaneID("shops"),
	} {
		record(t, c, name, id)
	}
}

// onPaper gives a client of a server with a worker whose engine is on paper.
func onPaper(t *testing.T) client.Client {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Options{File: filepath.Join(t.TempDir(), "temporal.db"), Attributes: workflows.AttributeNames()})
	require.NoError(t, err)
	c, err := client.DialContext(t.Context(), client.Options{HostPort: server.Address, Identity: recorder, Logger: silent()})
	require.NoError(t, err)
	w := sdkworker.New(c, recorder, sdkworker.Options{Identity: recorder})
	workflows.Register(w, workflows.Workflows{Attributes: true})
	w.RegisterActivity(activities.New(&paper{}, c))
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		w.Stop()
		c.Close()
		require.NoError(t, server.Stop())
	})
	return c
}

// scheduled has a schedule start Daily for one of its times and gives the workflow's id.
func scheduled(t *testing.T, c client.Client) string {
	t.Helper()
	id := activities.DailyID("customer")
	s, err := c.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: id, Spec: client.ScheduleSpec{CronExpressions: []string{"30 3 * * *"}, TimeZoneName: "Europe/Berlin"},
		Action: &client.ScheduleWorkflowAction{
			ID: id, Workflow: workflows.Daily, TaskQueue: recorder,
			Args: []any{workflows.DailyInput{Dataset: "customer", TimeZone: "Europe/Berlin", Day: schemas.DayPrevious}},
		},
	})
	require.NoError(t, err)
	at := time.Date(2026, 9, 13, 1, 30, 0, 0, time.UTC)
	require.NoError(t, s.Backfill(t.Context(), client.ScheduleBackfillOptions{Backfill: []client.ScheduleBackfill{{
		Start: at.Add(-time.Minute), End: at.Add(time.Minute), Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
	}}}))
	var daily string
	eventually(t, func() bool {
		d, err := s.Describe(t.Context())
		require.NoError(t, err)
		for _, a := range d.Info.RecentActions {
			daily = a.StartWorkflowResult.WorkflowID
		}
		return daily != ""
	})
	return daily
}

// record writes a workflow's history.
func record(t *testing.T, c client.Client, name, id string) {
	t.Helper()
	var h historypb.History
	for events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		h.Events = append(h.Events, anonymous(e))
	}
	body, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(&h)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, body, "", " "))
	require.NoError(t, out.WriteByte('\n'))
	require.NoError(t, os.MkdirAll(histories, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(histories, name+".json"), out.Bytes(), 0o644))
}

// anonymous takes what belongs to a machine or a build out of an event: a worker's own queue, and which program it was.
func anonymous(e *historypb.HistoryEvent) *historypb.HistoryEvent {
	if q := e.GetWorkflowTaskScheduledEventAttributes().GetTaskQueue(); q.GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
		q.Name = recorder
	}
	if a := e.GetWorkflowTaskStartedEventAttributes(); a != nil {
		a.WorkerVersion = nil //nolint:staticcheck // the server still writes it
	}
	if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
		a.WorkerVersion = nil //nolint:staticcheck // the server still writes it
	}
	return e
}
