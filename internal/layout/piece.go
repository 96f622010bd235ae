package layout

import (
	"context"
	"encoding/json"
	"strconv"

	"varve/internal/delta"
	"varve/internal/value"
)

// The tags of files that this package writes. Other writers do not keep them; then a file is looked at again.
const (
	// groupTag is the group of a file's rows.
	groupTag = "varve.group"
	// orderTag names the column that a run ordered files by, and runTag the run: its files do not overlap, whatever
	// statistics, which may be cut short, make of them.
	orderTag = "varve.zorder"
	runTag   = "varve.zorder.run"
)

// The sizes and shares that decide what is worth rewriting.
const (
	defaultTarget = 128 << 20
	// deletedShare is the share of deleted rows above which a file is rewritten.
	deletedShare = 0.05
)

// piece is the rows of one group in one file.
type piece struct {
	add   delta.Add
	group int
	size  int64
	// mixed says that the file has rows of other groups, too.
	mixed bool
	// forced says that the file must be rewritten for its own sake: it mixes groups, or holds many deleted rows.
	forced bool
	// low and high are the range of the column to order by; known is false where nothing is known of it.
	low, high value.Value
	known     bool
	// run is the mark of the run that ordered the file by that column.
	run string
}

// pieceOf describes a file of one group by its action alone.
func (w *work) pieceOf(a delta.Add) piece {
	p := piece{add: a, size: a.Size, forced: worn(a)}
	if w.ZOrder == "" {
		return p
	}
	p.low, p.high, p.known = bounds(a, w.snap.Schema()[w.snap.Schema().Index(w.ZOrder)])
	if a.Tags[orderTag] == w.ZOrder {
		p.run = a.Tags[runTag]
	}
	return p
}

// split describes a file group by group, reading it if its tag does not tell.
func (w *work) split(ctx context.Context, p piece) ([]piece, error) {
	if w.Split == nil {
		return []piece{p}, nil
	}
	if g, err := strconv.Atoi(p.add.Tags[groupTag]); err == nil {
		p.group = g
		return []piece{p}, nil
	}
	rows := map[int]int64{}
	total := int64(0)
	for row, err := range w.snap.ReadFile(ctx, p.add, w.Hidden) {
		if err != nil {
			return nil, err
		}
		rows[w.Split(row)]++
		total++
	}
	if total == 0 {
		return []piece{p}, nil
	}
	var out []piece
	for group, n := range rows {
		one := p
		one.group, one.size, one.mixed = group, p.size*n/total, len(rows) > 1
		one.forced = p.forced || one.mixed
		out = append(out, one)
	}
	return out, nil
}

// worn says that a file holds so many deleted rows that it is worth rewriting.
func worn(a delta.Add) bool {
	if a.DeletionVector == nil {
		return false
	}
	n, ok := a.Records()
	return !ok || float64(a.DeletionVector.Cardinality) > deletedShare*float64(n)
}

// truncated is what statistics cut off a timestamp: all below the millisecond. PROTOCOL.md, Per-file Statistics.
const truncated = 999

// bounds gives the range of a column in a file, null first, by its statistics.
func bounds(a delta.Add, f value.Field) (low, high value.Value, known bool) {
	var stats struct {
		Records *int64                     `json:"numRecords"`
		Min     map[string]json.RawMessage `json:"minValues"`
		Max     map[string]json.RawMessage `json:"maxValues"`
		Nulls   map[string]json.RawMessage `json:"nullCount"`
	}
	if a.Stats == "" || json.Unmarshal([]byte(a.Stats), &stats) != nil {
		return nil, nil, false
	}
	var nulls int64
	if json.Unmarshal(stats.Nulls[f.Name], &nulls) != nil {
		return nil, nil, false
	}
	if stats.Records != nil && nulls == *stats.Records {
		return nil, nil, true
	}
	low, errLow := value.FromJSON(f.Type, stats.Min[f.Name])
	high, errHigh := value.FromJSON(f.Type, stats.Max[f.Name])
	if errLow != nil || errHigh != nil || high == nil {
		return nil, nil, false
	}
	if nulls > 0 {
		low = nil
	}
	switch v := high.(type) {
	case value.Timestamp:
		high = v + truncated
	case value.LocalTimestamp:
		high = v + truncated
	}
	return low, high, true
}
