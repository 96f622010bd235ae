package normalize

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"varve/internal/delta"
	"varve/internal/source"
	"varve/internal/value"
)

// place is where a record came from.
type place struct {
	batch int64
	file  string
	row   int64
	day   value.Date
}

// record is one row of bronze.
type record struct {
	place
	raw string
	// bytes is the record where it is not UTF-8.
	bytes value.Binary
}

func (p place) sameFile(o place) bool { return p.batch == o.batch && p.file == o.file }

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.batch, b.batch), cmp.Compare(a.file, b.file), cmp.Compare(a.row, b.row))
}

// readBronze gives the records of the batches in order of batch, file and row.
func readBronze(ctx context.Context, d Deps, dataset string, batches []source.Batch) ([]record, error) {
	snap, err := delta.At(d.Warehouse, source.Root(dataset)).Latest(ctx)
	if err != nil {
		return nil, err
	}
	landed, _ := snap.Txn(source.LandMark)
	wanted, days := map[int64]bool{}, map[string]bool{}
	for _, b := range batches {
		if b.Number > landed {
			return nil, fmt.Errorf("batch %d is not landed", b.Number)
		}
		wanted[b.Number], days[b.Day] = true, true
	}
	at := columnsAt(snap.Schema())
	var records []record
	for _, add := range snap.Files() {
		if !mayHold(add, wanted, days) {
			continue
		}
		for row, err := range snap.ReadFile(ctx, add, nil) {
			if err != nil {
				return nil, err
			}
			if r, err := at.record(row); err != nil {
				return nil, fmt.Errorf("file %q: %w", add.Path, err)
			} else if wanted[r.batch] {
				records = append(records, r)
			}
		}
	}
	slices.SortFunc(records, func(a, b record) int { return comparePlaces(a.place, b.place) })
	return records, nil
}

// mayHold says whether a file can have records of the batches; days are theirs, nil where they are not known.
func mayHold(add delta.Add, wanted map[int64]bool, days map[string]bool) bool {
	if day := add.PartitionValues[source.DayColumn]; days != nil && day != nil && !days[*day] {
		return false
	}
	var stats struct {
		Min map[string]json.RawMessage `json:"minValues"`
		Max map[string]json.RawMessage `json:"maxValues"`
	}
	var least, most int64
	if json.Unmarshal([]byte(add.Stats), &stats) != nil || json.Unmarshal(stats.Min["_batch"], &least) != nil ||
		json.Unmarshal(stats.Max["_batch"], &most) != nil {
		return true // no statistics prove nothing
	}
	for b := range wanted {
		if b >= least && b <= most {
			return true
		}
	}
	return false
}

// bronzeColumns are the positions of bronze's columns.
type bronzeColumns struct{ batch, file, row, day, raw, bytes int }

func columnsAt(s value.Schema) bronzeColumns {
	return bronzeColumns{
		batch: s.Index("_batch"), file: s.Index("_file"), row: s.Index("_row"), day: s.Index(source.DayColumn), raw: s.Index("_raw"),
		bytes: s.Index("_varve_bytes"),
	}
}

func (c bronzeColumns) record(row value.Row) (record, error) {
	var r record
	var ok [4]bool
	r.batch, ok[0] = row[c.batch].(int64)
	r.file, ok[1] = row[c.file].(string)
	r.row, ok[2] = row[c.row].(int64)
	r.day, ok[3] = row[c.day].(value.Date)
	if ok != [4]bool{true, true, true, true} {
		return r, errors.New("a record without batch, file, row or day")
	}
	switch raw := row[c.raw].(type) {
	case string:
		r.raw = raw
	default:
		if r.bytes, ok[0] = row[c.bytes].(value.Binary); !ok[0] {
			return r, errors.New("a record without content")
		}
	}
	return r, nil
}
