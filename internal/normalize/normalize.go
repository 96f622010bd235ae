// Package normalize turns the records of bronze into change sets: it parses, converts and understands each record by its
// contract, and sends to quarantine what it cannot. It folds nothing and changes no target.
package normalize

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/google/uuid"

	"varve/internal/format"
	"varve/internal/object"
	"varve/internal/source"
	"varve/internal/sql"
	"varve/schemas"
)

// Format is the number of the format of change sets. Newer ones are refused by name.
const Format = 1

// Deps are what Run works with.
type Deps struct {
	Warehouse object.Store
	DB        *sql.DB
	Now       func() time.Time
}

// ChangeSet is the manifest of a batch's events, understood and sorted by key and sequence.
type ChangeSet struct {
	Format  int    `json:"format"`
	Attempt string `json:"attempt"`
	Dataset string `json:"dataset"`
	// Contract is the number of the published contract that the records were understood by.
	Contract int64   `json:"contract"`
	Batches  []int64 `json:"batches"`
	// Path is the Parquet file with the events, in the warehouse.
	Path string `json:"path"`
	// Records are all records of the batches: events and quarantined.
	Records     int64 `json:"records"`
	Events      int64 `json:"events"`
	Deletes     int64 `json:"deletes"`
	Quarantined int64 `json:"quarantined"`
	// Reasons counts the quarantined records by reason.
	Reasons map[string]int64 `json:"reasons,omitempty"`
	// Unknown counts the records with a field that the contract does not have, by the field's name.
	Unknown map[string]int64 `json:"unknown,omitempty"`
	// Authored are the columns that some event has a value or a null for.
	Authored []string `json:"authored,omitempty"`
}

// Key is where the manifest of the change set lies in the warehouse.
func (cs ChangeSet) Key() string { return manifestKey(cs.Attempt) }

func workFolder(attempt string) string  { return path.Join("_varve/work", attempt) }
func manifestKey(attempt string) string { return workFolder(attempt) + "/changes.json" }

// InvalidShareError says that so many records are bad that something else must be wrong. They are in quarantine.
type InvalidShareError struct {
	Dataset     string
	Records     int64
	Quarantined int64
	// Limit is the contract's max_invalid_share.
	Limit   float64
	Reasons map[string]int64
}

// Error gives the counts, the commonest reason and what to do.
func (e *InvalidShareError) Error() string {
	reason, most := "", int64(0)
	for name, n := range e.Reasons {
		if n > most || n == most && name < reason {
			reason, most = name, n
		}
	}
	return fmt.Sprintf("%d of %d records of %s are bad, most of them for %s (%d); max_invalid_share is %g: look at quarantine.%s, "+
		"then correct the source or the contract", e.Quarantined, e.Records, e.Dataset, reason, most, e.Limit, e.Dataset)
}

// Run makes the change set of landed batches and puts their bad records into quarantine. An attempt is named once and never
// resumed: another one starts over, and what this one left is nobody's.
func Run(ctx context.Context, d Deps, c schemas.Published, batches []source.Batch, attempt string) (ChangeSet, error) {
	cs := ChangeSet{Format: Format, Attempt: attempt, Dataset: c.Contract.Dataset, Contract: c.Number}
	for _, b := range batches {
		cs.Batches = append(cs.Batches, b.Number)
	}
	slices.Sort(cs.Batches)
	records, err := readBronze(ctx, d, c.Contract.Dataset, batches)
	if err != nil {
		return ChangeSet{}, fmt.Errorf("bronze of %s: %w", cs.Dataset, err)
	}
	plan, err := newPlan(ctx, d.DB, c.Contract)
	if err != nil {
		return ChangeSet{}, fmt.Errorf("contract of %s: %w", cs.Dataset, err)
	}
	u, err := plan.understand(ctx, records)
	if err != nil {
		return ChangeSet{}, err
	}
	if err := writeQuarantine(ctx, d, c, batches, u.bad); err != nil {
		return ChangeSet{}, fmt.Errorf("quarantine of %s: %w", cs.Dataset, err)
	}
	cs = cs.counted(u)
	if share := float64(cs.Quarantined) / float64(max(1, cs.Records)); share > c.Contract.MaxInvalidShare {
		return ChangeSet{}, &InvalidShareError{
			Dataset: cs.Dataset, Records: cs.Records, Quarantined: cs.Quarantined, Limit: c.Contract.MaxInvalidShare, Reasons: cs.Reasons,
		}
	}
	cs.Path = workFolder(attempt) + "/changes-" + uuid.NewString() + ".parquet"
	if err := plan.write(ctx, d.Warehouse, cs.Path, u.events); err != nil {
		return ChangeSet{}, fmt.Errorf("write change set %q: %w", cs.Path, err)
	}
	return cs.publish(ctx, d.Warehouse)
}

// publish writes the manifest.
func (cs ChangeSet) publish(ctx context.Context, warehouse object.Store) (ChangeSet, error) {
	body, err := json.Marshal(cs)
	if err == nil {
		err = warehouse.PutIfAbsent(ctx, cs.Key(), body)
	}
	if err != nil {
		return ChangeSet{}, fmt.Errorf("write change set %q: %w", cs.Key(), err)
	}
	return cs, nil
}

// counted gives the change set with the counts of what was understood.
func (cs ChangeSet) counted(u understood) ChangeSet {
	cs.Events, cs.Quarantined = int64(len(u.events)), int64(len(u.bad))
	cs.Records = cs.Events + cs.Quarantined
	cs.Reasons, cs.Unknown = map[string]int64{}, u.unknown
	for _, b := range u.bad {
		cs.Reasons[b.reason]++
	}
	authored := map[string]bool{}
	for _, e := range u.events {
		if e.isDelete() {
			cs.Deletes++
		}
		for name := range e.Columns {
			authored[name] = true
		}
	}
	for name := range authored {
		cs.Authored = append(cs.Authored, name)
	}
	slices.Sort(cs.Authored)
	return cs
}

// Load reads the manifest of a change set.
func Load(ctx context.Context, warehouse object.Store, key string) (ChangeSet, error) {
	body, err := warehouse.Read(ctx, key, 0, -1)
	if err != nil {
		return ChangeSet{}, fmt.Errorf("read change set %q: %w", key, err)
	}
	var cs ChangeSet
	err = format.Decode(key, body, Format, &cs)
	return cs, err
}
