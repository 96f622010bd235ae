package normalize

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"varve/internal/value"
)

// absences gives the paths of the members that structs within a value lack, below path.
// An element of a list or a map is named by its position.
func absences(t value.Type, v value.Value, path []string) [][]string {
	var out [][]string
	switch v := v.(type) {
	case value.Struct:
		for _, f := range t.Fields {
			below := append(slices.Clone(path), f.Name)
			member, ok := memberOf(v, f.Name)
			if !ok {
				out = append(out, below)
				continue
			}
			out = append(out, absences(f.Type, member, below)...)
		}
	case value.List:
		for i := range v {
			out = append(out, absences(*t.Elem, v[i], append(slices.Clone(path), strconv.Itoa(i)))...)
		}
	case value.Map:
		for i := range v {
			out = append(out, absences(*t.Elem, v[i].Value, append(slices.Clone(path), strconv.Itoa(i)))...)
		}
	}
	return out
}

func memberOf(s value.Struct, name string) (value.Value, bool) {
	for _, m := range s {
		if m.Name == name {
			return m.Value, true
		}
	}
	return nil, false
}

// whole gives a value in which every struct has all members of its type, in order.
func whole(t value.Type, v value.Value) value.Value {
	switch v := v.(type) {
	case value.Struct:
		out := make(value.Struct, len(t.Fields))
		for i, f := range t.Fields {
			member, _ := memberOf(v, f.Name)
			out[i] = value.Member{Name: f.Name, Value: whole(f.Type, member)}
		}
		return out
	case value.List:
		out := make(value.List, len(v))
		for i := range v {
			out[i] = whole(*t.Elem, v[i])
		}
		return out
	case value.Map:
		out := make(value.Map, len(v))
		for i, entry := range v {
			out[i] = value.Entry{Key: whole(*t.Key, entry.Key), Value: whole(*t.Elem, entry.Value)}
		}
		return out
	default:
		return v
	}
}

// forget takes away from columns what a list of paths names.
func forget(columns map[string]value.Value, absent value.Value) error {
	paths, ok := absent.(value.List)
	if !ok {
		return errors.New("an event without a list of what is absent")
	}
	for _, item := range paths {
		text, ok := item.(string)
		var path []string
		if !ok || json.Unmarshal([]byte(text), &path) != nil || len(path) == 0 {
			return errors.New("an event with a bad path of what is absent")
		}
		if len(path) == 1 {
			delete(columns, path[0])
			continue
		}
		columns[path[0]] = without(columns[path[0]], path[1:])
	}
	return nil
}

// without gives a value that lacks the member at a path.
func without(v value.Value, path []string) value.Value {
	switch v := v.(type) {
	case value.Struct:
		i := slices.IndexFunc(v, func(m value.Member) bool { return m.Name == path[0] })
		switch {
		case i < 0:
			return v
		case len(path) == 1:
			return slices.Delete(slices.Clone(v), i, i+1)
		}
		out := slices.Clone(v)
		out[i].Value = without(v[i].Value, path[1:])
		return out
	case value.List:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(v) && len(path) > 1 {
			out := slices.Clone(v)
			out[i] = without(v[i], path[1:])
			return out
		}
	case value.Map:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(v) && len(path) > 1 {
			out := slices.Clone(v)
			out[i].Value = without(v[i].Value, path[1:])
			return out
		}
	}
	return v
}
