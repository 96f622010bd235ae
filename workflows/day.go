package workflows

import (
	"context"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"varve/activities"
	"varve/internal/stage"
)

// DayInput asks for one day of a dataset.
type DayInput struct {
	Dataset string `json:"dataset" example:"customer"`
	Day     string `json:"day" example:"2026-09-14"`
	// Contract is the number of the contract to use; 0 means the newest.
	Contract int64 `json:"contract,omitempty"`
	// Reopen takes up again what was set aside, as Replay does.
	Reopen bool `json:"reopen,omitempty"`
}

func (in DayInput) problems() []string {
	return append(append(datasetProblems(in.Dataset), dayProblems("day", in.Day)...), contractProblems(in.Contract)...)
}

// DayResult is what the run of a day did.
type DayResult struct {
	Dataset  string `json:"dataset"`
	Day      string `json:"day"`
	Run      string `json:"run"`
	Contract int64  `json:"contract"`
	// Batches are the day's open batches.
	Batches []int64 `json:"batches,omitempty"`
	// Counts are by name; a table's have its name before theirs.
	Counts map[string]int64 `json:"counts,omitempty"`
	// Versions are those of the tables that the run committed or found, by table.
	Versions map[string]int64 `json:"versions,omitempty"`
}

// day does one day where the dataset's lane started it; started by anyone else it asks the lane and waits.
func (w Workflows) day(ctx workflow.Context, raw, extra converter.RawValue) (DayResult, error) {
	in, err := decode[DayInput](Day, raw, extra)
	if err != nil {
		return DayResult{}, err
	}
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	if parent == nil || parent.ID != activities.LaneID(in.Dataset) {
		return w.askForDay(ctx, in)
	}
	tags, err := w.tag(ctx, in.Dataset, in.Day)
	if err != nil {
		return DayResult{}, err
	}
	info := workflow.GetInfo(ctx)
	r := &dayRun{
		run:    stage.Run{ID: info.WorkflowExecution.RunID, Dataset: in.Dataset, Day: in.Day, Contract: in.Contract},
		reopen: in.Reopen,
		counts: map[string]int64{}, versions: map[string]int64{},
	}
	status, out := failureOf(r.steps(ctx))
	if err := r.record(ctx, status, out); err != nil {
		status, out = failureOf(err)
	}
	return r.result(), firstError(tags.status(ctx, status), out)
}

// dayRun is one run of a day.
type dayRun struct {
	run      stage.Run
	reopen   bool
	batches  []int64
	counts   map[string]int64
	versions map[string]int64
}

// steps are the stages of a day, in order.
func (r *dayRun) steps(ctx workflow.Context) error {
	var a *activities.Activities
	pinned, err := call(ctx, quick, "", a.Pin, stage.PinRequest{Dataset: r.run.Dataset, Contract: r.run.Contract})
	if err != nil {
		return err
	}
	r.run.Contract = pinned.Contract
	landed, err := call(ctx, heavy, "", a.Land, stage.LandRequest{Run: r.run, Reopen: r.reopen})
	if err != nil {
		return err
	}
	r.batches = landed.Batches
	normalized, err := call(ctx, heavy, "", a.Normalize, stage.NormalizeRequest{Run: r.run, Batches: r.batches})
	if err != nil {
		return err
	}
	r.counts["files"], r.counts["records"] = normalized.Files, normalized.Records
	r.counts["events"], r.counts["quarantined"] = normalized.Events, normalized.Quarantined
	if err := r.change(ctx, normalized.ChangeSet, pinned.Targets); err != nil {
		return err
	}
	published, err := call(ctx, heavy, "", a.Publish, stage.PublishRequest{Run: r.run, Versions: r.versions})
	if err != nil {
		return err
	}
	for _, table := range workflow.DeterministicKeys(published.Versions) {
		r.versions[table] = published.Versions[table]
	}
	return nil
}

// change prepares every target at once, has all of it audited, and only then makes one after the other visible.
func (r *dayRun) change(ctx workflow.Context, changeSet string, targets []string) error {
	var a *activities.Activities
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	futures := make([]workflow.Future, len(targets))
	for i, target := range targets {
		futures[i] = workflow.ExecuteActivity(under(ctx, heavy, target), a.Prepare, stage.PrepareRequest{Run: r.run, ChangeSet: changeSet, Target: target})
	}
	all := make([]stage.Prepared, len(targets))
	for i, f := range futures {
		if err := f.Get(ctx, &all[i]); err != nil {
			return err //nolint:wrapcheck // its type is read where the day ends
		}
	}
	if err := r.audit(ctx, all...); err != nil {
		return err
	}
	for i, target := range targets {
		if err := r.commit(ctx, changeSet, target, all[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *dayRun) audit(ctx workflow.Context, prepared ...stage.Prepared) error {
	var a *activities.Activities
	var plans []string
	for _, p := range prepared {
		if p.Plan != "" {
			plans = append(plans, p.Plan)
		}
	}
	if len(plans) == 0 {
		return nil
	}
	_, err := call(ctx, heavy, "", a.Audit, stage.AuditRequest{Run: r.run, Plans: plans})
	return err
}

// commit makes a target's plan visible. Where another writer was first the target is prepared and audited again.
func (r *dayRun) commit(ctx workflow.Context, changeSet, target string, prepared stage.Prepared) error {
	var a *activities.Activities
	for try := 1; prepared.Plan != ""; try++ {
		committed, err := call(ctx, heavy, target, a.Commit, stage.CommitRequest{Run: r.run, Plan: prepared.Plan})
		if err == nil {
			r.found(target, committed.Version, committed.Counts)
			return nil
		}
		if kindOf(err) != activities.Conflict || try == maxConflicts {
			return err
		}
		again, err := call(ctx, heavy, target, a.Prepare, stage.PrepareRequest{Run: r.run, ChangeSet: changeSet, Target: target})
		if err != nil {
			return err
		}
		if err := r.audit(ctx, again); err != nil {
			return err
		}
		prepared = again
	}
	r.found(target, prepared.Version, prepared.Counts)
	return nil
}

// found notes what a target is now. A table that does not exist has no version.
func (r *dayRun) found(target string, version int64, counts map[string]int64) {
	if version >= 0 {
		r.versions[target] = version
	}
	for _, name := range workflow.DeterministicKeys(counts) {
		r.counts[target+"."+name] = counts[name]
	}
}

// record writes the ledger row, also of a run that was canceled.
func (r *dayRun) record(ctx workflow.Context, status string, failure error) error {
	var a *activities.Activities
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	info := workflow.GetInfo(ctx)
	recorded, err := call(ctx, quick, status, a.Record, stage.RecordRequest{
		Run: r.run, Workflow: info.WorkflowExecution.ID, Status: status, Reason: reasonOf(failure),
		Batches: r.batches, Counts: r.counts, Versions: r.versions, Started: info.WorkflowStartTime,
	})
	switch {
	case err == nil && status == stage.Succeeded && recorded.Status == stage.SetAside:
		return typed(activities.ApprovalNeeded, "%s", recorded.Reason) // of an earlier run: this one found nothing wrong
	case err == nil:
		return nil
	}
	_, out := failureOf(err)
	if failure != nil {
		return typed(kindOf(failure), "%s; and the ledger does not have it: %s", reasonOf(failure), reasonOf(out))
	}
	return out
}

func (r *dayRun) result() DayResult {
	return DayResult{
		Dataset: r.run.Dataset, Day: r.run.Day, Run: r.run.ID, Contract: r.run.Contract,
		Batches: r.batches, Counts: r.counts, Versions: r.versions,
	}
}

// call runs one activity and waits for its result.
func call[In, Out any](ctx workflow.Context, w work, about string, activity func(context.Context, In) (Out, error), in In) (Out, error) {
	var out Out
	err := workflow.ExecuteActivity(under(ctx, w, about), activity, in).Get(ctx, &out)
	return out, err
}
