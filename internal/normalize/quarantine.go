package normalize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"varve/internal/delta"
	"varve/internal/source"
	"varve/internal/value"
	"varve/schemas"
)

// QuarantineRoot is where the quarantine table of a dataset lies in the warehouse.
func QuarantineRoot(dataset string) string { return "quarantine/" + dataset }

// QuarantineSchema gives the columns of every quarantine table.
func QuarantineSchema() value.Schema {
	column := func(name string, k value.Kind) value.Field {
		return value.Field{Name: name, Type: value.Type{Kind: k}, Nullable: true}
	}
	return value.Schema{
		column("_batch", value.Long), column("_file", value.StringKind), column("_row", value.Long), column(source.DayColumn, value.DateKind),
		column("_reason", value.StringKind), column("_detail", value.StringKind), column("_raw", value.StringKind),
		column("_varve_bytes", value.BinaryKind), column("_contract", value.Long),
	}
}

// quarantineMark is the AppID of the table's mark that says by which contract a batch's bad records were found.
func quarantineMark(batch int64) string { return "varve.quarantine." + strconv.FormatInt(batch, 10) }

// writeQuarantine makes the quarantine of the batches what this contract finds bad in them. Where it is that already, it
// changes nothing.
func writeQuarantine(ctx context.Context, d Deps, c schemas.Published, batches []source.Batch, bad []badRecord) error {
	q := quarantine{table: delta.At(d.Warehouse, QuarantineRoot(c.Contract.Dataset)), contract: c, bad: bad}
	q.table.Now = d.Now
	for {
		err := q.write(ctx, batches)
		if _, ok := errors.AsType[*delta.ConflictError](err); !ok {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

type quarantine struct {
	table    delta.Table
	contract schemas.Published
	bad      []badRecord
}

func (q quarantine) write(ctx context.Context, batches []source.Batch) error {
	snap, err := q.table.Latest(ctx)
	if err != nil && !errors.Is(err, delta.ErrNoTable) {
		return err
	}
	missing := err != nil
	commit := delta.Commit{ID: uuid.NewString(), Operation: "WRITE", Parameters: map[string]any{"mode": "Append"}}
	version := int64(-1)
	if !missing {
		version = snap.Version()
	}
	stale := map[int64]bool{} // batches with records found by another contract
	for _, b := range batches {
		mark := quarantineMark(b.Number)
		if !missing {
			if by, ok := snap.Txn(mark); ok && by == q.contract.Number {
				continue
			} else if ok {
				stale[b.Number] = true
			}
		}
		commit.ReadTxns = append(commit.ReadTxns, mark)
		if !slices.ContainsFunc(q.bad, func(r badRecord) bool { return r.batch == b.Number }) && !stale[b.Number] {
			continue
		}
		commit.Txns = append(commit.Txns, delta.Txn{AppID: mark, Version: q.contract.Number})
		add, err := q.file(ctx, b.Number)
		if err != nil {
			return err
		}
		commit.Adds = append(commit.Adds, add...)
	}
	if len(commit.Txns) == 0 {
		return nil
	}
	commit.BlindAppend = len(stale) == 0
	if err := q.replace(ctx, snap, stale, &commit); err != nil {
		return err
	}
	if missing {
		m := delta.NewMetadata(QuarantineSchema(), []string{source.DayColumn}, map[string]string{})
		m.Description = "The records of " + q.contract.Contract.Dataset + " that could not be understood."
		commit.Metadata = &m
	}
	_, err = q.table.Commit(ctx, version, commit)
	return err
}

// file writes the bad records of one batch; a batch has one day.
func (q quarantine) file(ctx context.Context, batch int64) ([]delta.Add, error) {
	var rows []value.Row
	for _, r := range q.bad {
		if r.batch == batch {
			rows = append(rows, q.row(r))
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return q.rows(ctx, rows)
}

func (q quarantine) rows(ctx context.Context, rows []value.Row) ([]delta.Add, error) {
	partition := map[string]value.Value{source.DayColumn: rows[0][3]}
	add, err := q.table.WriteFile(ctx, delta.FileOptions{Schema: QuarantineSchema(), Partition: partition},
		func(yield func(value.Row, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		})
	if err != nil {
		return nil, err
	}
	return []delta.Add{add}, nil
}

func (q quarantine) row(r badRecord) value.Row {
	row := value.Row{r.batch, r.file, r.row, r.day, r.reason, r.detail, r.raw, nil, q.contract.Number}
	if r.bytes != nil {
		row[6], row[7] = nil, r.bytes
	}
	return row
}

// replace takes the rows of stale batches out of the table.
func (q quarantine) replace(ctx context.Context, snap *delta.Snapshot, stale map[int64]bool, commit *delta.Commit) error {
	if len(stale) == 0 {
		return nil
	}
	at := snap.Schema().Index("_batch")
	for _, add := range snap.Files() {
		if !mayHold(add, stale, nil) {
			continue
		}
		var rest []value.Row
		gone := false
		for row, err := range snap.ReadFile(ctx, add, nil) {
			if err != nil {
				return err
			}
			batch, ok := row[at].(int64)
			if !ok {
				return fmt.Errorf("file %q: a row without a batch", add.Path)
			}
			if stale[batch] {
				gone = true
				continue
			}
			rest = append(rest, slices.Clone(row))
		}
		if !gone {
			continue
		}
		commit.Removes = append(commit.Removes, delta.RemoveOf(add, q.table.Now(), true))
		if len(rest) == 0 {
			continue
		}
		adds, err := q.rows(ctx, rest)
		if err != nil {
			return err
		}
		commit.Adds = append(commit.Adds, adds...)
	}
	return nil
}
