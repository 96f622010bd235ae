package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"varve/internal/delta"
	"varve/internal/value"
)

// The format number of the ledger's tables is a property of each.
const (
	formatProperty = "varve.format"
	tableFormat    = 1
)

// The columns that files are found by.
const (
	colRunID   = "run_id"
	colDataset = "dataset"
	colDay     = "day"
)

// totals are the figures that have a column of their own beside the map of all counts: the figure of that name, else the
// sum over the targets.
func totals() []string {
	return []string{
		"events", "inserted", "updated", "deleted", "unchanged", "duplicates", "ties", "late", "absorbed", "not_shown", "quarantined",
	}
}

// newMetadata describes a table of the ledger.
func newMetadata(root string) delta.Metadata {
	schema, description := runsSchema(), "A row a run: what it worked on, what came of it."
	if root == DaysRoot {
		schema, description = daysSchema(), "A row a dataset and day: the roll-up of its runs."
	}
	m := delta.NewMetadata(schema, nil, map[string]string{formatProperty: strconv.Itoa(tableFormat)})
	m.Description = description
	return m
}

// runsSchema is the columns of ops/runs.
func runsSchema() value.Schema {
	return withFigures(value.Schema{
		field(colRunID, value.StringKind), field(colDataset, value.StringKind), field(colDay, value.DateKind),
		field("workflow", value.StringKind), field("status", value.StringKind), field("reason", value.StringKind),
		field("contract", value.Long), batchesField(), field("started_at", value.TimestampKind), field("ended_at", value.TimestampKind),
	})
}

// daysSchema is the columns of ops/days.
func daysSchema() value.Schema {
	return withFigures(value.Schema{
		field(colDataset, value.StringKind), field(colDay, value.DateKind), field("status", value.StringKind),
		field("reason", value.StringKind), field("contract", value.Long), field("last_run_id", value.StringKind),
		field("runs", value.Long), batchesField(), field("started_at", value.TimestampKind), field("ended_at", value.TimestampKind),
		field("duration_ms", value.Long),
	})
}

// withFigures adds the columns that both tables end with.
func withFigures(s value.Schema) value.Schema {
	for _, name := range totals() {
		s = append(s, field(name, value.Long))
	}
	return append(s, mapField("counts"), mapField("versions"))
}

func field(name string, k value.Kind) value.Field {
	return value.Field{Name: name, Type: value.Type{Kind: k}, Nullable: true}
}

func batchesField() value.Field {
	return value.Field{Name: "batches", Type: value.Type{Kind: value.ArrayKind, Elem: &value.Type{Kind: value.Long}}, Nullable: true}
}

func mapField(name string) value.Field {
	return value.Field{Name: name, Type: value.Type{
		Kind: value.MapKind, Key: &value.Type{Kind: value.StringKind}, Elem: &value.Type{Kind: value.Long},
	}, Nullable: true}
}

// encodeRun makes a row of ops/runs.
func encodeRun(r Run) (value.Row, error) {
	if r.ID == "" || r.Dataset == "" || r.Status == "" {
		return nil, errors.New("a run needs an ID, a dataset and a status")
	}
	day, err := encodeDay(r.Day)
	if err != nil {
		return nil, err
	}
	return slices.Concat(value.Row{
		r.ID, r.Dataset, day, text(r.Workflow), r.Status, text(r.Reason), r.Contract, list(r.Batches), instant(r.Started), instant(r.Ended),
	}, figures(r.Counts, r.Versions)), nil
}

// decodeRun takes a row of ops/runs apart.
func decodeRun(row value.Row) Run {
	d := &decoder{row: row}
	r := Run{
		ID: next[string](d), Dataset: next[string](d), Day: d.day(), Workflow: next[string](d), Status: next[string](d),
		Reason: next[string](d), Contract: next[int64](d), Batches: d.list(), Started: d.instant(), Ended: d.instant(),
	}
	r.Counts, r.Versions = d.figures()
	return r
}

// encode makes a row of ops/days.
func (d Day) encode() (value.Row, error) {
	day, err := encodeDay(d.Day)
	if err != nil {
		return nil, err
	}
	return slices.Concat(value.Row{
		d.Dataset, day, d.Status, text(d.Reason), d.Contract, d.Run, d.Runs, list(d.Batches), instant(d.Started), instant(d.Ended),
		d.Duration.Milliseconds(),
	}, figures(d.Counts, d.Versions)), nil
}

// decodeDay takes a row of ops/days apart.
func decodeDay(row value.Row) Day {
	d := &decoder{row: row}
	out := Day{
		Dataset: next[string](d), Day: d.day(), Status: next[string](d), Reason: next[string](d), Contract: next[int64](d),
		Run: next[string](d), Runs: next[int64](d), Batches: d.list(), Started: d.instant(), Ended: d.instant(),
		Duration: time.Duration(next[int64](d)) * time.Millisecond,
	}
	out.Counts, out.Versions = d.figures()
	return out
}

// sameRun compares all that a row shows.
func sameRun(a, b Run) bool {
	x, errX := encodeRun(a)
	y, errY := encodeRun(b)
	return errX == nil && errY == nil && slices.EqualFunc(x, y, value.Equal)
}

func encodeDay(day string) (value.Value, error) {
	if day == "" {
		return nil, nil //nolint:nilnil // null: a run for no day
	}
	v, err := value.Parse(value.Type{Kind: value.DateKind}, day)
	if err != nil {
		return nil, fmt.Errorf("day %q: %w", day, err)
	}
	return v, nil
}

// text gives null for an empty text.
func text(s string) value.Value {
	if s == "" {
		return nil
	}
	return s
}

func list(numbers []int64) value.Value {
	out := make(value.List, len(numbers))
	for i, n := range numbers {
		out[i] = n
	}
	return out
}

// instant gives null for no time.
func instant(t time.Time) value.Value {
	if t.IsZero() {
		return nil
	}
	return value.Timestamp(t.UnixMicro())
}

// figures gives the columns that both tables end with.
func figures(counts, versions map[string]int64) value.Row {
	var row value.Row
	for _, name := range totals() {
		row = append(row, total(counts, name))
	}
	return append(row, entries(counts), entries(versions))
}

// total gives a figure, or the sum of the targets' figures of that name; null, not 0, where nobody gave any.
func total(counts map[string]int64, name string) value.Value {
	if n, ok := counts[name]; ok {
		return n
	}
	var sum value.Value
	for given, n := range counts {
		if strings.HasSuffix(given, "."+name) {
			before, _ := sum.(int64) // null counts as 0 once there is a figure
			sum = before + n
		}
	}
	return sum
}

func entries(m map[string]int64) value.Value {
	out := make(value.Map, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, value.Entry{Key: name, Value: m[name]})
	}
	return out
}

// decoder reads a row's values one after another; null gives the zero value.
type decoder struct {
	row value.Row
	at  int
}

// next gives the next value, or the zero value where it is null.
func next[T any](d *decoder) T {
	v, _ := d.row[d.at].(T) // null is the zero value
	d.at++
	return v
}

func (d *decoder) day() string {
	if d.row[d.at] == nil {
		d.at++
		return ""
	}
	return next[value.Date](d).String()
}

func (d *decoder) instant() time.Time {
	if d.row[d.at] == nil {
		d.at++
		return time.Time{}
	}
	return time.UnixMicro(int64(next[value.Timestamp](d))).UTC()
}

func (d *decoder) list() []int64 {
	var out []int64
	for _, v := range next[value.List](d) {
		if n, ok := v.(int64); ok {
			out = append(out, n)
		}
	}
	return out
}

func (d *decoder) entries() map[string]int64 {
	out := map[string]int64{}
	for _, e := range next[value.Map](d) {
		name, isText := e.Key.(string)
		n, isNumber := e.Value.(int64)
		if isText && isNumber {
			out[name] = n
		}
	}
	return out
}

// figures reads the two maps; the totals are made of them.
func (d *decoder) figures() (counts, versions map[string]int64) {
	d.at += len(totals())
	return d.entries(), d.entries()
}

// mayHold says whether a file may hold a row with that text in a column, by its statistics.
func mayHold(a delta.Add, column, text string) bool {
	var stats struct {
		Min map[string]json.RawMessage `json:"minValues"`
		Max map[string]json.RawMessage `json:"maxValues"`
	}
	if a.Stats == "" || json.Unmarshal([]byte(a.Stats), &stats) != nil {
		return true
	}
	var least, greatest string
	if json.Unmarshal(stats.Min[column], &least) != nil || json.Unmarshal(stats.Max[column], &greatest) != nil {
		return true
	}
	return least <= text && text <= greatest
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

// commitOf begins a commit that sets the rows that have a key.
func commitOf(predicate string) delta.Commit {
	return delta.Commit{ID: uuid.NewString(), Operation: "MERGE", Parameters: map[string]any{"predicate": predicate}}
}
