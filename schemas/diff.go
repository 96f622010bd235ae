package schemas

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one difference between two contracts.
type Change struct {
	// Field is the path of the field; targets go by their tables.
	Field string
	// From and To are the values; empty where the field is new or gone.
	From, To string
}

func (c Change) String() string {
	switch {
	case c.From == "":
		return fmt.Sprintf("+ %s: %s", c.Field, c.To)
	case c.To == "":
		return fmt.Sprintf("- %s: %s", c.Field, c.From)
	}
	return fmt.Sprintf("~ %s: %s → %s", c.Field, c.From, c.To)
}

// Diff tells what differs between two contracts of a dataset, by field.
func Diff(before, after Contract) []Change {
	from, to := flat(before), flat(after)
	fields := slices.Collect(maps.Keys(from))
	for f := range to {
		if _, known := from[f]; !known {
			fields = append(fields, f)
		}
	}
	slices.Sort(fields)
	var out []Change
	for _, f := range fields {
		if from[f] != to[f] {
			out = append(out, Change{Field: f, From: from[f], To: to[f]})
		}
	}
	return out
}

// flat gives a contract's fields as text, by path.
func flat(c Contract) map[string]string {
	out := map[string]string{}
	order := make([]string, 0, len(c.Columns))
	for _, col := range c.Columns {
		text := col.Type.String()
		if col.Required {
			text += ", required"
		}
		if col.Description != "" {
			text += fmt.Sprintf(", %q", col.Description)
		}
		out["columns."+col.Name] = text
		order = append(order, col.Name)
	}
	out["columns in order"] = list(order)
	for _, t := range c.Targets {
		flatten(out, "targets."+t.Table, asMap(t))
	}
	c.Columns, c.Targets = nil, nil
	flatten(out, "", asMap(c))
	return out
}

// asMap gives a value's JSON object.
func asMap(v any) map[string]any {
	b, err := encode(v)
	out := map[string]any{}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return map[string]any{"": err.Error()} // a contract is always JSON
	}
	return out
}

func flatten(out map[string]string, path string, m map[string]any) {
	for name, v := range m {
		at := strings.TrimPrefix(path+"."+name, ".")
		switch v := v.(type) {
		case nil:
		case map[string]any:
			flatten(out, at, v)
		case []any:
			items := make([]string, 0, len(v))
			for _, item := range v {
				items = append(items, fmt.Sprint(item))
			}
			out[at] = list(items)
		default:
			out[at] = fmt.Sprint(v)
		}
	}
}

func list(items []string) string { return "[" + strings.Join(items, ", ") + "]" }
