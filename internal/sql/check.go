package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"varve/internal/value"
	"varve/schemas/spelling"
)

const (
	selectPrefix = "SELECT ("
	nowhere      = 1 << 62 // the parser's places above this stand for none
)

// functions is what the engine knows of its functions, by name in lower case.
type functions struct {
	aggregate, volatile map[string]bool
}

// impure are the functions that depend on more than their arguments though the engine's catalog does not say so.
var impure = []string{
	"age", "ago", "current_catalog", "current_localtime", "current_localtimestamp", "current_role", "current_setting", "current_time",
	"current_timestamp", "current_user", "getenv", "getvariable", "localtime", "localtimestamp", "session_user", "user", "version", "query", "query_table",
}

// many are the functions that make several rows of one.
var many = []string{"unnest", "generate_subscripts", "unpivot_list"}

// Check gives the type of an expression over the columns of one record, or an *ExprError that says what is wrong with
// it: an unknown column, bad syntax, or something whose value is not a function of the record alone.
func (db *DB) Check(ctx context.Context, expr string, columns value.Schema) (value.Type, error) {
	if at := plainColumn(expr, columns); at >= 0 {
		return columns[at].Type, nil // also where the name is a word of SQL
	}
	tree, err := db.parseExpr(ctx, expr)
	if err != nil {
		return value.Type{}, err
	}
	known, err := db.functions(ctx)
	if err != nil {
		return value.Type{}, err
	}
	check := exprCheck{expr: expr, columns: columns.Names(), known: known}
	if err := check.visit(tree); err != nil {
		return value.Type{}, err
	}
	from, err := record(columns)
	if err != nil {
		return value.Type{}, err
	}
	var t value.Type
	err = db.raw(ctx, func(c *duckdb.Conn) error {
		stmt, err := prepare(ctx, c, selectPrefix+expr+"\n)"+from)
		if err != nil {
			return err
		}
		schema, _, err := describe(stmt)
		if err = errors.Join(err, stmt.Close()); err == nil {
			t = schema[0].Type
		}
		return err
	})
	if refusal, ok := errors.AsType[*QueryError](err); ok {
		return t, &ExprError{Expr: expr, Message: refusal.Error()}
	}
	return t, err
}

// record is the FROM clause of one record with the types of the columns.
func record(columns value.Schema) (string, error) {
	if len(columns) == 0 {
		return "", nil
	}
	cells := make([]string, len(columns))
	for i, f := range columns {
		t, err := typeText(f.Type)
		if err != nil {
			return "", fmt.Errorf("column %q: %w", f.Name, err)
		}
		cells[i] = "CAST(NULL AS " + t + ") AS " + Ident(f.Name)
	}
	return " FROM (SELECT " + strings.Join(cells, ", ") + ")", nil
}

// parseExpr gives the tree of a text that is one expression and nothing else.
func (db *DB) parseExpr(ctx context.Context, expr string) (node, error) {
	if strings.TrimSpace(expr) == "" {
		return nil, &ExprError{Expr: expr, Message: "there is nothing in it"}
	}
	statements, err := db.parse(ctx, selectPrefix+expr+"\n)")
	if syntax, ok := errors.AsType[*syntaxError](err); ok {
		position := max(0, syntax.Position-len(selectPrefix)+1)
		if position > len(expr) {
			position = 0
		}
		return nil, &ExprError{Expr: expr, Position: position, Message: syntax.Message}
	}
	if err != nil {
		return nil, err
	}
	if len(statements) == 1 {
		if tree, ok := onlyExpr(statements[0].child("node")); ok {
			return tree, nil
		}
	}
	return nil, &ExprError{Expr: expr, Message: "it is more than one expression"}
}

func onlyExpr(query node) (node, bool) {
	items := query.list("select_list")
	plain := query.text("type") == "SELECT_NODE" && len(items) == 1 && query.child("from_table").text("type") == "EMPTY"
	for _, clause := range []string{"where_clause", "having", "qualify", "sample"} {
		plain = plain && query[clause] == nil
	}
	for _, clause := range []string{"group_expressions", "group_sets", "modifiers"} {
		plain = plain && len(query.list(clause)) == 0
	}
	if !plain {
		return nil, false
	}
	tree, ok := items[0].(map[string]any)
	return tree, ok
}

type exprCheck struct {
	expr    string
	columns []string
	known   functions
}

// visit gives the first fault of a tree, or nil.
func (c exprCheck) visit(tree node) error {
	var fault error
	walk(tree, func(n node) bool {
		if fault != nil {
			return false
		}
		switch n.text("class") {
		case "COLUMN_REF":
			fault = c.column(n)
		case "FUNCTION":
			fault = c.function(n)
		case "LAMBDA":
			fault = c.lambda(n)
			return false
		case "WINDOW":
			fault = c.refuse(n, "a window function looks at other records", "")
		case "SUBQUERY":
			fault = c.refuse(n, "a subquery looks at other records", "")
		case "PARAMETER":
			fault = c.refuse(n, "there are no parameters", "")
		case "STAR", "POSITIONAL_REFERENCE", "DEFAULT":
			fault = c.refuse(n, "columns are named one by one", "")
		}
		return fault == nil
	})
	return fault
}

// lambda checks the body of a lambda, in which its parameters are columns.
func (c exprCheck) lambda(n node) error {
	inner := c
	inner.columns = slices.Clone(c.columns)
	walk(n["lhs"], func(p node) bool {
		if names := p.texts("column_names"); len(names) > 0 {
			inner.columns = append(inner.columns, names[0])
		}
		return true
	})
	return inner.visit(n.child("expr"))
}

func (c exprCheck) column(n node) error {
	names := n.texts("column_names")
	if len(names) == 0 || slices.ContainsFunc(c.columns, func(s string) bool { return strings.EqualFold(s, names[0]) }) {
		return nil
	}
	if lower := strings.ToLower(names[0]); len(names) == 1 && (slices.Contains(impure, lower) || c.known.volatile[lower]) {
		return c.impure(n, lower)
	}
	hint := "the columns are " + strings.Join(c.columns, ", ")
	if near := spelling.Nearest(names[0], c.columns); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	e := c.refuse(n, fmt.Sprintf("no column is named %q", names[0]), hint)
	e.Column = names[0]
	return e
}

func (c exprCheck) function(n node) error {
	name := strings.ToLower(n.text("function_name"))
	switch {
	case c.known.aggregate[name]:
		return c.refuse(n, name+" is an aggregate: it looks at other records", "")
	case slices.Contains(many, name):
		return c.refuse(n, name+" makes several values of one", "")
	case name == "age" && len(n.list("children")) > 1:
		return nil
	case c.known.volatile[name], slices.Contains(impure, name), strings.HasPrefix(name, "pg_"), strings.HasPrefix(name, "inet_"),
		strings.HasPrefix(name, "has_"):
		return c.impure(n, name)
	default:
		return nil
	}
}

func (c exprCheck) impure(n node, name string) error {
	return c.refuse(n, name+" gives another value each time", "use a column of the record, or _day")
}

func (c exprCheck) refuse(n node, message, hint string) *ExprError {
	position := 0
	if at, ok := n["query_location"].(float64); ok && at < nowhere {
		position = max(0, int(at)-len(selectPrefix)+1)
	}
	return &ExprError{Expr: c.expr, Position: position, Message: message, Hint: hint}
}

// loaded are the functions of the library that this program is linked with: the same for every engine.
var loaded atomic.Pointer[functions] //nolint:gochecknoglobals // they take an engine longer to tell than to check an expression

func (db *DB) functions(ctx context.Context) (functions, error) {
	if f := loaded.Load(); f != nil {
		return *f, nil
	}
	f := functions{aggregate: map[string]bool{}, volatile: map[string]bool{}}
	result, err := db.Query(ctx, `SELECT lower(function_name),
  bool_and(function_type = 'aggregate'), bool_or(function_type = 'scalar' AND stability IS NOT NULL AND stability <> 'CONSISTENT')
FROM duckdb_functions() WHERE function_type IN ('aggregate', 'scalar', 'macro') GROUP BY ALL`)
	if err != nil {
		return f, fmt.Errorf("read the engine's functions: %w", err)
	}
	for _, row := range result.Rows {
		name, ok := row[0].(string)
		if !ok {
			continue
		}
		if row[1] == true {
			f.aggregate[name] = true
		}
		if row[2] == true {
			f.volatile[name] = true
		}
	}
	loaded.Store(&f)
	return f, nil
}
