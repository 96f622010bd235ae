package delta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"varve/internal/value"
)

// checkpointWriter makes the rows of a checkpoint.
type checkpointWriter struct {
	version int64
	columns value.Schema
	add     []value.Field
	remove  []value.Field
	// parts are the partition columns by physical name; nil where they are not written parsed.
	parts   value.Schema
	v2      bool
	written int64 // rows
}

// newCheckpointWriter decides on the columns. Stats are written as JSON and as a struct unless the table's properties say
// no: PROTOCOL.md has delta.checkpoint.writeStatsAsStruct default to false, Spark and so most tables to true.
func newCheckpointWriter(s *Snapshot) *checkpointWriter {
	m := *s.state.metadata
	vectors, v2 := s.state.protocol.has("deletionVectors"), s.state.protocol.has("v2Checkpoint")
	asStruct := !m.off("delta.checkpoint.writeStatsAsStruct")
	// A file with a deletion vector must tell its number of rows, one way or the other.
	asJSON := !m.off("delta.checkpoint.writeStatsAsJson") || vectors && !asStruct
	w := &checkpointWriter{version: s.version, v2: v2}
	w.add = append(fileFields(), mapField("tags"), stringField("clusteringProvider"))
	if asJSON {
		w.add = append(w.add, stringField("stats"))
	}
	if asStruct {
		if w.parts = m.partitionFields(); len(w.parts) > 0 {
			w.add = append(w.add, structField(parsedPartition, w.parts...))
		}
		w.add = append(w.add, structField(parsedStats, m.statsFields(vectors)...))
	}
	w.remove = slices.DeleteFunc(append(fileFields(), longField("deletionTimestamp"), field("extendedFileMetadata", value.Boolean)),
		func(f value.Field) bool { return f.Name == "modificationTime" })
	for _, f := range checkpointSchema() {
		switch f.Name {
		case "add":
			f.Type.Fields = w.add
		case "remove":
			f.Type.Fields = w.remove
		case "sidecar":
			continue
		}
		w.columns = append(w.columns, f)
	}
	if v2 {
		w.columns = append(w.columns, structField("checkpointMetadata", longField("version"), mapField("tags")))
	}
	return w
}

// off tells whether a property that is on by default is false.
func (m Metadata) off(property string) bool {
	return strings.EqualFold(m.Configuration[property], "false")
}

// rows makes a row of each action, and counts them. Where the table has the feature v2Checkpoint the content is that of the
// protocol's V2 spec, all in one file: it begins with a checkpointMetadata.
func (w *checkpointWriter) rows(actions iter.Seq[action]) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		if w.v2 {
			row := make(value.Row, len(w.columns))
			row[len(row)-1] = value.Struct{{Name: "version", Value: w.version}, {Name: "tags"}}
			w.written++
			if !yield(row, nil) {
				return
			}
		}
		for a := range actions {
			row, err := w.row(a)
			w.written++
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// row makes a row of an action. Those of files, of which there are many, are made straight, the others by way of JSON.
func (w *checkpointWriter) row(a action) (value.Row, error) {
	row := make(value.Row, len(w.columns))
	switch {
	case a.Add != nil:
		members, err := w.addMembers(*a.Add)
		row[w.columns.Index("add")] = members
		return row, err
	case a.Remove != nil:
		row[w.columns.Index("remove")] = members(w.remove, func(name string) value.Value { return removeMember(*a.Remove, name) })
		return row, nil
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var forms map[string]any
	if err := dec.Decode(&forms); err != nil {
		return nil, err
	}
	for i, f := range w.columns {
		if row[i], err = fromForm(f.Type, forms[f.Name]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return row, nil
}

// members makes a struct.
func members(fields []value.Field, of func(name string) value.Value) value.Struct {
	out := make(value.Struct, len(fields))
	for i, f := range fields {
		out[i] = value.Member{Name: f.Name, Value: of(f.Name)}
	}
	return out
}

// addMembers makes the struct of an add.
func (w *checkpointWriter) addMembers(a Add) (value.Struct, error) {
	parts := make(value.Struct, len(w.parts))
	for i, f := range w.parts {
		v, err := parsePartition(f.Type, a.PartitionValues[f.Name])
		if err != nil {
			return nil, fmt.Errorf("add %q: partition column %q: %w", a.Path, f.Name, err)
		}
		parts[i] = value.Member{Name: f.Name, Value: v}
	}
	out := make(value.Struct, len(w.add))
	for i, f := range w.add {
		v := addMember(a, f.Name)
		switch f.Name {
		case parsedPartition:
			v = parts
		case parsedStats:
			v = structOfStats(f.Type, a.Stats)
		}
		out[i] = value.Member{Name: f.Name, Value: v}
	}
	return out, nil
}

// addMember gives a member of an add.
func addMember(a Add, name string) value.Value {
	switch name {
	case "path":
		return a.Path
	case "partitionValues":
		return mapOfParts(a.PartitionValues)
	case "size":
		return a.Size
	case "modificationTime":
		return a.ModificationTime
	case "dataChange":
		return a.DataChange
	case "deletionVector":
		return structOfVector(a.DeletionVector)
	case "baseRowId":
		return orNull(a.BaseRowID)
	case "defaultRowCommitVersion":
		return orNull(a.DefaultRowCommitVersion)
	case "tags":
		return mapOfTags(a.Tags)
	case "clusteringProvider":
		return unlessEmpty(a.ClusteringProvider)
	case "stats":
		return unlessEmpty(a.Stats)
	default:
		return nil
	}
}

// removeMember gives a member of a remove.
func removeMember(r Remove, name string) value.Value {
	switch name {
	case "path":
		return r.Path
	case "partitionValues":
		if r.PartitionValues == nil {
			return nil
		}
		return mapOfParts(r.PartitionValues)
	case "size":
		if r.Size == 0 && !r.ExtendedFileMetadata {
			return nil
		}
		return r.Size
	case "dataChange":
		return r.DataChange
	case "deletionVector":
		return structOfVector(r.DeletionVector)
	case "baseRowId":
		return orNull(r.BaseRowID)
	case "defaultRowCommitVersion":
		return orNull(r.DefaultRowCommitVersion)
	case "deletionTimestamp":
		if r.DeletionTimestamp == 0 {
			return nil
		}
		return r.DeletionTimestamp
	case "extendedFileMetadata":
		return r.ExtendedFileMetadata
	default:
		return nil
	}
}

// orNull gives a number that may be missing.
func orNull(n *int64) value.Value {
	if n == nil {
		return nil
	}
	return *n
}

// unlessEmpty gives a text, null where it is empty.
func unlessEmpty(s string) value.Value {
	if s == "" {
		return nil
	}
	return s
}

// mapOfParts makes the map of partition values, which is there even if it is empty.
func mapOfParts(parts map[string]*string) value.Value {
	out := make(value.Map, 0, len(parts))
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		entry := value.Entry{Key: name}
		if text := parts[name]; text != nil {
			entry.Value = *text
		}
		out = append(out, entry)
	}
	return out
}

// mapOfTags makes the map of tags.
func mapOfTags(tags map[string]string) value.Value {
	if tags == nil {
		return nil
	}
	out := make(value.Map, 0, len(tags))
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, value.Entry{Key: name, Value: tags[name]})
	}
	return out
}

// structOfVector makes the struct of a deletion vector.
func structOfVector(d *DeletionVector) value.Value {
	if d == nil {
		return nil
	}
	var offset value.Value
	if d.Offset != nil {
		offset = int64(*d.Offset)
	}
	return value.Struct{
		{Name: "storageType", Value: d.StorageType},
		{Name: "pathOrInlineDv", Value: d.PathOrInlineDv},
		{Name: "offset", Value: offset},
		{Name: "sizeInBytes", Value: int64(d.SizeInBytes)},
		{Name: "cardinality", Value: d.Cardinality},
	}
}

// fromForm is jsonForm the other way.
func fromForm(t value.Type, form any) (value.Value, error) {
	switch form := form.(type) {
	case nil:
		return nil, nil //nolint:nilnil // nil is the null value
	case map[string]any:
		if t.Kind == value.MapKind {
			return mapFromForm(t, form)
		}
		out := make(value.Struct, len(t.Fields))
		for i, f := range t.Fields {
			v, err := fromForm(f.Type, form[f.Name])
			if err != nil {
				return nil, err
			}
			out[i] = value.Member{Name: f.Name, Value: v}
		}
		return out, nil
	case []any:
		out := make(value.List, len(form))
		for i, e := range form {
			v, err := fromForm(*t.Elem, e)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case json.Number:
		return form.Int64()
	default: // text and booleans are values as they are
		return form, nil
	}
}

// mapFromForm makes a map, its keys in order.
func mapFromForm(t value.Type, form map[string]any) (value.Value, error) {
	out := make(value.Map, 0, len(form))
	for _, key := range slices.Sorted(maps.Keys(form)) {
		v, err := fromForm(*t.Elem, form[key])
		if err != nil {
			return nil, err
		}
		out = append(out, value.Entry{Key: key, Value: v})
	}
	return out, nil
}
