package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"varve/internal/delta"
	"varve/internal/layout"
	"varve/internal/ledger"
	"varve/internal/normalize"
	"varve/internal/source"
	"varve/internal/state"
	"varve/internal/value"
	"varve/schemas"
)

// scratchAge is how old the scratch of a run that ended must be before upkeep removes it; lostAge that of any other. No
// attempt works longer than the two days that workflows give it.
const (
	scratchAge = time.Hour
	lostAge    = 72 * time.Hour
)

// Maintain compacts and orders the files of a dataset's targets and removes the scratch of ended runs. It changes no row
// and never stands in a merge's way.
func (e *Engine) Maintain(ctx context.Context, in MaintainRequest) (Maintained, error) {
	p, err := LoadContract(ctx, e.Warehouse, in.Dataset, 0)
	if err != nil {
		return Maintained{}, err
	}
	db, err := e.database()
	if err != nil {
		return Maintained{}, err
	}
	defer db.Close()
	var out Maintained
	for _, t := range p.Contract.Targets {
		e.progress(ctx, Run{Dataset: in.Dataset}, "maintain "+t.Table)
		m, err := target(ctx, db, p, t.Table)
		if err != nil {
			return out, fmt.Errorf("maintain %s: %w", t.Table, err)
		}
		done, err := e.optimize(ctx, p.Contract, t, m.State.Sequence, m.Schema)
		if err != nil {
			return out, fmt.Errorf("maintain %s: %w", t.Table, err)
		}
		out.Tables = append(out.Tables, done)
	}
	for _, root := range []string{source.Root(in.Dataset), normalize.QuarantineRoot(in.Dataset), ledger.RunsRoot} {
		done, err := e.compact(ctx, root)
		if err != nil {
			return out, fmt.Errorf("maintain %s: %w", root, err)
		}
		if done.Version >= 0 {
			out.Tables = append(out.Tables, done)
		}
	}
	return out, e.sweep(ctx, in.Dataset)
}

// compact packs the small files of a table that grows by appending.
func (e *Engine) compact(ctx context.Context, root string) (MaintainedTable, error) {
	table := strings.Replace(root, "/", ".", 1)
	r, err := layout.Optimize(ctx, delta.At(e.Warehouse, root), layout.Options{Now: e.Now})
	if errors.Is(err, delta.ErrNoTable) {
		return MaintainedTable{Table: table, Version: -1}, nil
	}
	return MaintainedTable{Table: table, Version: r.Version, Done: r.Reason}, err
}

func (e *Engine) optimize(ctx context.Context, c schemas.Contract, t schemas.Target, sequence value.Type, schema value.Schema) (MaintainedTable, error) {
	o := layout.Options{
		Hidden: value.Schema{{Name: state.SequenceColumn, Type: sequence, Nullable: true}}, Now: e.Now, TargetFileSize: c.Layout.TargetFileSize,
	}
	if len(c.Layout.ZOrder) > 0 {
		o.ZOrder = c.Layout.ZOrder[0]
	}
	if t.SCDType == 2 {
		end := schema.Index(t.History.End)
		o.Split = func(row value.Row) int {
			if row[end] == nil {
				return 0
			}
			return 1
		}
	}
	r, err := layout.Optimize(ctx, delta.At(e.Warehouse, Root(t.Table)), o)
	if errors.Is(err, delta.ErrNoTable) {
		return MaintainedTable{Table: t.Table, Version: -1, Done: "not made yet"}, nil
	}
	return MaintainedTable{Table: t.Table, Version: r.Version, Done: r.Reason}, err
}

// sweep removes the scratch of a dataset's runs that the ledger has, once it is old enough that no late attempt uses it, and
// scratch so old that its run is lost.
func (e *Engine) sweep(ctx context.Context, dataset string) error {
	runs, err := ledger.Runs(ctx, e.Warehouse, dataset)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	limit, lost := e.Now().Add(-scratchAge), e.Now().Add(-lostAge)
	ended := map[string]bool{}
	for _, r := range runs {
		ended[r.ID] = r.Ended.Before(limit)
	}
	const work = "_varve/work/"
	for info, err := range e.Warehouse.List(ctx, work, "") {
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		run, _, inside := strings.Cut(strings.TrimPrefix(info.Key, work), "/")
		if !inside || info.Modified.After(limit) || !ended[run] && info.Modified.After(lost) {
			continue
		}
		if err := e.Warehouse.Delete(ctx, info.Key); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	return nil
}

// Pending lists the days that should be done through a day and are not: those since the dataset's first run that no run
// finished, and the day itself. A day that waits for a person is not among them.
func (e *Engine) Pending(ctx context.Context, in PendingRequest) (Pending, error) {
	p, err := LoadContract(ctx, e.Warehouse, in.Dataset, 0)
	if err != nil {
		return Pending{}, err
	}
	days, err := ledger.Days(ctx, e.Warehouse, in.Dataset)
	if err != nil {
		return Pending{}, fmt.Errorf("pending days of %s: %w", in.Dataset, err)
	}
	through, err := time.Parse(time.DateOnly, in.Through)
	if err != nil {
		return Pending{}, fmt.Errorf("pending days of %s: day %q is not of the form 2006-01-02", in.Dataset, in.Through)
	}
	first, done := through, map[string]bool{}
	for _, d := range days {
		done[d.Day] = d.Status == Succeeded || d.Status == SetAside
		if day, err := time.Parse(time.DateOnly, d.Day); err == nil && day.Before(first) {
			first = day
		}
	}
	if oldest := through.Add(-p.Contract.Schedule.CatchUp.Std()); first.Before(oldest) {
		first = oldest
	}
	var out Pending
	for day := first; !day.After(through); day = day.AddDate(0, 0, 1) {
		if text := day.Format(time.DateOnly); !done[text] {
			out.Days = append(out.Days, text)
		}
	}
	return out, nil
}
