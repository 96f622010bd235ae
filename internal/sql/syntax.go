package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// node is a part of the engine's own syntax tree of a query, as json_serialize_sql gives it.
type node map[string]any

// syntaxError is what the engine's parser says.
type syntaxError struct {
	Message string
	// Position is the byte of the text, counted from 0, or -1.
	Position int
}

func (e *syntaxError) Error() string { return e.Message }

// parse gives the statements of a query text.
func (db *DB) parse(ctx context.Context, text string) ([]node, error) {
	var result *Result
	err := db.raw(ctx, func(c *duckdb.Conn) error {
		var err error
		result, err = collect(ctx, c, "SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", []any{text})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("parse SQL: %w", err)
	}
	var tree struct {
		Failed     bool   `json:"error"`
		Message    string `json:"error_message"`
		Position   string `json:"position"`
		Statements []node `json:"statements"`
	}
	serialized, ok := result.Rows[0][0].(string)
	if !ok {
		return nil, fmt.Errorf("parse SQL: the engine gave a %T", result.Rows[0][0])
	}
	if err := json.Unmarshal([]byte(serialized), &tree); err != nil {
		return nil, fmt.Errorf("parse SQL: %w", err)
	}
	if tree.Failed {
		position, err := strconv.Atoi(tree.Position)
		if err != nil {
			position = -1
		}
		return nil, &syntaxError{Message: firstLine(tree.Message), Position: position}
	}
	return tree.Statements, nil
}

func (n node) text(name string) string {
	s, _ := n[name].(string) // what is not there is the empty text
	return s
}

func (n node) list(name string) []any {
	l, _ := n[name].([]any) // what is not there is the empty list
	return l
}

func (n node) child(name string) node {
	m, _ := n[name].(map[string]any) // what is not there is the empty node
	return m
}

func (n node) texts(name string) []string {
	items := n.list(name)
	all := make([]string, 0, len(items))
	for _, item := range items {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// walk visits every node below v, parents first; visit says whether to go on below.
func walk(v any, visit func(node) bool) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	case node:
		walk(map[string]any(v), visit)
	case map[string]any:
		if !visit(v) {
			return
		}
		for _, item := range v {
			walk(item, visit)
		}
	}
}
