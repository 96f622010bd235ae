package stage

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"varve/internal/merge"
	"varve/internal/normalize"
	"varve/internal/scd"
	"varve/internal/sql"
	"varve/internal/state"
	"varve/internal/value"
	"varve/schemas"
)

// Root is where a table lies in the warehouse: silver.customer_current in silver/customer_current.
func Root(table string) string { return strings.Replace(table, ".", "/", 1) }

// target puts together what merge needs to know of one target of a contract.
func target(ctx context.Context, db *sql.DB, p schemas.Published, table string) (merge.Target, error) {
	c := p.Contract
	for _, t := range c.Targets {
		if t.Table != table {
			continue
		}
		bound, err := normalize.BoundType(ctx, db, c, t)
		if err != nil {
			return merge.Target{}, fmt.Errorf("target %s: %w", table, err)
		}
		return assemble(p, t, bound), nil
	}
	return merge.Target{}, fmt.Errorf("contract %s number %d has no target %q", c.Dataset, p.Number, table)
}

// scdType is a target's kind; a contract has no other.
func scdType(t schemas.Target) scd.Type {
	if t.SCDType == int(scd.Type2) {
		return scd.Type2
	}
	return scd.Type1
}

func assemble(p schemas.Published, t schemas.Target, bound value.Type) merge.Target {
	c := p.Contract
	out := merge.Target{
		Table: t.Table, Root: Root(t.Table), Description: c.Description, Type: scdType(t),
		Schema:   c.TargetSchema(t, bound),
		Contract: p.Number, ContractHash: p.Hash,
		State: state.Layout{Sequence: normalize.SequenceType(c)},
		Spec:  scd.Spec{Logical: t.Logical()},
	}
	tracked := map[string]bool{}
	for _, name := range c.Tracked(t) {
		tracked[name] = true
	}
	isKey := map[string]bool{}
	for _, k := range c.Keys {
		isKey[k] = true
		out.State.Keys = append(out.State.Keys, out.Schema[out.Schema.Index(k)])
	}
	for _, col := range c.Kept() {
		if isKey[col.Name] {
			continue
		}
		out.State.Columns = append(out.State.Columns, out.Schema[out.Schema.Index(col.Name)])
		spec := scd.Column{Name: col.Name, Tracked: tracked[col.Name], IgnoreNull: c.IgnoresNull(col.Name)}
		if col.Type.Kind == value.StructKind {
			spec.Leaves = value.Schema(col.Type.Fields).Names()
		}
		out.Spec.Columns = append(out.Spec.Columns, spec)
	}
	if t.SCDType == 2 {
		out.Start, out.End, out.Current = t.History.Start, t.History.End, t.History.Current
		if normalize.HasBounds(c, t) {
			out.Spec.By = true
			out.State.Bound = &bound
		}
	}
	if t.Logical() {
		out.Deleted = schemas.DeletedColumn
	}
	return out
}

// events gives the events of a change set as one target sees them.
func events(from iter.Seq2[normalize.Event, error], t merge.Target) iter.Seq2[merge.Event, error] {
	return func(yield func(merge.Event, error) bool) {
		for e, err := range from {
			if err != nil {
				yield(merge.Event{}, err)
				return
			}
			out := merge.Event{Key: e.Key, Event: scd.Event{Seq: e.Seq, Op: e.Op}}
			if e.Op == scd.Upsert {
				out.Event.Authored = t.Spec.Author(e.Columns)
			}
			if t.Spec.By {
				out.Event.By = e.By[t.Table]
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}
