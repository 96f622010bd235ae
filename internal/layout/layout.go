// Package layout rewrites a table's data files so that there are few and each is worth reading: small ones are packed
// together, and with Z-order on one column each file holds a range of its own. It changes no row, and it gives way to
// whoever does.
package layout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"varve/internal/delta"
	"varve/internal/value"
)

// Options say how files are to be laid out.
type Options struct {
	// ZOrder is the column whose ranges files are to hold. Default none: small files are packed together as they come.
	ZOrder string
	// TargetFileSize is the size in bytes that files grow to. A file of half of it is big enough to be left alone. Default
	// 128 MiB.
	TargetFileSize int64
	// Hidden are columns that data files have and the table has not; they are kept. A file that lacks one is left alone,
	// since that it lacks it says something. Default none.
	Hidden value.Schema
	// Split gives the group of a row: the table's columns, then the hidden ones. Rows of different groups never share a file
	// that is written. Default one group.
	Split func(value.Row) int
	// Now is the clock. Default the table's, else time.Now.
	Now func() time.Time
}

// Result tells what came of it.
type Result struct {
	// Version is the table's version that has the new layout, or that was found good.
	Version                  int64
	FilesAdded, FilesRemoved int
	BytesAdded, BytesRemoved int64
	// Reason is what was done, or why nothing was, in a few words.
	Reason string
}

// Optimize lays out a table's files in one commit that changes no row. It makes no commit where nothing is to be done, nor
// where another commit changed the same files: then it gives way, which is no error. delta.ErrNoTable says that there is no
// table.
func Optimize(ctx context.Context, t delta.Table, o Options) (Result, error) {
	switch {
	case o.Now != nil:
		t.Now = o.Now
	case t.Now == nil:
		t.Now = time.Now //nolint:forbidigo // the one default clock of this package
	}
	o.TargetFileSize = cmp.Or(o.TargetFileSize, defaultTarget)
	snap, err := t.Latest(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("optimize: %w", err)
	}
	w := &work{
		Options: o, table: t, snap: snap, run: uuid.NewString(), removed: map[string]bool{}, live: map[string]int64{}, taken: map[string]int64{},
	}
	if err := w.checkColumn(); err != nil {
		return Result{}, fmt.Errorf("optimize %q: %w", t.Root, err)
	}
	jobs, err := w.plan(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("optimize %q: %w", t.Root, err)
	}
	if len(jobs) == 0 {
		return Result{Version: snap.Version(), Reason: "nothing to do"}, nil
	}
	if err := w.rewriteAll(ctx, jobs); err != nil {
		w.discard(ctx)
		return Result{}, fmt.Errorf("optimize %q: %w", t.Root, err)
	}
	return w.commit(ctx)
}

// work is one call of Optimize.
type work struct {
	Options

	table   delta.Table
	snap    *delta.Snapshot
	run     string // the mark of the files of this call
	adds    []delta.Add
	removed map[string]bool // the files that are rewritten, by path
	// live is how many rows each of them has, taken how many went into new files.
	live, taken map[string]int64
}

// checkColumn refuses a column that no file could be ordered by.
func (w *work) checkColumn() error {
	if w.ZOrder == "" {
		return nil
	}
	i := w.snap.Schema().Index(w.ZOrder)
	if i < 0 {
		return fmt.Errorf("there is no column %q to order by", w.ZOrder)
	}
	if slices.Contains(w.snap.Metadata().PartitionColumns, w.ZOrder) {
		return fmt.Errorf("column %q is a partition column: its files are apart already", w.ZOrder)
	}
	switch t := w.snap.Schema()[i].Type; t.Kind {
	case value.Void, value.Boolean, value.BinaryKind, value.StructKind, value.ArrayKind, value.MapKind, value.VariantKind:
		return fmt.Errorf("column %q is %s: files are not found by it", w.ZOrder, t)
	default:
		return nil
	}
}

// commit makes the new files the table's, or gives way.
func (w *work) commit(ctx context.Context) (Result, error) {
	c := delta.Commit{ID: uuid.NewString(), Operation: "OPTIMIZE", Adds: w.adds, Parameters: map[string]any{
		"predicate": []string{}, "zOrderBy": w.columns(), "auto": false,
	}}
	r := Result{FilesAdded: len(w.adds), FilesRemoved: len(w.removed)}
	now := w.table.Now()
	for _, a := range w.snap.Files() {
		if w.removed[a.Path] {
			c.Removes = append(c.Removes, delta.RemoveOf(a, now, false))
			r.BytesRemoved += a.Size
		}
	}
	for _, a := range w.adds {
		r.BytesAdded += a.Size
	}
	c.Metrics = metrics(r, w.adds)
	version, err := w.table.Commit(ctx, w.snap.Version(), c)
	if lost, ok := errors.AsType[*delta.ConflictError](err); ok {
		w.discard(ctx)
		return Result{Version: w.snap.Version(), Reason: fmt.Sprintf("gave way to version %d (%s)", lost.Version, lost.Operation)}, nil
	}
	if err != nil {
		return Result{}, fmt.Errorf("optimize %q: %w", w.table.Root, err) // the commit may be there: its files stay
	}
	r.Version = version
	r.Reason = fmt.Sprintf("%d files became %d", r.FilesRemoved, r.FilesAdded)
	return r, nil
}

// columns gives the columns that files are ordered by.
func (w *work) columns() []string {
	if w.ZOrder == "" {
		return []string{}
	}
	return []string{w.ZOrder}
}

// discard deletes files that will never be the table's. What it cannot delete, vacuum does.
func (w *work) discard(ctx context.Context) {
	for _, a := range w.adds {
		key, err := w.snap.Key(a)
		if err == nil {
			_ = w.table.Store.Delete(ctx, key) // see above
		}
	}
}

// metrics are the figures that Spark's OPTIMIZE gives.
func metrics(r Result, adds []delta.Add) map[string]string {
	out := map[string]string{
		"numAddedFiles": strconv.Itoa(r.FilesAdded), "numRemovedFiles": strconv.Itoa(r.FilesRemoved),
		"numAddedBytes": strconv.FormatInt(r.BytesAdded, 10), "numRemovedBytes": strconv.FormatInt(r.BytesRemoved, 10),
	}
	sizes := make([]int64, len(adds))
	for i, a := range adds {
		sizes[i] = a.Size
	}
	slices.Sort(sizes)
	if n := len(sizes); n > 0 {
		for name, i := range map[string]int{"minFileSize": 0, "p25FileSize": n / 4, "p50FileSize": n / 2, "p75FileSize": n * 3 / 4, "maxFileSize": n - 1} {
			out[name] = strconv.FormatInt(sizes[i], 10)
		}
	}
	return out
}

// partitionKey is the identity of a file's partition.
func partitionKey(a delta.Add) (string, error) {
	text, err := json.Marshal(a.PartitionValues)
	return string(text), err
}
