package stage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/state"
)

// Vacuum deletes the files of a table that no version of it needs any more, its remembered events among them. What a run
// has prepared and not made visible yet stays, however long the run waits.
func (e *Engine) Vacuum(ctx context.Context, table string, o delta.VacuumOptions) (delta.VacuumResult, error) {
	root := Root(table)
	t := delta.Table{Store: e.Warehouse, Root: root, Now: e.Now}
	prepared, planned, err := e.prepared(ctx, root)
	if err != nil {
		return delta.VacuumResult{}, fmt.Errorf("vacuum %s: %w", table, err)
	}
	o.Prepared = append(o.Prepared, prepared...)
	o.Owned = append(o.Owned, state.Owned(e.Warehouse, root, planned))
	result, err := t.Vacuum(ctx, o)
	if errors.Is(err, delta.ErrNoTable) {
		known, listErr := Tables(ctx, e.Warehouse)
		return result, errors.Join(&NoTableError{Table: table, Known: known}, listErr)
	}
	if err != nil {
		return result, fmt.Errorf("vacuum %s: %w", table, err)
	}
	return result, nil
}

// prepared gives the commits of a table that runs have prepared, with the files of state that go with them.
func (e *Engine) prepared(ctx context.Context, root string) ([]delta.Commit, []state.File, error) {
	var commits []delta.Commit
	var files []state.File
	for info, err := range e.Warehouse.List(ctx, "_varve/work/", "") {
		if err != nil {
			return nil, nil, fmt.Errorf("list plans: %w", err)
		}
		if !strings.HasSuffix(info.Key, "/plan.json") {
			continue
		}
		plan, err := e.loadPlan(ctx, info.Key)
		if errors.Is(err, object.ErrNotFound) {
			continue // its run has ended meanwhile
		}
		if err != nil {
			return nil, nil, err
		}
		if plan.Root == root {
			commits = append(commits, plan.Commit)
			files = append(files, plan.State.Files...)
		}
	}
	return commits, files, nil
}

// HasState tells whether a table has remembered events, so that varve maintains it: what is prepared for such a table is
// known to the project that it belongs to, not to the table.
func HasState(ctx context.Context, t delta.Table) (bool, error) {
	for _, err := range t.Store.List(ctx, path.Dir(state.Key(t.Root, 0))+"/", "") {
		return err == nil, err
	}
	return false, nil
}
