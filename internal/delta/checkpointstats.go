package delta

import (
	"bytes"
	"encoding/json"

	"varve/internal/value"
)

// parsedPartition is the column of a checkpoint with partition values as a struct.
const parsedPartition = "partitionValues_parsed"

// partitionFields are the partition columns by physical name, with their types.
func (m Metadata) partitionFields() value.Schema {
	var out value.Schema
	for _, f := range m.Schema {
		if m.isPartition(f.Name) {
			out = append(out, value.Field{Name: m.physicalName(f), Type: f.Type, Nullable: true})
		}
	}
	return out
}

// statsFields are the members of stats as a struct, which mirror the columns that have stats by physical name. PROTOCOL.md,
// Per-file Statistics and Checkpoint Schema.
func (m Metadata) statsFields(vectors bool) []value.Field {
	stored := m.storedColumns()
	chosen := map[string]bool{}
	for _, leaf := range m.StatsColumns() {
		chosen[leaf] = true
	}
	bounds := m.mirror(stored, "", chosen, func(t value.Type) (value.Type, bool) { return t, bounded(t.Kind) })
	counts := m.mirror(stored, "", chosen, func(value.Type) (value.Type, bool) { return value.Type{Kind: value.Long}, true })
	out := []value.Field{longField("numRecords")}
	if len(bounds) > 0 {
		out = append(out, structField("minValues", bounds...), structField("maxValues", bounds...))
	}
	if len(counts) > 0 {
		out = append(out, structField("nullCount", counts...))
	}
	if vectors {
		out = append(out, field("tightBounds", value.Boolean))
	}
	return out
}

// storedColumns are the columns that are not partition columns.
func (m Metadata) storedColumns() value.Schema {
	var out value.Schema
	for _, f := range m.Schema {
		if !m.isPartition(f.Name) {
			out = append(out, f)
		}
	}
	return out
}

// bounded tells whether columns of a kind have a smallest and a greatest value in stats, as Spark has it.
func bounded(k value.Kind) bool {
	switch k {
	case value.Byte, value.Short, value.Integer, value.Long, value.Float, value.Double, value.DecimalKind, value.DateKind,
		value.TimestampKind, value.TimestampNTZ, value.StringKind:
		return true
	default:
		return false
	}
}

// mirror gives the chosen leaves of a schema in its own nesting, by physical name. of gives the type that a leaf has
// instead, or leaves it out; a struct without leaves is left out, since Parquet has none.
func (m Metadata) mirror(schema value.Schema, prefix string, chosen map[string]bool, of func(value.Type) (value.Type, bool)) []value.Field {
	var out []value.Field
	for _, f := range schema {
		path := prefix + f.Name
		if f.Type.Kind == value.StructKind {
			if inner := m.mirror(f.Type.Fields, path+".", chosen, of); len(inner) > 0 {
				out = append(out, structField(m.physicalName(f), inner...))
			}
			continue
		}
		if t, ok := of(f.Type); ok && chosen[path] {
			out = append(out, value.Field{Name: m.physicalName(f), Type: t, Nullable: true})
		}
	}
	return out
}

// structOfStats makes stats a struct of its type, null where there are none. What does not fit its type is null: stats that
// tell less are right.
func structOfStats(t value.Type, stats string) value.Value {
	if stats == "" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(stats)))
	dec.UseNumber()
	var form map[string]any
	if dec.Decode(&form) != nil {
		return nil
	}
	return statsValue(t, form)
}

// statsValue makes a value of stats of its JSON.
func statsValue(t value.Type, form any) value.Value {
	switch form := form.(type) {
	case map[string]any:
		if t.Kind != value.StructKind {
			return nil
		}
		out := make(value.Struct, len(t.Fields))
		for i, f := range t.Fields {
			out[i] = value.Member{Name: f.Name, Value: statsValue(f.Type, form[f.Name])}
		}
		return out
	case json.Number:
		return statsLeaf(t, form.String(), t.Kind != value.StringKind)
	case string:
		return statsLeaf(t, form, true)
	case bool:
		if t.Kind == value.Boolean {
			return form
		}
	}
	return nil
}

// statsLeaf makes a value of a text.
func statsLeaf(t value.Type, text string, fits bool) value.Value {
	if !fits || t.Kind == value.StructKind || t.Kind == value.Boolean {
		return nil
	}
	v, err := convertPartition(t, text)
	if err != nil {
		return nil
	}
	return v
}
