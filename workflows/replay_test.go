package workflows_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"varve/workflows"
)

// histories are the recorded ones, by file.
func histories(t *testing.T) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/histories/*.json")
	require.NoError(t, err)
	out := map[string][]byte{}
	for _, name := range names {
		body, err := os.ReadFile(name)
		require.NoError(t, err)
		out[strings.TrimSuffix(filepath.Base(name), ".json")] = body
	}
	return out
}

func history(t *testing.T, body []byte) *historypb.History {
	t.Helper()
	h, err := client.HistoryFromJSON(bytes.NewReader(body), client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

// replayed gives the error of replaying a history with the workflows as they are now.
func replayed(t *testing.T, h *historypb.History) error {
	t.Helper()
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	require.NoError(t, err)
	workflows.Register(replayer, workflows.Workflows{Attributes: true})
	started := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	return replayer.ReplayWorkflowHistoryWithOptions(silent{}, h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()},
	})
}

// silent is a log that nobody reads.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

func TestEveryWorkflowHasARecordedHistory(t *testing.T) {
	t.Parallel()
	all := histories(t)
	types := make([]string, 0, len(all))
	for _, body := range all {
		types = append(types, history(t, body).GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName())
	}
	require.Subset(t, types, append(workflows.Names(), workflows.Lane))
}

func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	for name, body := range histories(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, replayed(t, history(t, body)))
		})
	}
}

func TestRecordedHistoriesDoNotReplayInAnotherOrder(t *testing.T) {
	t.Parallel()
	for name, body := range histories(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			swaps := swapped(history(t, body))
			require.NotEmpty(t, swaps)
			for what, h := range swaps {
				require.Error(t, replayed(t, h), "%s", what)
			}
		})
	}
}

func TestLaneThatWasEndedBeforeItSetItsStatusReplays(t *testing.T) {
	t.Parallel()
	h := history(t, histories(t)["lane_ended"])
	var since int64
	for _, e := range h.GetEvents() {
		if e.GetEventType() == enumspb.EVENT_TYPE_MARKER_RECORDED && e.GetMarkerRecordedEventAttributes().GetMarkerName() == "Version" {
			since = e.GetEventId()
		}
	}
	require.NotZero(t, since)
	h.Events = slices.DeleteFunc(h.GetEvents(), func(e *historypb.HistoryEvent) bool {
		return e.GetEventId() == since || e.GetEventId() > since && e.GetEventType() == enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
	})
	for i, e := range h.GetEvents() {
		e.EventId = int64(i + 1)
	}
	require.NoError(t, replayed(t, h))
}

// swapped gives copies of a history, in each of which two steps of the workflow that follow each other and differ have
// changed places, by what they are.
func swapped(h *historypb.History) map[string]*historypb.History {
	var steps []int
	for i, e := range h.GetEvents() {
		if step(e) != "" {
			steps = append(steps, i)
		}
	}
	out := map[string]*historypb.History{}
	for k := range len(steps) - 1 {
		i, j := steps[k], steps[k+1]
		first, second := step(h.GetEvents()[i]), step(h.GetEvents()[j])
		if first == second {
			continue
		}
		c, _ := proto.Clone(h).(*historypb.History)
		a, b := c.GetEvents()[i], c.GetEvents()[j]
		a.EventType, b.EventType = b.EventType, a.EventType
		a.Attributes, b.Attributes = b.Attributes, a.Attributes
		out[first+" after "+second] = c
	}
	return out
}

// step tells what a workflow did in an event; empty where the event is not its own doing.
func step(e *historypb.HistoryEvent) string {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
		enumspb.EVENT_TYPE_TIMER_STARTED,
		enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
		enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		return e.GetEventType().String()
	default:
		return ""
	}
}

func TestRecordedHistoriesHoldNoNameOfAMachine(t *testing.T) {
	t.Parallel()
	for name, body := range histories(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dec := json.NewDecoder(bytes.NewReader(body))
			dec.UseNumber()
			var doc any
			require.NoError(t, dec.Decode(&doc))
			walk(doc, "", func(member, text string) {
				if member == "identity" {
					known := []string{"varve", "history-service", "temporal-scheduler-default-daily/customer"}
					require.True(t, slices.Contains(known, text), "identity %q", text)
				}
				if plain, err := base64.StdEncoding.DecodeString(text); member == "data" && err == nil {
					text = string(plain)
				}
				for _, mark := range []string{"/home/", "/root/", "/tmp/", ".go:", "@", "goroutine "} {
					require.NotContains(t, text, mark)
				}
				require.False(t, strings.HasPrefix(strings.Trim(text, `"`), "/"), "path %q", text)
			})
		})
	}
}

// walk visits every text of a JSON document with the name of its member.
func walk(doc any, member string, visit func(member, text string)) {
	switch v := doc.(type) {
	case string:
		visit(member, v)
	case []any:
		for _, e := range v {
			walk(e, member, visit)
		}
	case map[string]any:
		for name, e := range v {
			walk(e, name, visit)
		}
	}
}
