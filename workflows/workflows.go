// Package workflows says what happens in which order: the stages of a day, the days of a dataset, and who waits for whom.
// A workflow computes nothing and touches nothing; activities do. Nothing here needs a server to be tested.
package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"varve/activities"
)

// The types of the workflows, by the names that a person sees.
const (
	Backfill = "Backfill"
	Daily    = "Daily"
	Day      = "Day"
	Maintain = "Maintain"
	Replay   = "Replay"
	Lane     = activities.Lane
)

// Names lists the workflows that a person may start.
func Names() []string { return []string{Backfill, Daily, Day, Maintain, Replay} }

// Workflows are the workflows of a worker.
type Workflows struct {
	// Attributes says that the namespace has the search attributes that workflows set on themselves.
	Attributes bool
}

// Register tells a worker, or a replayer, every workflow there is.
func Register(r worker.WorkflowRegistry, w Workflows) {
	for _, f := range []struct {
		name string
		run  any
	}{{Backfill, w.backfill}, {Daily, w.daily}, {Day, w.day}, {Maintain, w.maintain}, {Replay, w.replay}, {Lane, w.lane}} {
		r.RegisterWorkflowWithOptions(f.run, workflow.RegisterOptions{Name: f.name})
	}
	r.RegisterDynamicWorkflow(unknown, workflow.DynamicRegisterOptions{})
}

// DayID is the id of the run of a day that its lane starts.
func DayID(dataset, day string) string { return "day/" + dataset + "/" + day }
