package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path"
	"strconv"

	"golang.org/x/sync/errgroup"

	"varve/internal/columnar"
	"varve/internal/value"
)

// readCheckpoint takes a file of a checkpoint into the state, sidecars of a V2 one too.
func (t Table) readCheckpoint(ctx context.Context, file logFile, s *state) error {
	key := join(t.Root, logDir, file.String())
	if file.json {
		body, err := t.Store.Read(ctx, key, 0, -1)
		if err != nil {
			return err
		}
		actions, err := parseActions(body)
		s.apply(actions)
		if err != nil {
			return err
		}
		return t.readSidecars(ctx, actions, s)
	}
	actions, err := t.readActions(ctx, key, file.size)
	s.apply(actions)
	if err != nil {
		return err
	}
	return t.readSidecars(ctx, actions, s)
}

// readSidecars takes the sidecars that a checkpoint names into the state.
func (t Table) readSidecars(ctx context.Context, actions []action, s *state) error {
	for _, a := range actions {
		if a.Sidecar == nil {
			continue
		}
		name, err := url.PathUnescape(path.Base(a.Sidecar.Path))
		if err != nil || path.Base(name) != name || name == ".." {
			return errors.New("sidecar with an impossible path")
		}
		more, err := t.readActions(ctx, join(t.Root, logDir, "_sidecars", name), a.Sidecar.SizeInBytes)
		if err != nil {
			return fmt.Errorf("sidecar %q: %w", name, err)
		}
		s.apply(more)
	}
	return nil
}

// readActions reads the actions of a Parquet file.
func (t Table) readActions(ctx context.Context, key string, size int64) ([]action, error) {
	f, err := openObject(ctx, t.Store, key, size)
	if err != nil {
		return nil, err
	}
	columns := withParsedStats(checkpointSchema(), f.Schema())
	rows := make(chan []value.Row, 2)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(rows)
		return produce(ctx, f.Rows(columnar.ReadOptions{Columns: columns}), rows)
	})
	const believed = 1 << 20 // rows, before any is read
	actions := make([]action, 0, min(f.NumRows(), believed))
	group.Go(func() error {
		for batch := range rows {
			for _, row := range batch {
				a, err := actionOf(columns, row)
				if err != nil {
					return err
				}
				actions = append(actions, a)
			}
		}
		return nil
	})
	err = group.Wait()
	return actions, err
}

// produce hands rows on in batches, so that one processor may read while another works on what was read.
func produce(ctx context.Context, rows iter.Seq2[value.Row, error], to chan<- []value.Row) error {
	const many = 1024
	batch := make([]value.Row, 0, many)
	send := func() error {
		select {
		case to <- batch:
			batch = make([]value.Row, 0, many)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for row, err := range rows {
		if err != nil {
			return errors.Join(send(), err)
		}
		if batch = append(batch, row); len(batch) == many {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// actionOf makes an action of a row of a checkpoint. Files, of which there are many, are made of their members; all else goes
// by way of the protocol's JSON.
func actionOf(columns value.Schema, row value.Row) (action, error) {
	var a action
	present := 0
	for i, f := range columns {
		if i >= len(row) || row[i] == nil {
			continue
		}
		present++
		members, ok := row[i].(value.Struct)
		switch {
		case !ok:
		case f.Name == "add":
			add := addOf(f.Type, members)
			a.Add = &add
		case f.Name == "remove":
			remove := removeOf(f.Type, members)
			a.Remove = &remove
		}
	}
	if present == 1 && (a.Add != nil || a.Remove != nil) {
		return a, a.check()
	}
	return actionByJSON(columns, row)
}

// member gives a struct's member as a Go type; the zero value where it is null or not there.
func member[T any](t value.Type, members value.Struct, name string) T {
	var zero T
	i := value.Schema(t.Fields).Index(name)
	if i < 0 || i >= len(members) {
		return zero
	}
	v, _ := members[i].Value.(T)
	return v
}

// pointer is member, nil where it is null or not there.
func pointer[T any](t value.Type, members value.Struct, name string) *T {
	i := value.Schema(t.Fields).Index(name)
	if i < 0 || i >= len(members) {
		return nil
	}
	if v, ok := members[i].Value.(T); ok {
		return &v
	}
	return nil
}

func addOf(t value.Type, m value.Struct) Add {
	a := Add{
		Path: member[string](t, m, "path"), PartitionValues: partitionsOf(t, m), Size: member[int64](t, m, "size"),
		ModificationTime: member[int64](t, m, "modificationTime"), DataChange: member[bool](t, m, "dataChange"),
		Stats: member[string](t, m, "stats"), Tags: tagsOf(t, m), DeletionVector: vectorOf(t, m),
		BaseRowID: pointer[int64](t, m, "baseRowId"), DefaultRowCommitVersion: pointer[int64](t, m, "defaultRowCommitVersion"),
		ClusteringProvider: member[string](t, m, "clusteringProvider"),
	}
	if i := value.Schema(t.Fields).Index(parsedStats); i >= 0 && i < len(m) && m[i].Value != nil {
		a.Stats = string(appendParsed(nil, t.Fields[i].Type, m[i].Value))
	}
	return a
}

func removeOf(t value.Type, m value.Struct) Remove {
	return Remove{
		Path: member[string](t, m, "path"), DeletionTimestamp: member[int64](t, m, "deletionTimestamp"),
		DataChange: member[bool](t, m, "dataChange"), ExtendedFileMetadata: member[bool](t, m, "extendedFileMetadata"),
		PartitionValues: partitionsOf(t, m), Size: member[int64](t, m, "size"), Stats: member[string](t, m, "stats"), Tags: tagsOf(t, m),
		DeletionVector: vectorOf(t, m), BaseRowID: pointer[int64](t, m, "baseRowId"),
		DefaultRowCommitVersion: pointer[int64](t, m, "defaultRowCommitVersion"),
	}
}

func partitionsOf(t value.Type, m value.Struct) map[string]*string {
	entries := member[value.Map](t, m, "partitionValues")
	if entries == nil {
		return nil
	}
	out := make(map[string]*string, len(entries))
	for _, e := range entries {
		key, ok := e.Key.(string)
		if !ok {
			continue
		}
		if text, ok := e.Value.(string); ok {
			out[key] = &text
		} else {
			out[key] = nil
		}
	}
	return out
}

func tagsOf(t value.Type, m value.Struct) map[string]string {
	entries := member[value.Map](t, m, "tags")
	if entries == nil {
		return nil
	}
	out := make(map[string]string, len(entries))
	for _, e := range entries {
		key, _ := e.Key.(string)
		out[key], _ = e.Value.(string)
	}
	return out
}

func vectorOf(t value.Type, m value.Struct) *DeletionVector {
	i := value.Schema(t.Fields).Index("deletionVector")
	if i < 0 || i >= len(m) || m[i].Value == nil {
		return nil
	}
	dv, ok := m[i].Value.(value.Struct)
	if !ok {
		return nil
	}
	dt := t.Fields[i].Type
	d := &DeletionVector{
		StorageType: member[string](dt, dv, "storageType"), PathOrInlineDv: member[string](dt, dv, "pathOrInlineDv"),
		SizeInBytes: int32(member[int64](dt, dv, "sizeInBytes")), Cardinality: member[int64](dt, dv, "cardinality"), //nolint:gosec // its type is that of 32 bits
	}
	if offset := pointer[int64](dt, dv, "offset"); offset != nil {
		at := int32(*offset) //nolint:gosec // its type is that of 32 bits
		d.Offset = &at
	}
	return d
}

// actionByJSON makes an action by way of the protocol's JSON: one form, one set of rules.
func actionByJSON(columns value.Schema, row value.Row) (action, error) {
	line := map[string]any{}
	for i, f := range columns {
		if i >= len(row) || row[i] == nil {
			continue
		}
		form := jsonForm(f.Type, row[i])
		if f.Name == "metaData" {
			fillFormat(form)
		}
		line[f.Name] = form
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return action{}, err
	}
	return parseAction(raw)
}

// fillFormat gives a metaData the format that the protocol knows, where a checkpoint has none.
func fillFormat(form any) {
	if m, ok := form.(map[string]any); ok && m["format"] == nil {
		m["format"] = format{Provider: "parquet"}
	}
}

// parsedStats is the column of a checkpoint with stats as a struct.
const parsedStats = "stats_parsed"

// withParsedStats asks for stats as a struct too, where a checkpoint has no others.
func withParsedStats(columns, stored value.Schema) value.Schema {
	i, j := columns.Index("add"), stored.Index("add")
	if j < 0 {
		return columns
	}
	members := value.Schema(stored[j].Type.Fields)
	if parsed := members.Index(parsedStats); parsed >= 0 && members.Index("stats") < 0 {
		columns[i].Type.Fields = append(columns[i].Type.Fields, members[parsed])
	}
	return columns
}

// appendParsed appends stats, which mirror the schema, as JSON; what is null is left out.
func appendParsed(b []byte, t value.Type, v value.Value) []byte {
	b = append(b, '{')
	empty := true
	members, _ := v.(value.Struct) // of another kind there are no members
	for i, f := range t.Fields {
		if i >= len(members) || members[i].Value == nil {
			continue
		}
		start := len(b)
		if !empty {
			b = append(b, ',')
		}
		b = append(appendText(b, f.Name), ':')
		kept := true
		switch m := members[i].Value.(type) {
		case value.Struct:
			b = appendParsed(b, f.Type, m)
		case bool:
			b = strconv.AppendBool(b, m)
		case string:
			b = appendText(b, m)
		default:
			b, kept = appendBound(b, m, true)
		}
		if !kept {
			b = b[:start]
			continue
		}
		empty = false
	}
	return append(b, '}')
}

// jsonForm gives what encodes as the JSON of an action's member; null members are left out.
func jsonForm(t value.Type, v value.Value) any {
	switch v := v.(type) {
	case value.Struct:
		out := make(map[string]any, len(v))
		for i, m := range v {
			if m.Value != nil && i < len(t.Fields) {
				out[t.Fields[i].Name] = jsonForm(t.Fields[i].Type, m.Value)
			}
		}
		return out
	case value.List:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = jsonForm(*t.Elem, e)
		}
		return out
	case value.Map:
		out := make(map[string]any, len(v))
		for _, e := range v {
			if key, ok := e.Key.(string); ok {
				out[key] = jsonForm(*t.Elem, e.Value)
			}
		}
		return out
	default:
		return v
	}
}
