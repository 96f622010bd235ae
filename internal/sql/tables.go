package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Tables gives the tables that a query reads, as layer.name, in order and each once. Names that the query itself
// defines are not among them.
func (db *DB) Tables(ctx context.Context, query string) ([]string, error) {
	statements, err := db.parse(ctx, selectable(query))
	if syntax, ok := errors.AsType[*syntaxError](err); ok {
		if syntax.Position >= 0 {
			return nil, fmt.Errorf("query at %d: %s", syntax.Position+1, syntax.Message)
		}
		return nil, fmt.Errorf("query: %s", syntax.Message)
	}
	if err != nil {
		return nil, err
	}
	if len(statements) != 1 {
		return nil, fmt.Errorf("query: it holds %d statements; write one", len(statements))
	}
	own := map[string]bool{}
	walk(statements[0], func(n node) bool {
		for _, item := range n.child("cte_map").list("map") {
			if entry, ok := item.(map[string]any); ok {
				own[strings.ToLower(node(entry).text("key"))] = true
			}
		}
		return true
	})
	var tables []string
	var fault error
	walk(statements[0], func(n node) bool {
		if name := strings.ToLower(n.child("function").text("function_name")); n.text("type") == "TABLE_FUNCTION" && !slices.Contains(rowMakers(), name) {
			fault = errors.Join(fault, fmt.Errorf("query: %s is not allowed here; read tables as layer.name, or use one of %s", name, strings.Join(rowMakers(), ", ")))
		}
		if n.text("type") != "BASE_TABLE" {
			return true
		}
		layer, name := n.text("schema_name"), n.text("table_name")
		switch {
		case layer != "":
			tables = append(tables, layer+"."+name)
		case !own[strings.ToLower(name)]:
			fault = errors.Join(fault, fmt.Errorf("query: table %q has no layer; write it as layer.name", name))
		}
		return true
	})
	slices.Sort(tables)
	return slices.Compact(tables), fault
}

// rowMakers are the table functions that a query may call: they make rows of their arguments and of nothing else, while
// others read files, the network and the engine's own state.
func rowMakers() []string { return []string{"generate_series", "range", "unnest"} }

// selectable is the query behind a word that only describes it.
func selectable(query string) string {
	word, rest, found := strings.Cut(strings.TrimSpace(query), " ")
	if !found {
		return query
	}
	switch strings.ToUpper(word) {
	case "DESCRIBE", "SUMMARIZE":
		first, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if strings.EqualFold(first, "SELECT") || strings.EqualFold(first, "WITH") || strings.EqualFold(first, "FROM") {
			return rest
		}
		return "FROM " + rest
	default:
		return query
	}
}
