package worker_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/stage"
	"varve/schemas"
	"varve/worker"
	"varve/workflows"
)

// contract is the contract of every test's dataset, by its name.
const contract = `
dataset: NAME
source: {path: "NAME/{day}/*.json", format: json, delivery: changes}
columns:
  id: {type: string, required: true}
  city: {type: string}
  seq: {type: bigint}
keys: [id]
sequence_by: seq
max_invalid_share: 0.1
targets:
  - {table: silver.NAME_now, stored_as_scd_type: 1}
  - {table: silver.NAME_history, stored_as_scd_type: 2, history: {start: valid_from, end: valid_to, current: is_current}}
`

// watched is the engine itself, with somebody who sees a stage before it runs and may hold it up or fail it.
type watched struct {
	*stage.Engine
	before func(ctx context.Context, name, day string) error
}

func (w watched) Land(ctx context.Context, in stage.LandRequest) (stage.Landed, error) {
	if err := w.before(ctx, "Land", in.Run.Day); err != nil {
		return stage.Landed{}, err
	}
	return w.Engine.Land(ctx, in)
}

func (w watched) Audit(ctx context.Context, in stage.AuditRequest) (stage.Audited, error) {
	if err := w.before(ctx, "Audit", in.Run.Day); err != nil {
		return stage.Audited{}, err
	}
	return w.Engine.Audit(ctx, in)
}

// watcher notes the stages that it saw, and holds one up until its gate opens.
type watcher struct {
	mu   sync.Mutex
	seen []string
	// hold is the stage that waits for gate; none where it is empty.
	hold string
	gate chan struct{}
	// fail says what a stage fails with, which it does after it was seen; nil where none fails.
	fail func(name string) error
}

func (w *watcher) before(ctx context.Context, name, day string) error {
	w.mu.Lock()
	w.seen = append(w.seen, name+" "+day)
	w.mu.Unlock()
	if w.fail != nil {
		return w.fail(name)
	}
	if name != w.hold {
		return nil
	}
	select {
	case <-w.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// saw gives the days for which a stage began, in order.
func (w *watcher) saw(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, s := range w.seen {
		if day, ok := strings.CutPrefix(s, name+" "); ok {
			out = append(out, day)
		}
	}
	return out
}

// world is one dataset in memory, with a worker on the shared server. Its queue has the dataset's name.
type world struct {
	*worker.Service
	watcher
	dataset            string
	warehouse, landing object.Store
}

// newWorld publishes the contract of a dataset and starts its worker. A test has a dataset of its own, since lanes and
// schedules are named after it. Stages of the name held wait until the gate is closed.
func newWorld(t *testing.T, dataset, held string) *world {
	t.Helper()
	w := &world{
		dataset: dataset, warehouse: memstore.New(), landing: memstore.New(),
		watcher: watcher{hold: held, gate: make(chan struct{})},
	}
	w.publish(t, contract)
	s, err := server()
	require.NoError(t, err)
	w.Service, err = worker.Join(t.Context(), worker.Config{
		Temporal: schemas.Temporal{Address: s.Address, Namespace: "default", TaskQueue: dataset},
	}.WithDefaults(), w.engine(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Stop()) })
	return w
}

func (w *world) engine(t *testing.T) watched {
	t.Helper()
	return watched{
		Engine: stage.New(stage.Options{Warehouse: w.warehouse, Landing: w.landing, Dir: t.TempDir(), MemoryMiB: 256, Now: time.Now}),
		before: w.before,
	}
}

// publish makes a text the dataset's contract.
func (w *world) publish(t *testing.T, text string) schemas.Published {
	t.Helper()
	c, err := schemas.Parse([]byte(strings.ReplaceAll(text, "NAME", w.dataset)))
	require.NoError(t, err)
	done, err := stage.PublishContract(t.Context(), w.warehouse, c)
	require.NoError(t, err)
	return done.Published
}

// plant lands one record for each of the days.
func (w *world) plant(t *testing.T, days ...string) {
	t.Helper()
	for i, day := range days {
		w.put(t, day, `{"id": "a", "city": "Pune", "seq": `+string(rune('1'+i))+`}`)
	}
}

func (w *world) put(t *testing.T, day string, records ...string) {
	t.Helper()
	require.NoError(t, w.landing.Put(t.Context(), w.dataset+"/"+day+"/part.json", []byte(strings.Join(records, "\n")+"\n")))
}

// start starts a workflow under an id that the dataset makes the test's own.
func (w *world) start(t *testing.T, id, workflow string, args ...any) client.WorkflowRun {
	t.Helper()
	run, err := w.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: w.id(id), TaskQueue: w.Queue}, workflow, args...)
	require.NoError(t, err)
	return run
}

func (w *world) id(name string) string { return w.dataset + "/" + name }

func (w *world) day(day string) workflows.DayInput {
	return workflows.DayInput{Dataset: w.dataset, Day: day}
}

// events are those of a workflow's history that are of a kind.
func (w *world) events(t *testing.T, id string, kind enumspb.EventType) []*historypb.HistoryEvent {
	t.Helper()
	var out []*historypb.HistoryEvent
	for events := w.Client.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		if e.GetEventType() == kind {
			out = append(out, e)
		}
	}
	return out
}

// activities are the types of the activities of a workflow, in the order in which it asked for them.
func (w *world) activities(t *testing.T, id string) []string {
	t.Helper()
	scheduled := w.events(t, id, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
	out := make([]string, 0, len(scheduled))
	for _, e := range scheduled {
		out = append(out, e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName())
	}
	return out
}

// found are the ids of the workflows that a query finds, in order.
func (w *world) found(t *testing.T, query string) []string {
	t.Helper()
	list, err := w.Client.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
	require.NoError(t, err)
	out := make([]string, 0, len(list.GetExecutions()))
	for _, e := range list.GetExecutions() {
		out = append(out, e.GetExecution().GetWorkflowId())
	}
	slices.Sort(out)
	return out
}

// requireFailure checks the type and the words of a workflow's failure.
func requireFailure(t *testing.T, err error, kind, words string) {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, kind, app.Type())
	require.Contains(t, app.Message(), words)
}
