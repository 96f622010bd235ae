package merge

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"varve/internal/delta"
	"varve/internal/scd"
	"varve/internal/state"
	"varve/internal/value"
)

// statsLeaves is how many leading columns get statistics where a table does not name them (delta.dataSkippingNumIndexedCols).
const statsLeaves = 32

// write diffs each key's rows against the table's, writes data and state files and puts the plan together.
func (p *preparation) write(ctx context.Context) (*Plan, error) {
	plan := &Plan{
		Format: Format, Attempt: attempt(), Table: p.Target.Table, Root: p.Target.Root, ReadVersion: -1,
		Counts: noCounts(), Live: p.live, Schema: p.schema,
		Batches: slices.DeleteFunc(slices.Clone(p.Batches), p.manifest.Applied.Has),
	}
	if p.snap != nil {
		plan.ReadVersion = p.snap.Version()
	}
	fresh, changes := p.diff(plan)
	if err := p.dataFiles(ctx, plan, fresh); err != nil {
		return nil, err
	}
	if err := p.changeFile(ctx, plan, changes); err != nil {
		return nil, err
	}
	if err := p.stateFiles(ctx, plan); err != nil {
		return nil, err
	}
	p.describe(plan)
	return plan, nil
}

// diff marks the rows that go and gives those that come, each with its hidden sequence at the end, and what of it others are
// told.
func (p *preparation) diff(plan *Plan) (fresh []value.Row, changes []delta.Change) {
	feed := p.snap != nil && p.snap.Metadata().HasChangeFeed()
	fresh = make([]value.Row, 0, len(p.keys))
	for _, k := range p.ordered() {
		kept := make([]bool, len(k.old))
		var come []scd.Row
		for _, r := range k.rows {
			i := slices.IndexFunc(k.old, func(o oldRow) bool { return sameRow(o.row, r) })
			if i >= 0 && !kept[i] {
				kept[i] = true
				continue
			}
			come = append(come, r)
		}
		var go_ []scd.Row
		before, after := make([]value.Row, 0, len(k.old)), make([]value.Row, 0, len(come))
		for i, o := range k.old {
			if kept[i] {
				continue
			}
			go_, before = append(go_, o.row), append(before, o.whole)
			p.touched[o.file].removed[o.ordinal] = true
			plan.show(p.Sample, Change{Row: o.whole})
		}
		for _, r := range come {
			row := p.encode(k.parts, r)
			plan.show(p.Sample, Change{Added: true, Row: row})
			after = append(after, row)
			fresh = append(fresh, append(slices.Clip(row), r.Seq))
		}
		if feed {
			changes = append(changes, p.changes(before, after)...)
		}
		p.tally(plan, k, come, go_)
	}
	return fresh, changes
}

// changes tells what becomes of a key's rows: a row that is followed by one of the same start is updated. Rows of which only
// the hidden sequence changes are the same rows.
func (p *preparation) changes(before, after []value.Row) []delta.Change {
	var out []delta.Change
	followed := make([]bool, len(after))
	for _, old := range before {
		i := slices.IndexFunc(after, func(r value.Row) bool { return p.start < 0 || value.Equal(old[p.start], r[p.start]) })
		if i < 0 || followed[i] {
			out = append(out, delta.Change{Type: delta.RowDeleted, Row: old})
			continue
		}
		followed[i] = true
		if !slices.EqualFunc(old, after[i], value.Equal) {
			out = append(out, delta.Change{Type: delta.RowBefore, Row: old}, delta.Change{Type: delta.RowAfter, Row: after[i]})
		}
	}
	for i, row := range after {
		if !followed[i] {
			out = append(out, delta.Change{Type: delta.RowInserted, Row: row})
		}
	}
	return out
}

// changeFile writes the changes of a table with a change data feed, unless they follow from the data files: where files are
// written anew, readers would take every row of them for changed. It may be a file without rows.
func (p *preparation) changeFile(ctx context.Context, plan *Plan, changes []delta.Change) error {
	if len(plan.Commit.Removes) == 0 || !p.snap.Metadata().HasChangeFeed() {
		return nil
	}
	rows := func(yield func(delta.Change, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}
	file, err := p.table.WriteChanges(ctx, delta.FileOptions{Schema: p.schema, Config: p.config()}, rows)
	if err != nil {
		return err
	}
	plan.Commit.Changes = []delta.ChangeFile{file}
	return nil
}

func (p *Plan) show(most int, c Change) {
	if len(p.Changes) < most {
		p.Changes = append(p.Changes, c)
	}
}

// dataFiles writes the rows that come and the remaining rows of files that lose some; open rows apart from closed ones.
func (p *preparation) dataFiles(ctx context.Context, plan *Plan, fresh []value.Row) error {
	var lost []touched
	files := p.touched
	if p.widened() {
		files = p.everyFile()
	}
	for _, t := range files {
		if len(t.removed) == 0 && !p.widened() {
			continue
		}
		lost = append(lost, t)
		plan.Commit.Removes = append(plan.Commit.Removes, delta.RemoveOf(t.add, p.Now(), true))
	}
	for _, open := range []bool{true, false} {
		next, stop := iter.Pull2(p.group(ctx, lost, fresh, open))
		first, err, ok := next()
		if !ok {
			stop()
			continue
		}
		rows := func(yield func(value.Row, error) bool) {
			for more := true; more && yield(first, err); {
				first, err, more = next()
			}
		}
		add, err := p.table.WriteFile(ctx, delta.FileOptions{Schema: p.schema, Hidden: p.hidden(), Config: p.config()}, rows)
		stop()
		if err != nil {
			return err
		}
		plan.Commit.Adds = append(plan.Commit.Adds, add)
	}
	return nil
}

// everyFile gives all files of the table, with the rows that go.
func (p *preparation) everyFile() []touched {
	out := slices.Clone(p.touched)
	for _, add := range p.snap.Files() {
		if !slices.ContainsFunc(out, func(t touched) bool { return t.add.Path == add.Path }) {
			out = append(out, touched{add: add})
		}
	}
	return out
}

// group gives the open or the closed rows of what is to be written.
func (p *preparation) group(ctx context.Context, lost []touched, fresh []value.Row, open bool) iter.Seq2[value.Row, error] {
	mine := func(row value.Row) bool { return (p.end < 0 || row[p.end] == nil) == open }
	return func(yield func(value.Row, error) bool) {
		for _, t := range lost {
			ordinal, shape := int64(-1), p.snap.Schema()
			for stored, err := range p.snap.ReadFile(ctx, t.add, p.hidden()) {
				if err != nil {
					yield(nil, err)
					return
				}
				ordinal++
				row := widen(stored, shape, p.schema)
				if t.removed[ordinal] || !mine(row) {
					continue
				}
				if !yield(append(row, stored[len(shape)]), nil) {
					return
				}
			}
		}
		for _, row := range fresh {
			if mine(row) && !yield(row, nil) {
				return
			}
		}
	}
}

// stateFiles writes what is remembered now, where that differs from before, and the manifest that lists it.
func (p *preparation) stateFiles(ctx context.Context, plan *Plan) error {
	number, err := state.Next(ctx, p.Store, p.Target.Root)
	if err != nil {
		return err
	}
	files := p.manifest.Files
	if p.stale {
		records := p.records
		for _, k := range p.ordered() {
			for _, e := range k.memory {
				records = append(records, state.Record{Key: k.parts, Event: e})
			}
		}
		files = nil
		if len(records) > 0 {
			f, err := p.Target.State.Write(ctx, p.Store, p.Target.Root, records)
			if err != nil {
				return err
			}
			files = []state.File{f}
		}
	}
	plan.State = state.Manifest{
		Format: state.Format, Number: number, Attempt: plan.Attempt, Type: int(p.Target.Type), TableVersion: plan.ReadVersion,
		Contract: p.Target.Contract, ContractHash: p.Target.ContractHash, Applied: p.manifest.Applied.With(p.Batches...), Files: files,
		Rows: p.rowsAfter(plan.Commit), Source: p.manifest.Source,
	}
	if p.Source.Batch > plan.State.Source.Batch {
		plan.State.Source = p.Source
	}
	return nil
}

// rowsAfter is the number of rows that the table has after a commit, -1 where it is not known.
func (p *preparation) rowsAfter(c delta.Commit) int64 {
	files := c.Adds
	if p.snap != nil {
		removed := make(map[string]bool, len(c.Removes))
		for _, r := range c.Removes {
			removed[r.Path] = true
		}
		kept := slices.DeleteFunc(p.snap.Files(), func(a delta.Add) bool { return removed[a.Path] })
		files = append(kept, files...)
	}
	rows, ok := delta.LiveRows(files)
	if !ok {
		return -1
	}
	return rows
}

// describe fills in what the commit says of itself: operation, metrics, progress, and the schema where it changes.
func (p *preparation) describe(plan *Plan) {
	c := &plan.Commit
	c.ID = plan.Attempt
	c.Operation = "MERGE"
	matches := make([]string, len(p.Target.State.Keys))
	for i, k := range p.Target.State.Keys {
		matches[i] = fmt.Sprintf("target.%s = source.%s", k.Name, k.Name)
	}
	c.Parameters = map[string]any{
		"predicate":        strings.Join(matches, " AND "),
		"storedAsScdType":  int(p.Target.Type),
		"contract":         p.Target.Contract,
		"contractHash":     p.Target.ContractHash,
		"batches":          p.Batches,
		"matchedActions":   "update, delete",
		"unmatchedActions": "insert",
	}
	c.Metrics = plan.Counts.Metrics()
	c.Txns = []delta.Txn{{AppID: state.AppID, Version: plan.State.Number, LastUpdated: p.Now().UnixMilli()}}
	c.ReadTxns = []string{state.AppID}
	switch {
	case p.snap == nil:
		m := delta.NewMetadata(p.schema, nil, p.config())
		m.Description = p.Target.Description
		protocol := delta.MinProtocol(p.schema)
		c.Metadata, c.Protocol = &m, &protocol
	case len(p.schema) != len(p.snap.Schema()) || p.widened():
		m := p.snap.Metadata()
		m.Schema = p.schema
		c.Metadata = &m
	}
}

// config is the table's properties; a new wide table names the columns that must have statistics.
func (p *preparation) config() map[string]string {
	if p.snap != nil {
		return maps.Clone(p.snap.Metadata().Configuration)
	}
	if len(p.schema) <= statsLeaves {
		return map[string]string{}
	}
	names := p.Target.State.Keys.Names()
	for _, n := range []string{p.Target.Start, p.Target.End} {
		if n != "" {
			names = append(names, n)
		}
	}
	return map[string]string{"delta.dataSkippingStatsColumns": strings.Join(names, ",")}
}
