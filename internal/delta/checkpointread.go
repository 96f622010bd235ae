package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strconv"

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
	var actions []action
	for row, err := range f.Rows(columnar.ReadOptions{Columns: columns}) {
		if err != nil {
			return actions, err
		}
		a, err := actionOf(columns, row)
		if err != nil {
			return actions, err
		}
		actions = append(actions, a)
	}
	return actions, nil
}

// actionOf makes an action of a row of a checkpoint, by way of the protocol's JSON: one form, one set of rules.
func actionOf(columns value.Schema, row value.Row) (action, error) {
	line := map[string]any{}
	for i, f := range columns {
		if i >= len(row) || row[i] == nil {
			continue
		}
		form := jsonForm(f.Type, row[i])
		switch f.Name {
		case "metaData":
			fillFormat(form)
		case "add":
			fillStats(form, f.Type, row[i])
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

// fillStats gives an add its stats as text, where a checkpoint has them as a struct only.
func fillStats(form any, t value.Type, v value.Value) {
	add, ok := form.(map[string]any)
	members, isStruct := v.(value.Struct)
	i := value.Schema(t.Fields).Index(parsedStats)
	if !ok || !isStruct || i < 0 || i >= len(members) {
		return
	}
	delete(add, parsedStats)
	if members[i].Value != nil {
		add["stats"] = string(appendParsed(nil, t.Fields[i].Type, members[i].Value))
	}
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
