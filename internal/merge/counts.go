package merge

import (
	"maps"
	"slices"
	"strconv"

	"varve/internal/scd"
	"varve/internal/value"
)

// The counts of a run, a target each. They are defined here and nowhere else; the ledger and commits carry them by these names.
const (
	// Events is how many events the change set had for the target.
	Events = "events"
	// Inserted is rows that are new, Updated rows that changed, Deleted rows that are gone. A row of a history is known by
	// its key and start, a current row by its key.
	Inserted = "inserted"
	Updated  = "updated"
	Deleted  = "deleted"
	// Unchanged is affected keys none of whose rows changed.
	Unchanged = "unchanged"
	// Duplicates is events that were known already, content and sequence.
	Duplicates = "duplicates"
	// Late is events below the highest sequence that their key had before.
	Late = "late"
	// Ties, Absorbed and NotShown tell of the affected keys after the run: upserts that share their sequence with one of
	// other content, upserts that are part of a row whose values are a later one's, and events that valid time hides.
	Ties     = "ties"
	Absorbed = "absorbed"
	NotShown = "not_shown"
	// Upserted and Gone are AUTO CDC's num_upserted_rows and num_deleted_rows.
	upsertedRows = "num_upserted_rows"
	deletedRows  = "num_deleted_rows"
)

// Counts is the figures of one plan, by the names above.
type Counts map[string]int64

// noCounts has every count, at nothing.
func noCounts() Counts {
	out := Counts{}
	for _, name := range []string{Events, Inserted, Updated, Deleted, Unchanged, Duplicates, Ties, Late, Absorbed, NotShown} {
		out[name] = 0
	}
	return out
}

// Metrics gives the counts as Delta's operation metrics: under their own names, Delta's and AUTO CDC's.
func (c Counts) Metrics() map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		out[name] = strconv.FormatInt(c[name], 10)
	}
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	out["numTargetRowsInserted"] = text(c[Inserted])
	out["numTargetRowsUpdated"] = text(c[Updated])
	out["numTargetRowsDeleted"] = text(c[Deleted])
	out["numSourceRows"] = text(c[Events])
	out[upsertedRows] = text(c[Inserted] + c[Updated])
	out[deletedRows] = text(c[Deleted])
	return out
}

// tally counts what one key contributes.
func (p *preparation) tally(plan *Plan, k *key, come, gone []scd.Row) {
	c := plan.Counts
	c[Events] += int64(len(k.events))
	c[Duplicates] += int64(k.line.Duplicates())
	c[Ties] += int64(k.line.Ties())
	c[Absorbed] += int64(k.line.Absorbed())
	c[NotShown] += int64(k.line.NotShown())
	c[Late] += int64(k.late)
	matched := 0
	for _, r := range come {
		if slices.ContainsFunc(gone, func(o scd.Row) bool { return value.Equal(o.Start, r.Start) }) {
			matched++
		}
	}
	c[Updated] += int64(matched)
	c[Inserted] += int64(len(come) - matched)
	c[Deleted] += int64(len(gone) - matched)
	if len(come)+len(gone) == 0 {
		c[Unchanged]++
	}
	before, after := 0, 0
	for _, o := range k.old {
		if p.current(o.whole) {
			before++
		}
	}
	for _, r := range k.rows {
		if r.End == nil && !r.Deleted {
			after++
		}
	}
	if before > 0 && after == 0 {
		plan.Gone++
	}
	if after > 1 {
		plan.NotUnique++
	}
	if slices.Contains(k.parts, nil) {
		plan.NullKeys++
	}
}
