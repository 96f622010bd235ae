package layout

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"varve/internal/delta"
	"varve/internal/value"
)

// notRead is the number of rows of a file that was not read yet.
const notRead = -1

// rewriteAll writes the new files of all jobs, and makes sure that they have every row once.
func (w *work) rewriteAll(ctx context.Context, jobs []job) error {
	for _, j := range jobs {
		if err := w.rewrite(ctx, j); err != nil {
			return err
		}
	}
	for path := range w.removed {
		if live, taken := w.live[path], w.taken[path]; live != taken {
			return fmt.Errorf("rewrite %q: %d rows became %d", path, live, taken)
		}
	}
	return nil
}

// rewrite writes the new files of a job.
func (w *work) rewrite(ctx context.Context, j job) error {
	for _, p := range j.pieces {
		if !w.removed[p.add.Path] {
			w.removed[p.add.Path], w.live[p.add.Path] = true, notRead
		}
	}
	if w.ZOrder == "" {
		return w.write(ctx, j, w.rows(ctx, j, func(value.Row) bool { return true }))
	}
	cuts, err := w.cuts(ctx, j)
	if err != nil {
		return err
	}
	for i := range len(cuts) + 1 {
		rows, err := w.between(ctx, j, cuts, i)
		if err != nil {
			return err
		}
		if err := w.write(ctx, j, each(rows)); err != nil {
			return err
		}
	}
	return nil
}

// rows gives those rows of a job that are wanted, as they come, and counts them.
func (w *work) rows(ctx context.Context, j job, wanted func(value.Row) bool) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for _, p := range j.pieces {
			w.live[p.add.Path] = 0
			for row, err := range w.snap.ReadFile(ctx, p.add, w.Hidden) {
				if err != nil {
					yield(nil, err)
					return
				}
				w.live[p.add.Path]++
				if (p.mixed && w.Split(row) != j.group) || !wanted(row) {
					continue
				}
				w.taken[p.add.Path]++
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// write writes one file. Where there are no rows there is none.
func (w *work) write(ctx context.Context, j job, rows iter.Seq2[value.Row, error]) error {
	next, stop := iter.Pull2(rows)
	defer stop()
	first, err, ok := next()
	if !ok || err != nil {
		return err
	}
	pure := true // a tag may be of another Split than ours
	add, err := w.table.WriteFile(ctx, delta.FileOptions{
		Schema: w.snap.Schema(), Hidden: w.Hidden, Partition: j.partition, Config: w.snap.Metadata().Configuration,
	}, func(yield func(value.Row, error) bool) {
		for more := true; more; first, err, more = next() {
			pure = pure && (err != nil || w.Split == nil || w.Split(first) == j.group)
			if !yield(first, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	add.DataChange = false
	add.Tags = map[string]string{}
	if w.Split != nil && pure {
		add.Tags[groupTag] = strconv.Itoa(j.group)
	}
	if w.ZOrder != "" {
		add.Tags[orderTag], add.Tags[runTag] = w.ZOrder, w.run
	}
	if len(add.Tags) == 0 {
		add.Tags = nil
	}
	w.adds = append(w.adds, add)
	return nil
}

// cuts gives the values that part the files of a job: the i-th file holds what is above the cut before it and not above
// its own. It keeps one value a row.
func (w *work) cuts(ctx context.Context, j job) ([]value.Value, error) {
	if j.files < 2 {
		return nil, nil
	}
	at := w.snap.Schema().Index(w.ZOrder)
	var values []value.Value
	for _, p := range j.pieces {
		rows, at := w.snap.ReadColumns(ctx, p.add, w.snap.Schema()[at:at+1], nil), 0
		if p.mixed {
			rows, at = w.snap.ReadFile(ctx, p.add, w.Hidden), w.snap.Schema().Index(w.ZOrder)
		}
		for row, err := range rows {
			if err != nil {
				return nil, err
			}
			if !p.mixed || w.Split(row) == j.group {
				values = append(values, row[at])
			}
		}
	}
	slices.SortFunc(values, value.Compare)
	var cuts []value.Value
	for i := 1; i < j.files; i++ {
		n := len(values) * i / j.files
		if n == 0 || value.Compare(values[n-1], values[len(values)-1]) == 0 {
			continue // nothing would be before the cut, or after it
		}
		if len(cuts) == 0 || value.Compare(cuts[len(cuts)-1], values[n-1]) < 0 {
			cuts = append(cuts, values[n-1])
		}
	}
	return cuts, nil
}

// between gives the rows of the i-th file of a job, in order. What is kept in memory is the rows of one file.
func (w *work) between(ctx context.Context, j job, cuts []value.Value, i int) ([]value.Row, error) {
	above := func(v value.Value) bool { return i == 0 || value.Compare(v, cuts[i-1]) > 0 }
	below := func(v value.Value) bool { return i == len(cuts) || value.Compare(v, cuts[i]) <= 0 }
	near := j
	near.pieces = slices.DeleteFunc(slices.Clone(j.pieces), func(p piece) bool {
		return p.known && (!above(p.high) || !below(p.low))
	})
	at := w.snap.Schema().Index(w.ZOrder)
	var rows []value.Row
	for row, err := range w.rows(ctx, near, func(row value.Row) bool { return above(row[at]) && below(row[at]) }) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, slices.Clone(row))
	}
	slices.SortStableFunc(rows, func(a, b value.Row) int { return value.Compare(a[at], b[at]) })
	return rows, nil
}

// each gives rows one by one.
func each(rows []value.Row) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}
