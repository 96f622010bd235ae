package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/value"
	"varve/schemas"
)

// LandMark is the AppID of the table's mark that says up to which number every batch is landed or decided.
const LandMark = "varve.land"

// DayColumn is the column that bronze is partitioned by.
const DayColumn = "_day"

// Schema gives the columns of every bronze table of a text format. A record that is not UTF-8 is in _varve_bytes, any
// other in _raw.
func Schema() value.Schema {
	column := func(name string, k value.Kind, nullable bool) value.Field {
		return value.Field{Name: name, Type: value.Type{Kind: k}, Nullable: nullable}
	}
	return value.Schema{
		column("_batch", value.Long, true), column("_file", value.StringKind, true), column("_row", value.Long, true),
		column(DayColumn, value.DateKind, true), column("_landed_at", value.TimestampKind, true), column("_raw", value.StringKind, true),
		column("_varve_bytes", value.BinaryKind, true),
	}
}

// Landed tells what one call brought into bronze.
type Landed struct {
	// Batches are those that this call landed.
	Batches []int64
	Files   int64
	Records int64
	// Rejected are those whose files were not what they had claimed.
	Rejected []int64
}

// maxClaims is how often files that change under our hands are claimed anew before the call gives up.
const maxClaims = 5

// Land brings every claimed batch that is neither landed nor rejected into bronze, in the order of their numbers, one
// commit each. A batch whose files are not what it claimed is rejected, and its files are claimed anew.
func Land(ctx context.Context, warehouse, landing object.Store, c schemas.Contract, now func() time.Time) (Landed, error) {
	l := lander{warehouse: warehouse, landing: landing, contract: c, now: now, table: delta.At(warehouse, Root(c.Dataset))}
	l.table.Now = now
	var out Landed
	for range maxClaims {
		again, err := l.round(ctx, &out)
		if err != nil || !again {
			return out, err
		}
	}
	return out, fmt.Errorf("land %s: its files kept changing, %d times: wait until the source has written them", c.Dataset, maxClaims)
}

type lander struct {
	warehouse, landing object.Store
	contract           schemas.Contract
	now                func() time.Time
	table              delta.Table
}

// round lands what is claimed; again says that files were claimed anew.
func (l lander) round(ctx context.Context, out *Landed) (again bool, err error) {
	batches, err := Batches(ctx, l.warehouse, l.contract.Dataset)
	if err != nil {
		return false, err
	}
	_, last, err := l.mark(ctx)
	if err != nil {
		return false, err
	}
	var changed []string // days
	var unreadable error
	for _, s := range batches {
		if s.Batch.Number <= last || s.State == Rejected || s.State == Superseded {
			continue
		}
		records, landed, err := l.batch(ctx, s.Batch)
		if isDataFault(err) {
			if err := l.reject(ctx, s.Batch, err); err != nil {
				return false, err
			}
			out.Rejected = append(out.Rejected, s.Batch.Number)
			changed = append(changed, s.Batch.Day)
			if _, ok := errors.AsType[*UnreadableError](err); ok {
				unreadable = errors.Join(unreadable, err)
			}
			continue
		}
		if err != nil {
			return false, fmt.Errorf("batch %d of %s: %w", s.Batch.Number, l.contract.Dataset, err)
		}
		if landed {
			out.Batches = append(out.Batches, s.Batch.Number)
			out.Files += int64(len(s.Batch.Files))
			out.Records += records
		}
	}
	for _, day := range changed {
		claimed, err := Claim(ctx, l.warehouse, l.landing, l.contract, day, l.now)
		if _, ok := errors.AsType[*MissingError](err); ok {
			continue // the source took its files away
		}
		if err != nil {
			return false, errors.Join(unreadable, err)
		}
		again = again || len(claimed) > 0
	}
	return again, unreadable
}

// isDataFault says whether a batch can never be landed.
func isDataFault(err error) bool {
	if _, ok := errors.AsType[*ChangedError](err); ok {
		return true
	}
	_, ok := errors.AsType[*UnreadableError](err)
	return ok
}

func (l lander) reject(ctx context.Context, b Batch, reason error) error {
	return Decide(ctx, l.warehouse, l.contract.Dataset, b.Number, RejectedDecision, reason.Error(), "land", l.now)
}

// batch lands one batch, if the table does not have it.
func (l lander) batch(ctx context.Context, b Batch) (records int64, landed bool, err error) {
	var adds []delta.Add
	for {
		version, last, err := l.mark(ctx)
		if err != nil || last >= b.Number {
			return 0, false, err
		}
		if adds == nil {
			if adds, records, err = l.write(ctx, b); err != nil {
				return 0, false, err
			}
		}
		_, err = l.table.Commit(ctx, version, l.commit(version, b, adds, records))
		if _, ok := errors.AsType[*delta.ConflictError](err); ok {
			continue // someone else landed or changed something: look again
		}
		return records, err == nil, err
	}
}

// mark gives the version of bronze, -1 where there is none, and the number up to which every batch is landed or decided.
func (l lander) mark(ctx context.Context) (version, last int64, err error) {
	return landMark(ctx, l.table)
}

func landMark(ctx context.Context, table delta.Table) (version, last int64, err error) {
	snap, err := table.Latest(ctx)
	if errors.Is(err, delta.ErrNoTable) {
		return -1, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	last, _ = snap.Txn(LandMark)
	return snap.Version(), last, nil
}

func (l lander) commit(version int64, b Batch, adds []delta.Add, records int64) delta.Commit {
	c := delta.Commit{
		ID: uuid.NewString(), Operation: "WRITE", Parameters: map[string]any{"mode": "Append", "batch": b.Number, "day": b.Day},
		Metrics: map[string]string{
			"numOutputRows": strconv.FormatInt(records, 10), "numFiles": strconv.Itoa(len(adds)),
		},
		Txns: []delta.Txn{{AppID: LandMark, Version: b.Number}}, ReadTxns: []string{LandMark}, Adds: adds, BlindAppend: true,
	}
	if version < 0 {
		m := delta.NewMetadata(Schema(), []string{DayColumn}, map[string]string{"delta.appendOnly": "true"})
		m.Description = "The records of " + l.contract.Dataset + " as they came."
		c.Metadata = &m
	}
	return c
}

// write puts the records of a batch into a new data file, not yet visible. No records, no file.
func (l lander) write(ctx context.Context, b Batch) ([]delta.Add, int64, error) {
	date, err := time.Parse(time.DateOnly, b.Day)
	if err != nil {
		return nil, 0, fmt.Errorf("its day %q is not a date", b.Day)
	}
	day := value.Date(date.Unix() / secondsPerDay) //nolint:gosec // a date of four digits
	w := rowWriter{lander: l, batch: b, day: day, landedAt: value.Timestamp(l.now().UnixMicro())}
	next, stop := iter.Pull2(w.rows(ctx))
	defer stop()
	first, err, ok := next()
	if err != nil || !ok {
		return []delta.Add{}, 0, err
	}
	add, err := l.table.WriteFile(ctx, delta.FileOptions{
		Schema: Schema(), Partition: map[string]value.Value{DayColumn: w.day},
	}, prepend(first, next))
	if w.fault != nil {
		return nil, 0, w.fault
	}
	if err != nil {
		return nil, 0, err
	}
	return []delta.Add{add}, w.records, nil
}

const secondsPerDay = 24 * 60 * 60

// prepend gives a row and then those that are left.
func prepend(first value.Row, next func() (value.Row, error, bool)) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		if !yield(first, nil) {
			return
		}
		for {
			row, err, ok := next()
			if !ok || !yield(row, err) {
				return
			}
		}
	}
}

// rowWriter turns the files of a batch into rows of bronze.
type rowWriter struct {
	lander   lander
	batch    Batch
	day      value.Date
	landedAt value.Timestamp
	records  int64
	// fault is why the rows ended early.
	fault error
}

func (w *rowWriter) rows(ctx context.Context) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for _, f := range w.batch.Files {
			goOn, err := w.file(ctx, f, yield)
			if err != nil {
				w.fault = err
				yield(nil, err)
			}
			if !goOn || err != nil {
				return
			}
		}
	}
}

// file gives the rows of one file. Only at its end is it known whether it is the file that was claimed.
func (w *rowWriter) file(ctx context.Context, f File, yield func(value.Row, error) bool) (goOn bool, err error) {
	sum := sha256.New()
	in := io.TeeReader(newReader(ctx, w.lander.landing, f.Path), sum)
	for record, err := range Records(in, DialectOf(w.lander.contract.Source)) {
		if err != nil {
			return false, readFault(f, w.batch.Number, err)
		}
		if record.Row > 0 {
			w.records++ // a header is none
		}
		if !yield(w.row(f, record), nil) {
			return false, nil
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return false, &ChangedError{File: f.Path, Batch: w.batch.Number}
	}
	return true, nil
}

func readFault(f File, batch int64, err error) error {
	switch {
	case errors.Is(err, object.ErrNotFound):
		return &ChangedError{File: f.Path, Batch: batch}
	case errors.Is(err, object.ErrDenied):
		return &UnreadableError{File: f.Path, Err: err}
	default:
		return fmt.Errorf("read source file %q: %w", f.Path, err)
	}
}

func (w *rowWriter) row(f File, r Record) value.Row {
	row := value.Row{w.batch.Number, f.Path, r.Row, w.day, w.landedAt, nil, nil}
	if utf8.Valid(r.Raw) {
		row[5] = string(r.Raw)
	} else {
		row[6] = value.Binary(append([]byte(nil), r.Raw...))
	}
	return row
}
