package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"varve/internal/delta"
	"varve/internal/value"
)

// appID marks the commits of ops/days with the version of ops/runs that they stand for.
const appID = "varve.ledger"

// smallFile is below which size a file of ops/days is rewritten along with the next change, so that the table stays a
// handful of files.
const smallFile = 256 << 10

// pair names a row of ops/days.
type pair struct{ dataset, day string }

// rollUp brings ops/days up to the newest version of ops/runs. It starts over when another roll-up came first.
func (l ledger) rollUp(ctx context.Context) error {
	for {
		runs, err := l.latest(ctx, RunsRoot)
		if err != nil || runs == nil {
			return err
		}
		days, err := l.latest(ctx, DaysRoot)
		if err != nil {
			return err
		}
		through := int64(-1)
		if days != nil {
			if v, ok := days.Txn(appID); ok {
				through = v
			}
		}
		if through >= runs.Version() {
			return nil
		}
		c, err := l.refresh(ctx, runs, days, through)
		if err != nil {
			return err
		}
		c.Txns = []delta.Txn{{AppID: appID, Version: runs.Version()}}
		c.ReadTxns = []string{appID}
		if again, err := l.commit(ctx, DaysRoot, days, c); err != nil || !again {
			return err
		}
	}
}

// refresh prepares the change of ops/days for what came to ops/runs after a version.
func (l ledger) refresh(ctx context.Context, runs, days *delta.Snapshot, through int64) (delta.Commit, error) {
	c := commitOf("target.dataset = source.dataset AND target.day = source.day")
	changed, err := l.changed(ctx, runs, through)
	if err != nil {
		return c, err
	}
	rows, err := rollUps(ctx, runs, changed)
	if err != nil {
		return c, err
	}
	if days != nil {
		for _, a := range days.Files() {
			kept, hit, err := keep(ctx, days, a, changed)
			if err != nil {
				return c, err
			}
			if hit || a.Size < smallFile {
				c.Removes = append(c.Removes, delta.RemoveOf(a, l.now(), true))
				rows = append(rows, kept...)
			}
		}
	}
	if len(rows) == 0 {
		return c, nil // runs for no day: only the mark moves
	}
	slices.SortFunc(rows, func(a, b value.Row) int { return cmp.Or(value.Compare(a[0], b[0]), value.Compare(a[1], b[1])) })
	add, err := l.table(DaysRoot).WriteFile(ctx, delta.FileOptions{Schema: daysSchema()}, each(rows))
	c.Adds = []delta.Add{add}
	return c, err
}

// changed gives the days of the rows of ops/runs that came after a version.
func (l ledger) changed(ctx context.Context, runs *delta.Snapshot, through int64) (map[pair]bool, error) {
	known := map[string]bool{}
	if through >= 0 {
		before, err := l.table(RunsRoot).Version(ctx, through)
		if err != nil && !errors.Is(err, delta.ErrNoVersion) {
			return nil, err
		}
		if err == nil {
			for _, a := range before.Files() {
				known[a.Path] = true
			}
		}
	}
	out := map[pair]bool{}
	for _, a := range runs.Files() {
		if known[a.Path] {
			continue
		}
		for row, err := range runs.ReadColumns(ctx, a, runsSchema(), nil) {
			if err != nil {
				return nil, err
			}
			if r := decodeRun(row); r.Day != "" {
				out[pair{r.Dataset, r.Day}] = true
			}
		}
	}
	return out, nil
}

// keep reads the rows of a file of ops/days that stay as they are, and says whether any does not.
func keep(ctx context.Context, days *delta.Snapshot, a delta.Add, changed map[pair]bool) ([]value.Row, bool, error) {
	var rows []value.Row
	hit := false
	for row, err := range days.ReadColumns(ctx, a, daysSchema(), nil) {
		if err != nil {
			return nil, false, err
		}
		if d := decodeDay(row); changed[pair{d.Dataset, d.Day}] {
			hit = true
			continue
		}
		rows = append(rows, slices.Clone(row))
	}
	return rows, hit, nil
}

// rollUps reads all runs of some days and gives a row of ops/days for each day.
func rollUps(ctx context.Context, runs *delta.Snapshot, days map[pair]bool) ([]value.Row, error) {
	of := map[pair][]Run{}
	for _, a := range runs.Files() {
		if !mayHoldOne(a, days) {
			continue
		}
		for row, err := range runs.ReadColumns(ctx, a, runsSchema(), nil) {
			if err != nil {
				return nil, err
			}
			r := decodeRun(row)
			if p := (pair{r.Dataset, r.Day}); days[p] {
				of[p] = append(of[p], r)
			}
		}
	}
	out := make([]value.Row, 0, len(of))
	for _, rs := range of {
		row, err := sum(rs).encode()
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

// mayHoldOne says whether a file may hold a run of one of the days.
func mayHoldOne(a delta.Add, days map[pair]bool) bool {
	for p := range days {
		if mayHold(a, colDataset, p.dataset) && mayHold(a, colDay, p.day) {
			return true
		}
	}
	return false
}

// sum rolls up the runs of one day.
func sum(runs []Run) Day {
	slices.SortFunc(runs, byEnd)
	last := runs[len(runs)-1]
	d := Day{
		Dataset: last.Dataset, Day: last.Day, Status: last.Status, Reason: last.Reason, Contract: last.Contract, Run: last.ID,
		Runs: int64(len(runs)), Ended: last.Ended, Counts: map[string]int64{}, Versions: map[string]int64{},
	}
	for _, r := range runs {
		d.Batches = append(d.Batches, r.Batches...)
		if !r.Started.IsZero() && (d.Started.IsZero() || r.Started.Before(d.Started)) {
			d.Started = r.Started
		}
		d.Duration += took(r)
		for name, n := range r.Counts {
			d.Counts[name] += n
		}
		for table, v := range r.Versions {
			d.Versions[table] = max(d.Versions[table], v)
		}
	}
	slices.Sort(d.Batches)
	d.Batches = slices.Compact(d.Batches)
	return d
}

// took is how long a run took, 0 where that is not known.
func took(r Run) time.Duration {
	if r.Started.IsZero() || r.Ended.IsZero() {
		return 0
	}
	return max(0, r.Ended.Sub(r.Started))
}
