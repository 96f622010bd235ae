package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"varve/internal/delta"
	"varve/internal/format"
	"varve/internal/ledger"
	"varve/internal/merge"
	"varve/internal/normalize"
	"varve/internal/object"
	"varve/internal/quality"
	"varve/internal/source"
	"varve/internal/state"
)

// The statuses of a run.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	SetAside  = "set_aside"
)

// Pin tells which contract a run is to use, so that every stage of it uses the same one.
func (e *Engine) Pin(ctx context.Context, in PinRequest) (Pinned, error) {
	p, err := LoadContract(ctx, e.Warehouse, in.Dataset, in.Contract)
	if err != nil {
		return Pinned{}, err
	}
	out := Pinned{Contract: p.Number, Hash: p.Hash}
	for _, t := range p.Contract.Targets {
		out.Targets = append(out.Targets, t.Table)
	}
	return out, nil
}

// Land claims the files of the day that no batch has and brings every claimed batch into bronze.
func (e *Engine) Land(ctx context.Context, in LandRequest) (Landed, error) {
	e.progress(ctx, in.Run, "land")
	p, err := LoadContract(ctx, e.Warehouse, in.Run.Dataset, in.Run.Contract)
	if err != nil {
		return Landed{}, err
	}
	if in.Reopen {
		if err := e.reopen(ctx, in.Run); err != nil {
			return Landed{}, err
		}
	}
	if _, err := source.Claim(ctx, e.Warehouse, e.Landing, p.Contract, in.Run.Day, e.Now); err != nil {
		return Landed{}, fmt.Errorf("land %s: %w", in.Run.Dataset, err)
	}
	if _, err := source.Land(ctx, e.Warehouse, e.Landing, p.Contract, e.Now); err != nil {
		return Landed{}, fmt.Errorf("land %s: %w", in.Run.Dataset, err)
	}
	var out Landed
	batches, err := e.batches(ctx, in.Run, source.Open)
	for _, b := range batches {
		out.Batches = append(out.Batches, b.Number)
	}
	return out, err
}

// batches gives the run's day's batches that are in a state.
func (e *Engine) batches(ctx context.Context, r Run, want source.State) ([]source.Batch, error) {
	all, err := source.Batches(ctx, e.Warehouse, r.Dataset)
	if err != nil {
		return nil, fmt.Errorf("batches of %s: %w", r.Dataset, err)
	}
	var out []source.Batch
	for _, s := range all {
		if s.Batch.Day == r.Day && s.State == want {
			out = append(out, s.Batch)
		}
	}
	return out, nil
}

func (e *Engine) reopen(ctx context.Context, r Run) error {
	aside, err := e.batches(ctx, r, source.SetAside)
	if err != nil {
		return err
	}
	for _, b := range aside {
		if err := source.Decide(ctx, e.Warehouse, r.Dataset, b.Number, source.Reopened, "replay", r.ID, e.Now); err != nil {
			return fmt.Errorf("reopen batch %d of %s: %w", b.Number, r.Dataset, err)
		}
	}
	return nil
}

// Normalize makes the change set of the batches that some target has not applied.
func (e *Engine) Normalize(ctx context.Context, in NormalizeRequest) (Normalized, error) {
	e.progress(ctx, in.Run, "normalize")
	p, err := LoadContract(ctx, e.Warehouse, in.Run.Dataset, in.Run.Contract)
	if err != nil {
		return Normalized{}, err
	}
	lacking := map[int64]bool{}
	for _, t := range p.Contract.Targets {
		applied, _, err := e.applied(ctx, in.Run.Dataset, t.Table)
		if err != nil {
			return Normalized{}, fmt.Errorf("normalize %s: %w", in.Run.Dataset, err)
		}
		for _, b := range in.Batches {
			lacking[b] = lacking[b] || !applied.Has(b)
		}
	}
	open, err := e.batches(ctx, in.Run, source.Open)
	if err != nil {
		return Normalized{}, err
	}
	open = slices.DeleteFunc(open, func(b source.Batch) bool { return !lacking[b.Number] })
	if len(open) == 0 {
		return Normalized{}, nil
	}
	db, err := e.database()
	if err != nil {
		return Normalized{}, err
	}
	defer db.Close()
	cs, err := normalize.Run(ctx, normalize.Deps{Warehouse: e.Warehouse, DB: db, Now: e.Now}, p, open, attempt(in.Run.ID))
	if share, ok := errors.AsType[*normalize.InvalidShareError](err); ok {
		return Normalized{}, errors.Join(share, e.setAside(ctx, in.Run, numbers(open), share.Error()))
	}
	if err != nil {
		return Normalized{}, fmt.Errorf("normalize %s: %w", in.Run.Dataset, err)
	}
	out := Normalized{ChangeSet: cs.Key(), Records: cs.Records, Events: cs.Events, Quarantined: cs.Quarantined, Unknown: some(cs.Unknown)}
	for _, b := range open {
		out.Files += int64(len(b.Files))
	}
	return out, nil
}

// applied tells which of a dataset's batches a target has, and the table's version. The batches that it has must be those
// that bronze has under their numbers.
func (e *Engine) applied(ctx context.Context, dataset, table string) (state.Ranges, int64, error) {
	applied, from, version, err := merge.Applied(ctx, e.Warehouse, table, Root(table))
	if err != nil || version < 0 {
		return nil, version, err
	}
	if from.Dataset != dataset {
		return nil, version, &merge.DriftError{Table: table, Reason: fmt.Sprintf("it is kept by dataset %q", from.Dataset)}
	}
	b, err := source.Find(ctx, e.Warehouse, dataset, from.Batch)
	if errors.Is(err, object.ErrNotFound) || err == nil && b.Attempt != from.Attempt {
		return nil, version, &source.LostError{Dataset: dataset, Batch: from.Batch, Table: table}
	}
	return applied, version, err
}

func numbers(batches []source.Batch) []int64 {
	out := make([]int64, len(batches))
	for i, b := range batches {
		out[i] = b.Number
	}
	return out
}

// some gives the first names of many: a payload is not to grow with what a source makes up.
func some(counts map[string]int64) map[string]int64 {
	const most = 20
	names := slices.Sorted(maps.Keys(counts))
	out := make(map[string]int64, min(most, len(names)))
	for _, name := range names[:min(most, len(names))] {
		out[name] = counts[name]
	}
	return out
}

// setAside takes batches out of the way of later days, with a reason.
func (e *Engine) setAside(ctx context.Context, r Run, batches []int64, reason string) error {
	for _, b := range batches {
		if err := source.Decide(ctx, e.Warehouse, r.Dataset, b, source.SetAsideDecision, reason, r.ID, e.Now); err != nil {
			return fmt.Errorf("set batch %d of %s aside: %w", b, r.Dataset, err)
		}
	}
	return nil
}

// Prepare writes the new files of one target and the plan of the commit that will show them.
func (e *Engine) Prepare(ctx context.Context, in PrepareRequest) (Prepared, error) {
	e.progress(ctx, in.Run, "prepare "+in.Target)
	var plan *merge.Plan
	if in.ChangeSet != "" {
		var err error
		if plan, err = e.plan(ctx, in, 0); err != nil {
			return Prepared{}, fmt.Errorf("prepare %s: %w", in.Target, err)
		}
	}
	if plan == nil {
		_, version, err := e.applied(ctx, in.Run.Dataset, in.Target)
		return Prepared{Target: in.Target, Version: version}, err
	}
	body, err := json.Marshal(plan)
	if err != nil {
		return Prepared{}, fmt.Errorf("prepare %s: %w", in.Target, err)
	}
	key := path.Join("_varve/work", attempt(in.Run.ID), "plan.json")
	if err := e.Warehouse.PutIfAbsent(ctx, key, body); err != nil {
		return Prepared{}, fmt.Errorf("prepare %s: %w", in.Target, err)
	}
	return Prepared{Plan: key, Target: in.Target, Version: plan.ReadVersion, Counts: plan.Counts}, nil
}

func (e *Engine) plan(ctx context.Context, in PrepareRequest, sample int) (*merge.Plan, error) {
	p, err := LoadContract(ctx, e.Warehouse, in.Run.Dataset, in.Run.Contract)
	if err != nil {
		return nil, err
	}
	cs, err := normalize.Load(ctx, e.Warehouse, in.ChangeSet)
	if err != nil {
		return nil, err
	}
	db, err := e.database()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	t, err := target(ctx, db, p, in.Target)
	if err != nil {
		return nil, err
	}
	last, err := source.Find(ctx, e.Warehouse, in.Run.Dataset, slices.Max(cs.Batches))
	if err != nil {
		return nil, err
	}
	return merge.Prepare(ctx, merge.Request{
		Store: e.Warehouse, Target: t, Batches: cs.Batches, Sample: sample, Now: e.Now,
		Source: state.Source{Dataset: in.Run.Dataset, Batch: last.Number, Attempt: last.Attempt},
		Events: events(normalize.Read(ctx, e.Warehouse, cs, p.Contract), t),
	})
}

func (e *Engine) loadPlan(ctx context.Context, key string) (*merge.Plan, error) {
	body, err := e.Warehouse.Read(ctx, key, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	var plan merge.Plan
	if err := format.Decode(key, body, merge.Format, &plan); err != nil {
		return nil, err
	}
	return &plan, nil
}

// Audit holds every plan of a run against the rules before any becomes visible. A breach sets the batches aside, so that
// later days go on, and is the error.
func (e *Engine) Audit(ctx context.Context, in AuditRequest) (Audited, error) {
	e.progress(ctx, in.Run, "audit")
	p, err := LoadContract(ctx, e.Warehouse, in.Run.Dataset, in.Run.Contract)
	if err != nil {
		return Audited{}, err
	}
	share := map[string]float64{}
	for _, t := range p.Contract.Targets {
		share[t.Table] = t.MaxDeleteShare
	}
	var out Audited
	for _, key := range in.Plans {
		plan, err := e.loadPlan(ctx, key)
		if err != nil {
			return Audited{}, err
		}
		figures := quality.Figures{Table: plan.Table, Live: plan.Live, Gone: plan.Gone, NotUnique: plan.NotUnique, NullKeys: plan.NullKeys}
		if err := quality.Check(figures, share[plan.Table]); err != nil {
			err = fmt.Errorf("audit %s: %w", in.Run.Dataset, err)
			if isSetAside(err) {
				err = errors.Join(err, e.setAside(ctx, in.Run, plan.Batches, err.Error()))
			}
			return Audited{}, err
		}
		out.Checks += quality.Checks
	}
	return out, nil
}

// Commit makes one plan visible. A *delta.ConflictError says that the table moved on: prepare again.
func (e *Engine) Commit(ctx context.Context, in CommitRequest) (Committed, error) {
	plan, err := e.loadPlan(ctx, in.Plan)
	if err != nil {
		return Committed{}, err
	}
	e.progress(ctx, in.Run, "commit "+plan.Table)
	version, err := merge.Commit(ctx, e.Warehouse, plan)
	if err != nil {
		return Committed{}, err
	}
	return Committed{Target: plan.Table, Version: version, Counts: plan.Counts}, nil
}

// Record writes the run's row into the ledger. A day some of whose batches are set aside has not succeeded.
func (e *Engine) Record(ctx context.Context, in RecordRequest) (Recorded, error) {
	e.progress(ctx, in.Run, "record")
	if in.Status == Succeeded {
		aside, err := e.batches(ctx, in.Run, source.SetAside)
		if err != nil {
			return Recorded{}, err
		}
		if len(aside) > 0 { // a run that took none of them up does not make the day whole
			in.Status, in.Reason = SetAside, fmt.Sprintf("batches %v of the day are set aside: replay the day", numbers(aside))
		}
	}
	err := ledger.Record(ctx, e.Warehouse, ledger.Run{
		ID: in.Run.ID, Dataset: in.Run.Dataset, Day: in.Run.Day, Workflow: in.Workflow, Status: in.Status, Reason: in.Reason,
		Contract: in.Run.Contract, Batches: in.Batches, Started: in.Started, Ended: e.Now(), Counts: in.Counts, Versions: in.Versions,
	})
	if err != nil {
		return Recorded{}, fmt.Errorf("record run %s: %w", in.Run.ID, err)
	}
	return Recorded{Status: in.Status, Reason: in.Reason}, nil
}

// DayRequest asks for a whole day in one process.
type DayRequest struct {
	Dataset, Day string
	// Contract is the number to use; 0 means the newest.
	Contract int64
	// Run names the run in the ledger.
	Run string
	// Reopen takes up batches that were set aside.
	Reopen bool
}

// DayResult tells what a day did.
type DayResult struct {
	Run    Run
	Landed Landed
	// Normalized counts what of it was new to some target.
	Normalized Normalized
	// Waiting are models that were not made, each with the table that is not there yet.
	Waiting []string
	// Counts are by name; a target's have its name and a dot before theirs.
	Counts map[string]int64
	// Versions are those of the tables that the run committed or found, by table.
	Versions map[string]int64
}

// attempts is how often a day prepares a target again because somebody else committed to it in between.
const attempts = 10

// Day runs every stage of a day in order: what the Day workflow does, without Temporal.
func (e *Engine) Day(ctx context.Context, in DayRequest) (DayResult, error) {
	started := e.Now()
	out, err := e.day(ctx, in)
	if out.Run.Contract == 0 {
		return out, err // nothing began
	}
	r := RecordRequest{
		Run: out.Run, Workflow: "varve run", Status: Succeeded, Batches: out.Landed.Batches, Counts: out.Counts, Versions: out.Versions, Started: started,
	}
	if err != nil {
		r.Status, r.Reason = Failed, err.Error()
		if isSetAside(err) {
			r.Status = SetAside
		}
	}
	recorded, recordErr := e.Record(context.WithoutCancel(ctx), r)
	if err == nil && recordErr == nil && recorded.Status == SetAside {
		err = &SetAsideError{Dataset: in.Dataset, Reason: recorded.Reason}
	}
	return out, errors.Join(err, recordErr)
}

// SetAsideError says that batches of a day wait for a person, though nothing failed in this run of it.
type SetAsideError struct{ Dataset, Reason string }

func (e *SetAsideError) Error() string { return e.Dataset + ": " + e.Reason }

func isSetAside(err error) bool {
	_, approval := errors.AsType[*quality.ApprovalNeededError](err)
	_, broken := errors.AsType[*quality.BrokenError](err)
	_, share := errors.AsType[*normalize.InvalidShareError](err)
	return approval || broken || share
}

func (e *Engine) day(ctx context.Context, in DayRequest) (DayResult, error) {
	out := DayResult{Counts: map[string]int64{}, Versions: map[string]int64{}}
	pinned, err := e.Pin(ctx, PinRequest{Dataset: in.Dataset, Contract: in.Contract})
	if err != nil {
		return out, err
	}
	out.Run = Run{ID: in.Run, Dataset: in.Dataset, Day: in.Day, Contract: pinned.Contract}
	if out.Landed, err = e.Land(ctx, LandRequest{Run: out.Run, Reopen: in.Reopen}); err != nil {
		return out, err
	}
	normalized, err := e.Normalize(ctx, NormalizeRequest{Run: out.Run, Batches: out.Landed.Batches})
	if err != nil {
		return out, err
	}
	out.Normalized = normalized
	out.Counts["files"], out.Counts["records"] = normalized.Files, normalized.Records
	out.Counts["events"], out.Counts["quarantined"] = normalized.Events, normalized.Quarantined
	if err := e.apply(ctx, pinned.Targets, normalized.ChangeSet, &out); err != nil {
		return out, err
	}
	models, err := e.Publish(ctx, PublishRequest{Run: out.Run, Versions: out.Versions})
	maps.Copy(out.Versions, models.Versions)
	out.Waiting = models.Waiting
	return out, err
}

// apply prepares, audits and commits until every target has the change set.
func (e *Engine) apply(ctx context.Context, targets []string, changeSet string, out *DayResult) error {
	for range attempts {
		plans := map[string]string{}
		for _, t := range targets {
			prepared, err := e.Prepare(ctx, PrepareRequest{Run: out.Run, ChangeSet: changeSet, Target: t})
			if err != nil {
				return err
			}
			switch {
			case prepared.Plan != "":
				plans[t] = prepared.Plan
			case prepared.Version >= 0:
				out.Versions[t] = prepared.Version
			}
		}
		if len(plans) == 0 {
			return nil
		}
		if _, err := e.Audit(ctx, AuditRequest{Run: out.Run, Plans: slices.Sorted(maps.Values(plans))}); err != nil {
			return err
		}
		err := e.commit(ctx, targets, plans, out)
		if _, conflict := errors.AsType[*delta.ConflictError](err); !conflict {
			return err
		}
	}
	return fmt.Errorf("day %s of %s: other writers kept committing first, %d times: run it again", out.Run.Day, out.Run.Dataset, attempts)
}

func (e *Engine) commit(ctx context.Context, targets []string, plans map[string]string, out *DayResult) error {
	for _, t := range targets {
		if plans[t] == "" {
			continue
		}
		done, err := e.Commit(ctx, CommitRequest{Run: out.Run, Plan: plans[t]})
		if err != nil {
			return err
		}
		out.Versions[t] = done.Version
		for name, n := range done.Counts {
			out.Counts[t+"."+name] = n
		}
	}
	return nil
}
