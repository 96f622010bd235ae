// Package ledger is the record of what ran: a row a run in the Delta table ops/runs, and its roll-up a dataset and day in
// ops/days. It decides nothing and starts nothing.
//
// ops/runs is the truth. ops/days is a function of it, and its commits name the version of ops/runs that it stands for, so
// that a roll-up that a crash left out is made up by the next Record.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"varve/internal/delta"
	"varve/internal/format"
	"varve/internal/object"
	"varve/internal/value"
)

// The ledger's tables, by their folders in the warehouse.
const (
	RunsRoot = "ops/runs"
	DaysRoot = "ops/days"
)

// Run is one run of a workflow for one dataset.
type Run struct {
	// ID names the run; a run that is resumed keeps it.
	ID string
	// Dataset is the contract's name.
	Dataset string
	// Day is the logical day, as 2026-09-14; empty where the run is for none.
	Day      string
	Workflow string
	Status   string
	// Reason says why, where the status is not the one hoped for.
	Reason string
	// Contract is the number of the contract that the run used.
	Contract int64
	// Batches are those that the run worked on.
	Batches        []int64
	Started, Ended time.Time
	// Counts are figures by their names: events, quarantined, and for a target its name and a dot before each of its own, as
	// in silver.customer_current.inserted.
	Counts map[string]int64
	// Versions are the Delta versions that the run committed or found, by table.
	Versions map[string]int64
}

// Day is the roll-up of a dataset's runs for one day.
type Day struct {
	Dataset, Day string
	// Status, Reason and Contract are those of the run that ended last; Run is its ID.
	Status, Reason string
	Contract       int64
	Run            string
	// Runs is how many runs there were.
	Runs int64
	// Batches are those of all runs.
	Batches []int64
	// Started is when the first run did, Ended when the last one did.
	Started, Ended time.Time
	// Duration is the time that the runs took together, in whole milliseconds.
	Duration time.Duration
	// Counts are the sums over all runs.
	Counts map[string]int64
	// Versions has the newest of each table.
	Versions map[string]int64
}

// Record writes a run's row and refreshes its day. Recording a run again replaces its row if it ended later and differs
// in anything else; otherwise it changes nothing. Any number of runs may be recorded at once.
func Record(ctx context.Context, store object.Store, r Run) error {
	row, err := encodeRun(r)
	if err != nil {
		return fmt.Errorf("record run %q: %w", r.ID, err)
	}
	l := ledger{store: store, now: func() time.Time { return r.Ended }}
	if err := l.record(ctx, r, row); err != nil {
		return fmt.Errorf("record run %q: %w", r.ID, err)
	}
	if err := l.rollUp(ctx); err != nil {
		return fmt.Errorf("record run %q: roll up: %w", r.ID, err)
	}
	return nil
}

// Runs gives a dataset's runs in the order in which they ended; an empty dataset means all. Where nothing was recorded
// there are none.
func Runs(ctx context.Context, store object.Store, dataset string) ([]Run, error) {
	snap, err := ledger{store: store}.latest(ctx, RunsRoot)
	if err != nil || snap == nil {
		return nil, err
	}
	var out []Run
	for _, a := range snap.Files() {
		if dataset != "" && !mayHold(a, colDataset, dataset) {
			continue
		}
		for row, err := range snap.ReadColumns(ctx, a, runsSchema(), nil) {
			if err != nil {
				return nil, err
			}
			if r := decodeRun(row); dataset == "" || r.Dataset == dataset {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, byEnd)
	return out, nil
}

// Days gives a dataset's days in order; an empty dataset means all. Where nothing was recorded there are none.
func Days(ctx context.Context, store object.Store, dataset string) ([]Day, error) {
	snap, err := ledger{store: store}.latest(ctx, DaysRoot)
	if err != nil || snap == nil {
		return nil, err
	}
	var out []Day
	for _, a := range snap.Files() {
		for row, err := range snap.ReadColumns(ctx, a, daysSchema(), nil) {
			if err != nil {
				return nil, err
			}
			if d := decodeDay(row); dataset == "" || d.Dataset == dataset {
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, func(a, b Day) int { return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Dataset, b.Dataset)) })
	return out, nil
}

// byEnd orders runs by their end; the order is total.
func byEnd(a, b Run) int {
	return cmp.Or(a.Ended.Compare(b.Ended), a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
}

// ledger is the two tables in a store.
type ledger struct {
	store object.Store
	now   func() time.Time
}

func (l ledger) table(root string) delta.Table {
	t := delta.At(l.store, root)
	t.Now = l.now
	return t
}

// latest reads a table, nil where it does not exist yet. A format that is not known is refused.
func (l ledger) latest(ctx context.Context, root string) (*delta.Snapshot, error) {
	snap, err := l.table(root).Latest(ctx)
	if errors.Is(err, delta.ErrNoTable) {
		return nil, nil //nolint:nilnil // no table yet is no error, and there is nothing to show
	}
	if err != nil {
		return nil, err
	}
	number, _ := strconv.Atoi(snap.Metadata().Configuration[formatProperty]) // what is no number is no format
	if err := format.Check(root, number, tableFormat); err != nil {
		return nil, err
	}
	return snap, nil
}

// record makes the run's row present. It starts over when another run was recorded in between.
func (l ledger) record(ctx context.Context, r Run, row value.Row) error {
	var fresh delta.Add // the file with just this row is written once, however often the commit is tried
	for {
		snap, err := l.latest(ctx, RunsRoot)
		if err != nil {
			return err
		}
		file, in, err := find(ctx, snap, r.ID)
		if err != nil || (file != nil && !replaces(r, decodeRun(in.row))) {
			return err
		}
		c := commitOf("target.run_id = source.run_id")
		if file != nil {
			c.Removes = []delta.Remove{delta.RemoveOf(*file, r.Ended, true)}
		}
		add := fresh
		if add.Path == "" || len(in.rest) > 0 {
			add, err = l.table(RunsRoot).WriteFile(ctx, delta.FileOptions{Schema: runsSchema()}, each(append(in.rest, row)))
			if err != nil {
				return err
			}
		}
		if len(in.rest) == 0 {
			fresh = add
		}
		c.Adds = []delta.Add{add}
		if again, err := l.commit(ctx, RunsRoot, snap, c); err != nil || !again {
			return err
		}
	}
}

// replaces says whether a run's row takes the place of the one that is there.
func replaces(r, old Run) bool {
	if !r.Ended.After(old.Ended) {
		return false
	}
	r.Ended = old.Ended
	return !sameRun(r, old)
}

// contents is a file taken apart: a run's row and the others.
type contents struct {
	row  value.Row
	rest []value.Row
}

// find looks for a run's row, and gives the file that has it, taken apart; nil where no file has it.
func find(ctx context.Context, snap *delta.Snapshot, id string) (*delta.Add, contents, error) {
	if snap == nil {
		return nil, contents{}, nil
	}
	for _, a := range snap.Files() {
		if !mayHold(a, colRunID, id) {
			continue
		}
		var in contents
		for row, err := range snap.ReadColumns(ctx, a, runsSchema(), nil) {
			switch {
			case err != nil:
				return nil, contents{}, err
			case row[0] == id:
				in.row = slices.Clone(row)
			default:
				in.rest = append(in.rest, slices.Clone(row))
			}
		}
		if in.row != nil {
			return &a, in, nil
		}
	}
	return nil, contents{}, nil
}

// commit commits on top of a snapshot, or creates the table. True says that another commit came first.
func (l ledger) commit(ctx context.Context, root string, snap *delta.Snapshot, c delta.Commit) (bool, error) {
	read := int64(-1)
	if snap == nil {
		m := newMetadata(root)
		c.Metadata = &m
	} else {
		read = snap.Version()
	}
	_, err := l.table(root).Commit(ctx, read, c)
	if _, lost := errors.AsType[*delta.ConflictError](err); lost {
		return true, nil
	}
	return false, err
}
