// Package merge turns a change set, a table and its hidden state into a plan: the new files of one Delta commit that is
// not visible yet. It folds whole keys and rewrites whole files; it decides nothing about whether the plan may be seen.
package merge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/scd"
	"varve/internal/state"
	"varve/internal/value"
)

// Format is the number of the newest format of plans that this program reads, and the one it writes.
const Format = 1

// Target is a table that a dataset maintains, with what its rows mean.
type Target struct {
	// Table is the name, as silver.customer_current; Root is where it lies in the store.
	Table, Root string
	Description string
	Type        scd.Type
	// Schema is the table's columns in order; for a new table this is the order it gets.
	Schema value.Schema
	// State is the shape of keys, data columns, sequences and bounds.
	State state.Layout
	Spec  scd.Spec
	// Start, End and Current name the columns of a history; Deleted that of a logical delete. Empty where there is none.
	Start, End, Current, Deleted string
	// Contract and ContractHash are what a commit says that it was made by.
	Contract     int64
	ContractHash string
}

// Event is an event of a target with its key.
type Event struct {
	Key   value.Row
	Event scd.Event
}

// Request is one batch of work for a target.
type Request struct {
	Store  object.Store
	Target Target
	// Batches are the batches whose events these are, of Source, which names the highest of them.
	Batches []int64
	Source  state.Source
	Events  iter.Seq2[Event, error]
	// Sample is how many changed rows the plan is to show, for a dry run; 0 shows none.
	Sample int
	Now    func() time.Time
}

// Plan is a commit that is ready: all its files are written, none is visible.
type Plan struct {
	Format  int    `json:"format"`
	Attempt string `json:"attempt"`
	Table   string `json:"table"`
	Root    string `json:"root"`
	// Batches are those that the target does not have yet.
	Batches []int64 `json:"batches"`
	// ReadVersion is the table version that the plan was made from, -1 for a new table.
	ReadVersion int64          `json:"read_version"`
	Commit      delta.Commit   `json:"commit"`
	State       state.Manifest `json:"state"`
	Counts      Counts         `json:"counts"`
	// Live are the keys alive before; Gone those of them that are not alive after.
	Live int64 `json:"live"`
	Gone int64 `json:"gone"`
	// NotUnique are keys that would have more than one current row, NullKeys rows that would have a null in their key.
	NotUnique int64 `json:"not_unique"`
	NullKeys  int64 `json:"null_keys"`
	// Changes are some rows that would change, in Schema's order, where the request asked for them.
	Changes []Change     `json:"-"`
	Schema  value.Schema `json:"-"`
}

// Change is one row that a plan adds or takes away.
type Change struct {
	Added bool
	Row   value.Row
}

// Applied tells which batches a target has applied, of which source, and the table's version; -1 where there is no table yet.
func Applied(ctx context.Context, store object.Store, table, root string) (state.Ranges, state.Source, int64, error) {
	snap, err := latest(ctx, delta.At(store, root))
	if err != nil || snap == nil {
		return nil, state.Source{}, -1, err
	}
	n, ok := snap.Txn(state.AppID)
	if !ok {
		return nil, state.Source{}, snap.Version(), &NotOursError{Table: table}
	}
	m, err := state.Load(ctx, store, root, n)
	return m.Applied, m.Source, snap.Version(), err
}

// latest gives the newest snapshot, or nil where there is no table.
func latest(ctx context.Context, t delta.Table) (*delta.Snapshot, error) {
	snap, err := t.Latest(ctx)
	if errors.Is(err, delta.ErrNoTable) {
		return nil, nil //nolint:nilnil // no table yet is not a fault here: nil stands for version -1
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", t.Root, err)
	}
	return snap, nil
}

// Prepare folds the events into the table's newest version and writes the files of the commit that shows the outcome. It
// gives nil where the target has applied all the batches. What it wrote is unreferenced until Commit.
func Prepare(ctx context.Context, r Request) (*Plan, error) {
	p := &preparation{Request: r, table: delta.At(r.Store, r.Target.Root)}
	done, err := p.open(ctx)
	if err != nil || done {
		return nil, err
	}
	if err := p.collect(ctx); err != nil {
		return nil, fmt.Errorf("merge %s: %w", r.Target.Table, err)
	}
	if err := p.fold(); err != nil {
		return nil, fmt.Errorf("merge %s: %w", r.Target.Table, err)
	}
	plan, err := p.write(ctx)
	if err != nil {
		return nil, fmt.Errorf("merge %s: %w", r.Target.Table, err)
	}
	return plan, nil
}

// Commit makes a plan visible: the state manifest first, which nothing reads yet, then the one Delta commit that names
// it. Committing a plan again is success. A *delta.ConflictError asks for a new plan.
func Commit(ctx context.Context, store object.Store, p *Plan) (int64, error) {
	if err := state.Put(ctx, store, p.Root, p.State); err != nil {
		if errors.Is(err, object.ErrExists) {
			return 0, &delta.ConflictError{Table: p.Table, Version: p.ReadVersion, Reason: "another attempt took its state number"}
		}
		return 0, err
	}
	version, err := delta.At(store, p.Root).Commit(ctx, p.ReadVersion, p.Commit)
	if err != nil {
		return 0, fmt.Errorf("commit %s: %w", p.Table, err)
	}
	return version, nil
}
