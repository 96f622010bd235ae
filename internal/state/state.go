// Package state is the hidden state of a target: every event that its visible rows do not give back, which batches it has
// applied, and the barriers that stand for the whole table. It is immutable files and manifests under the table's
// _varve/state; which manifest counts is said by the table's own commit, never by a listing. It folds nothing.
package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"varve/internal/format"
	"varve/internal/object"
)

// AppID is the application id of the transaction that names the manifest a table version goes with.
const AppID = "varve.state"

// Format is the number of the newest format of manifests and state files that this program reads, and the one it writes.
const Format = 1

// SequenceColumn is the hidden column of a target's data files: the sequence of the event whose values a row shows.
const SequenceColumn = "_varve_seq"

// Manifest is everything that a target remembers beside its rows.
type Manifest struct {
	Format int   `json:"format"`
	Number int64 `json:"number"`
	// Attempt is random, so that two attempts never write equal bytes.
	Attempt string `json:"attempt"`
	// Contract and ContractHash name the contract that the rows were last folded by.
	Contract     int64  `json:"contract"`
	ContractHash string `json:"contract_hash"`
	// Type is the target's SCD type, 1 or 2.
	Type int `json:"stored_as_scd_type"`
	// TableVersion is the table version that this state was made from; -1 before the first.
	TableVersion int64 `json:"table_version"`
	// Rows is the number of rows that the table has then, -1 where it is not known.
	Rows int64 `json:"rows"`
	// Source is whose batches they are.
	Source Source `json:"source"`
	// Applied are the batches whose events are in rows and state.
	Applied Ranges `json:"applied"`
	// Files hold the remembered events; every record of every file counts.
	Files []File `json:"files"`
}

// Source says whose batches a target has applied: numbers of batches mean something only within one dataset's bronze.
type Source struct {
	Dataset string `json:"dataset"`
	// Batch is the highest batch that was applied, Attempt the claim that it was.
	Batch   int64  `json:"batch"`
	Attempt string `json:"attempt"`
}

// File is one file of remembered events.
type File struct {
	// Path is relative to the table's root.
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Records int64  `json:"records"`
}

// MissingError says that a table names a manifest that the store does not have.
type MissingError struct {
	Table string
	Key   string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("table %q names the state manifest %q, which is not there: restore it from a backup of the store", e.Table, e.Key)
}

// Key is where the manifest of that number lies below the store's root.
func Key(root string, number int64) string {
	return path.Join(root, "_varve/state", strconv.FormatInt(number, 10)+".json")
}

// Load reads one manifest of the table at root.
func Load(ctx context.Context, store object.Store, root string, number int64) (Manifest, error) {
	key := Key(root, number)
	body, err := store.Read(ctx, key, 0, -1)
	if errors.Is(err, object.ErrNotFound) {
		return Manifest{}, &MissingError{Table: root, Key: key}
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("read state: %w", err)
	}
	var m Manifest
	err = format.Decode(key, body, Format, &m)
	return m, err
}

// Put writes a manifest under its number. Of two attempts with one number exactly one wins; the other gets
// object.ErrExists and takes a higher number.
func Put(ctx context.Context, store object.Store, root string, m Manifest) error {
	body, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if err := store.PutIfAbsent(ctx, Key(root, m.Number), append(body, '\n')); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// Next is a number above every manifest that the table's folder has, orphans included. Gaps mean nothing.
func Next(ctx context.Context, store object.Store, root string) (int64, error) {
	var last int64
	prefix := path.Join(root, "_varve/state") + "/"
	for info, err := range store.List(ctx, prefix, "") {
		if err != nil {
			return 0, fmt.Errorf("list state: %w", err)
		}
		name, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, prefix), ".json")
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(name, 10, 64); err == nil {
			last = max(last, n)
		}
	}
	return last + 1, nil
}

// Ranges is a set of batch numbers as closed ranges, ascending and apart.
type Ranges [][2]int64

// Has says whether n is in the set.
func (r Ranges) Has(n int64) bool {
	return slices.ContainsFunc(r, func(x [2]int64) bool { return x[0] <= n && n <= x[1] })
}

// With gives the set with the numbers added.
func (r Ranges) With(numbers ...int64) Ranges {
	spans := slices.Clone(r)
	for _, n := range numbers {
		spans = append(spans, [2]int64{n, n})
	}
	slices.SortFunc(spans, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	var out Ranges
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && s[0] <= out[last][1]+1 {
			out[last][1] = max(out[last][1], s[1])
			continue
		}
		out = append(out, s)
	}
	return out
}
