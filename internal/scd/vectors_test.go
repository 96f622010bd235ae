package scd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"varve/internal/scd"
	"varve/internal/value"
)

// vector is a case of the files of vectors.
type vector struct {
	Name    string     `json:"name"`
	Kind    string     `json:"kind"`
	Keys    []string   `json:"keys"`
	Options options    `json:"options"`
	Batches [][]record `json:"batches"`
	expected
	Varve *expected `json:"varve"`
}

type expected struct {
	SCD1        *[]map[string]any `json:"expect_scd1"`
	SCD2        *[]map[string]any `json:"expect_scd2"`
	Quarantined *int              `json:"quarantined"`
	Refused     bool              `json:"refused"`
}

type options struct {
	Columns        *choice         `json:"columns"`
	TrackHistory   *choice         `json:"track_history"`
	IgnoreNull     json.RawMessage `json:"ignore_null"`
	DeleteColumn   string          `json:"delete_when_column_true"`
	SequenceColumn string          `json:"sequence_column"`
	By             bool            `json:"by"`
	Logical        bool            `json:"logical_deletes"`
}

// choice is some of the columns; no choice is all of them.
type choice struct {
	Include []string `json:"include"`
	On      []string `json:"on"`
	Except  []string `json:"except"`
}

func (c *choice) has(name string) bool {
	if c == nil {
		return true
	}
	if listed := slices.Concat(c.Include, c.On); len(listed) > 0 || c.Except == nil {
		return slices.Contains(listed, name)
	}
	return !slices.Contains(c.Except, name)
}

type record struct {
	Op      string         `json:"op"`
	Seq     any            `json:"seq"`
	Columns map[string]any `json:"columns"`
	By      any            `json:"by"`
}

func readVectors(raw []byte) ([]vector, error) {
	var out []vector
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(&out)
	return out, err
}

// fromJSON makes a value of JSON: whole numbers integers, objects structs.
func fromJSON(v any) value.Value {
	switch x := v.(type) {
	case json.Number:
		n, err := x.Int64()
		if err != nil {
			panic("the vectors have whole numbers only")
		}
		return n
	case []any:
		out := make(value.Struct, len(x))
		for i, part := range x {
			out[i] = value.Member{Name: strconv.Itoa(i), Value: fromJSON(part)}
		}
		return out
	case map[string]any:
		out := value.Struct{}
		for name, member := range x {
			out = append(out, value.Member{Name: name, Value: fromJSON(member)})
		}
		return out
	default:
		return x
	}
}

// spec is what a case says about folding.
func (v vector) spec() (scd.Spec, error) {
	spec := scd.Spec{By: v.Options.By, Logical: v.Options.Logical}
	var ignore *choice
	switch raw := v.Options.IgnoreNull; {
	case len(raw) == 0:
		ignore = &choice{On: []string{}}
	case string(raw) != "true":
		if err := json.Unmarshal(raw, &ignore); err != nil {
			return spec, err
		}
	}
	at := map[string]int{}
	for _, r := range slices.Concat(v.Batches...) {
		for name, column := range r.Columns {
			if slices.Contains(v.Keys, name) || !v.Options.Columns.has(name) {
				continue
			}
			if _, known := at[name]; !known {
				at[name] = len(spec.Columns)
				spec.Columns = append(spec.Columns, scd.Column{
					Name: name, Tracked: name != v.Options.SequenceColumn && v.Options.TrackHistory.has(name), IgnoreNull: ignore.has(name),
				})
			}
			c := &spec.Columns[at[name]]
			members, _ := column.(map[string]any)
			for leaf := range members {
				if !slices.Contains(c.Leaves, leaf) {
					c.Leaves = append(c.Leaves, leaf)
				}
			}
		}
	}
	return spec, nil
}

// keyed is what records say: events by key, and barriers.
type keyed struct {
	events      map[string][]scd.Event
	parts       map[string]value.Row
	barriers    scd.Barriers
	quarantined int
}

var errRefused = errors.New("the extract is refused")

func (v vector) understand(spec scd.Spec, records []record) (*keyed, error) {
	k := &keyed{events: map[string][]scd.Event{}, parts: map[string]value.Row{}}
	for _, r := range records {
		if r.Op == "row" {
			if r.Op = "upsert"; r.Columns[v.Options.DeleteColumn] == true {
				r.Op = "delete"
			}
		}
		extract := r.Op == "snapshot" || r.Op == "snapshot_row" || r.Op == "snapshot_bad"
		switch {
		case r.Op == "tombstones_expire":
		case r.Seq == nil && extract:
			return k, errRefused
		case r.Seq == nil:
			k.quarantined++
		case r.Op == "truncate":
			k.barriers = k.barriers.Union(scd.Barriers{Truncates: []scd.Truncate{{Seq: fromJSON(r.Seq), By: fromJSON(r.By)}}})
		case extract:
			if err := k.extract(v, spec, r); err != nil {
				return k, err
			}
		default:
			k.event(v, spec, r)
		}
	}
	return k, nil
}

// key gives a record's key, and false where a part is null.
func (k *keyed) key(v vector, r record) (string, bool) {
	parts := make(value.Row, len(v.Keys))
	for i, name := range v.Keys {
		if parts[i] = fromJSON(r.Columns[name]); parts[i] == nil {
			return "", false
		}
	}
	text := value.KeyText(parts)
	k.parts[text] = parts
	return text, true
}

func (k *keyed) event(v vector, spec scd.Spec, r record) {
	key, ok := k.key(v, r)
	if !ok || spec.By && r.By == nil {
		k.quarantined++
		return
	}
	k.events[key] = append(k.events[key], newEvent(spec, r))
}

func newEvent(spec scd.Spec, r record) scd.Event {
	e := scd.Event{Seq: fromJSON(r.Seq), By: fromJSON(r.By)}
	if r.Op == "delete" {
		e.Op = scd.Delete
		return e
	}
	columns := map[string]value.Value{}
	for name, column := range r.Columns {
		columns[name] = fromJSON(column)
	}
	e.Authored = spec.Author(columns)
	return e
}

func (k *keyed) extract(v vector, spec scd.Spec, r record) error {
	x := scd.Extract{Seq: fromJSON(r.Seq), By: fromJSON(r.By)}
	key, ok := k.key(v, r)
	bad := r.Op == "snapshot_bad" || r.Op == "snapshot_row" && spec.By && r.By == nil
	switch {
	case r.Op == "snapshot":
	case !ok:
		x.NoBarriers = true
		k.quarantined++
	case bad:
		x.Silent = []string{key}
		k.quarantined++
	default:
		e := newEvent(spec, r)
		e.Extract = true
		for _, o := range k.events[key] {
			if o.Extract && value.Compare(o.Seq, e.Seq) == 0 && !sameAuthored(o.Authored, e.Authored) {
				return errRefused
			}
		}
		k.events[key] = append(k.events[key], e)
	}
	k.barriers = k.barriers.Union(scd.Barriers{Extracts: []scd.Extract{x}})
	return nil
}

func sameAuthored(a, b map[scd.Path]value.Value) bool {
	return eventText(scd.Event{Authored: a}) == eventText(scd.Event{Authored: b})
}

// eventText is an event as one text.
func eventText(e scd.Event) string {
	authored := make(value.Struct, 0, len(e.Authored))
	for path, v := range e.Authored {
		authored = append(authored, value.Member{Name: path, Value: v})
	}
	return value.KeyText([]value.Value{e.Seq, int64(e.Op), e.Extract, e.By, authored})
}
