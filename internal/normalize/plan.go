package normalize

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"varve/internal/sql"
	"varve/internal/value"
	"varve/schemas"
)

// plan is a contract made ready for records.
type plan struct {
	db       *sql.DB
	contract schemas.Contract
	// columns are the declared ones and the day, as expressions read them.
	columns value.Schema
	// keys are the positions of the key columns, in the order of the contract's keys.
	keys []int
	// kept are the positions of the columns that targets have and that are no keys.
	kept []int
	// sequence are the positions of the sequence's columns, none for the order of arrival.
	sequence []int
	// deletes is nil where no record is a delete.
	deletes *expression
	bounds  []bound
}

// expression is one of the contract's, with the positions of the columns that it reads.
type expression struct {
	name, text string
	reads      []int
}

// bound is where the bounds of one target's rows come from.
type bound struct {
	target   schemas.Target
	by       expression
	kind     value.Type
	deleteBy int // position, -1 where there is none
}

// Check says what of a contract's expressions cannot be worked with, nil where all can.
func Check(ctx context.Context, db *sql.DB, c schemas.Contract) error {
	_, err := newPlan(ctx, db, c)
	return err
}

func newPlan(ctx context.Context, db *sql.DB, c schemas.Contract) (*plan, error) {
	p := &plan{db: db, contract: c, columns: recordSchema(c)}
	for _, key := range c.Keys {
		p.keys = append(p.keys, p.columns.Index(key))
	}
	for _, column := range c.Kept() {
		if !slices.Contains(c.Keys, column.Name) {
			p.kept = append(p.kept, p.columns.Index(column.Name))
		}
	}
	for _, name := range c.SequenceColumns() {
		p.sequence = append(p.sequence, p.columns.Index(name))
	}
	if slices.Contains(slices.Concat(p.keys, p.kept, p.sequence), -1) {
		return nil, errors.New("a key, kept or sequence column is not declared")
	}
	var err error
	if p.deletes, err = p.condition(ctx, "apply_as_deletes", c.ApplyAsDeletes); err != nil {
		return nil, err
	}
	for _, t := range c.Targets {
		if !HasBounds(c, t) {
			continue
		}
		b, err := p.bound(ctx, t)
		if err != nil {
			return nil, err
		}
		p.bounds = append(p.bounds, b)
	}
	return p, nil
}

func (p *plan) expression(ctx context.Context, name, text string) (*expression, error) {
	names, err := p.db.Columns(ctx, text, p.columns)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	e := &expression{name: name, text: text}
	for _, column := range names {
		e.reads = append(e.reads, p.columns.Index(column))
	}
	return e, nil
}

// condition is an expression that is true or false.
func (p *plan) condition(ctx context.Context, name, text string) (*expression, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no condition is no fault
	}
	t, err := p.db.Check(ctx, text, p.columns)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if t.Kind != value.Boolean {
		return nil, fmt.Errorf("%s: expression %q is a %s, not true or false", name, text, t)
	}
	return p.expression(ctx, name, text)
}

func (p *plan) bound(ctx context.Context, t schemas.Target) (bound, error) {
	b := bound{target: t, deleteBy: -1}
	var err error
	if b.kind, err = BoundType(ctx, p.db, p.contract, t); err != nil {
		return b, err
	}
	by, err := p.expression(ctx, "history.by of "+t.Table, boundExpr(p.contract, t))
	if err != nil {
		return b, err
	}
	b.by = *by
	if t.History.DeleteBy == "" {
		return b, nil
	}
	if b.deleteBy = p.columns.Index(t.History.DeleteBy); b.deleteBy < 0 {
		return b, fmt.Errorf("history.delete_by of %s: no column is named %q", t.Table, t.History.DeleteBy)
	}
	have := p.columns[b.deleteBy].Type
	if !have.Equal(b.kind) && (have.Kind != value.DateKind || !isTime(b.kind)) {
		return b, fmt.Errorf("history.delete_by of %s: column %q is a %s, and history.by a %s", t.Table, t.History.DeleteBy, have, b.kind)
	}
	return b, nil
}
