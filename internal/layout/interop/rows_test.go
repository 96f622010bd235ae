package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/value"
)

// text is a row as JSON.
func text(schema value.Schema, row value.Row) string {
	line := []byte("{")
	for i, f := range schema {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(strconv.AppendQuote(line, f.Name), ':')
		line = value.AppendJSON(line, f.Type, row[i])
	}
	return string(append(line, '}'))
}

// texts are rows as JSON, in order, each in the one spelling that equal rows share.
func texts(t *testing.T, schema value.Schema, rows []value.Row) []string {
	t.Helper()
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = text(schema, row)
	}
	return ordered(t, schema, lines)
}

// ordered gives rows that an engine wrote as JSON in order, each in the one spelling that equal rows share.
func ordered(t *testing.T, schema value.Schema, lines []string) []string {
	t.Helper()
	whole := value.Type{Kind: value.StructKind, Fields: schema}
	out := make([]string, len(lines))
	for i, line := range lines {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var row any
		require.NoError(t, dec.Decode(&row), line)
		out[i] = spell(t, whole, row)
	}
	slices.Sort(out)
	return out
}

// spell writes a decoded value.
func spell(t *testing.T, kind value.Type, v any) string {
	t.Helper()
	raw, err := json.Marshal(plain(kind, v))
	require.NoError(t, err)
	return string(raw)
}

// plain gives numbers one spelling and the entries of maps one order. Members that are not the type's stay, so that they
// are seen.
func plain(kind value.Type, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, f := range kind.Fields {
			if member, ok := v[f.Name]; ok {
				v[f.Name] = plain(f.Type, member)
			}
		}
		return v
	case []any:
		elem := value.Type{}
		if kind.Kind == value.MapKind {
			elem = value.Type{Kind: value.StructKind, Fields: []value.Field{{Name: "key", Type: *kind.Key}, {Name: "value", Type: *kind.Elem}}}
		} else if kind.Elem != nil {
			elem = *kind.Elem
		}
		for i := range v {
			v[i] = plain(elem, v[i])
		}
		if kind.Kind == value.MapKind {
			slices.SortFunc(v, func(a, b any) int { return bytes.Compare(fmt.Append(nil, a), fmt.Append(nil, b)) })
		}
		return v
	case json.Number:
		bits := map[value.Kind]int{value.Float: 32, value.Double: 64}[kind.Kind]
		if f, err := v.Float64(); err == nil && bits > 0 {
			return strconv.FormatFloat(f, 'g', -1, bits)
		}
		return v
	default:
		return v
	}
}

// same fails where two lists of ordered rows differ, and shows the rows that only one has.
func same(t *testing.T, who string, want, got []string) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	lacking, excess := without(want, got), without(got, want)
	t.Errorf("%s: %d rows, want %d\n%s%s", who, len(got), len(want), some("lacks", lacking), some("has  ", excess))
}

// without gives the rows of one list that are not in another; both are in order.
func without(rows, others []string) []string {
	var out []string
	for _, row := range rows {
		for len(others) > 0 && others[0] < row {
			others = others[1:]
		}
		if len(others) > 0 && others[0] == row {
			others = others[1:]
			continue
		}
		out = append(out, row)
	}
	return out
}

// some shows the first few rows.
func some(word string, rows []string) string {
	const most, width = 5, 1500
	var b strings.Builder
	for i, row := range rows {
		if i == most {
			fmt.Fprintf(&b, "  and %d more\n", len(rows)-most)
			break
		}
		fmt.Fprintf(&b, "  %s %.*s\n", word, width, row)
	}
	return b.String()
}
