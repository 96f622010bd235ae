package sql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"varve/internal/value"
)

const (
	rowColumn   = "_varve_n"
	recordTable = "_varve_records"
	evalChunk   = 1 << 16 // rows
)

// Eval computes expressions over rows: a row an input row, a value an expression, in order. A row for which an
// expression has no value has an error of its own (a *RowError), its other values stand; the call fails only for a
// reason that is not of one row. A name alone gives the column as it is.
func (db *DB) Eval(ctx context.Context, columns value.Schema, rows []value.Row, exprs []string) ([]value.Row, []error, error) {
	out, faults := make([]value.Row, len(rows)), make([]error, len(rows))
	for i := range out {
		out[i] = make(value.Row, len(exprs))
	}
	var computed []int // positions of the expressions that the engine is needed for
	var texts []string
	for i, expr := range exprs {
		if at := plainColumn(expr, columns); at >= 0 {
			for r := range rows {
				out[r][i] = rows[r][at]
			}
			continue
		}
		computed, texts = append(computed, i), append(texts, expr)
	}
	if len(texts) == 0 || len(rows) == 0 {
		return out, faults, nil
	}
	used, err := db.columnsUsed(ctx, columns, texts)
	if err != nil {
		return nil, nil, err
	}
	for start := 0; start < len(rows); start += evalChunk {
		end := min(start+evalChunk, len(rows))
		e := evaluation{columns: columns, used: used, exprs: texts, rows: rows[start:end], faults: faults[start:end]}
		values, err := e.run(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		for r := range values {
			for i, at := range computed {
				out[start+r][at] = values[r][i]
			}
		}
	}
	return out, faults, nil
}

// plainColumn gives the position of the column that an expression is the bare name of, or -1.
func plainColumn(expr string, columns value.Schema) int {
	name := strings.TrimSpace(expr)
	if len(name) > 1 && name[0] == '"' && name[len(name)-1] == '"' {
		name = strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	}
	return columns.Index(name)
}

// Columns gives the names of the columns that an expression reads, in the order of the columns.
func (db *DB) Columns(ctx context.Context, expr string, columns value.Schema) ([]string, error) {
	if at := plainColumn(expr, columns); at >= 0 {
		return []string{columns[at].Name}, nil
	}
	used, err := db.columnsUsed(ctx, columns, []string{expr})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(used))
	for i, at := range used {
		names[i] = columns[at].Name
	}
	return names, nil
}

// columnsUsed gives the positions of the columns that any of the expressions can read.
func (db *DB) columnsUsed(ctx context.Context, columns value.Schema, exprs []string) ([]int, error) {
	names := map[string]bool{}
	for _, expr := range exprs {
		tree, err := db.parseExpr(ctx, expr)
		if err != nil {
			return nil, err
		}
		walk(tree, func(n node) bool {
			for _, name := range n.texts("column_names") {
				names[strings.ToLower(name)] = true
			}
			return true
		})
	}
	var used []int
	for i, f := range columns {
		if names[strings.ToLower(f.Name)] {
			used = append(used, i)
		}
	}
	return used, nil
}

// evaluation is the work on one chunk of rows.
type evaluation struct {
	columns value.Schema
	used    []int
	exprs   []string
	rows    []value.Row
	faults  []error // one a row, filled
}

func (e evaluation) run(ctx context.Context, db *DB) (values []value.Row, err error) {
	err = db.raw(ctx, func(c *duckdb.Conn) error {
		if err := e.load(ctx, c); err != nil {
			return err
		}
		values, err = e.compute(ctx, c)
		return errors.Join(err, exec(context.WithoutCancel(ctx), c, "DROP TABLE IF EXISTS "+recordTable))
	})
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	return values, nil
}

// load puts the rows into a table of the connection. A row with a value that the engine cannot hold gets its error and
// stands as nulls.
func (e evaluation) load(ctx context.Context, c *duckdb.Conn) error {
	columns := []string{rowColumn + " BIGINT"}
	for _, at := range e.used {
		t, err := typeText(e.columns[at].Type)
		if err != nil {
			return fmt.Errorf("column %q: %w", e.columns[at].Name, err)
		}
		columns = append(columns, Ident(e.columns[at].Name)+" "+t)
	}
	if err := exec(ctx, c, "CREATE OR REPLACE TEMP TABLE "+recordTable+" ("+strings.Join(columns, ", ")+")"); err != nil {
		return err
	}
	appender, err := duckdb.NewAppender(c, "temp", "main", recordTable)
	if err != nil {
		return clean(err)
	}
	for i, row := range e.rows {
		cells := make([]any, 1, len(e.used)+1)
		cells[0] = int64(i)
		for _, at := range e.used {
			cell, err := toDriver(e.columns[at].Type, row[at])
			if err != nil {
				e.faults[i] = &RowError{Expr: e.columns[at].Name, Kind: err.Error()}
			}
			cells = append(cells, cell)
		}
		if err := appender.AppendRow(asDriverValues(cells)...); err != nil {
			return errors.Join(clean(err), appender.Close())
		}
	}
	return clean(appender.Close())
}

func (e evaluation) compute(ctx context.Context, c *duckdb.Conn) ([]value.Row, error) {
	schema, exact, err := e.types(ctx, c)
	if err != nil {
		return nil, err
	}
	items := make([]string, len(e.exprs))
	for i, expr := range e.exprs {
		items[i] = "(" + expr + "\n)"
		if exact[i] {
			continue
		}
		t, err := typeText(schema[i].Type)
		if err != nil {
			return nil, fmt.Errorf("expression %q: %w", expr, err)
		}
		items[i] = "CAST(" + items[i] + " AS " + t + ")"
	}
	result, err := collect(ctx, c, "SELECT "+strings.Join(items, ", ")+" FROM "+recordTable+" ORDER BY "+rowColumn, nil)
	if err == nil {
		return result.Rows, nil
	}
	if refusal, ok := errors.AsType[*QueryError](err); !ok || refusal.Message != "" {
		return nil, err
	}
	return e.rescue(ctx, c, items)
}

func (e evaluation) types(ctx context.Context, c *duckdb.Conn) (value.Schema, []bool, error) {
	items := make([]string, len(e.exprs))
	for i, expr := range e.exprs {
		items[i] = "(" + expr + "\n)"
	}
	stmt, err := prepare(ctx, c, "SELECT "+strings.Join(items, ", ")+" FROM "+recordTable)
	if err != nil {
		return nil, nil, err
	}
	schema, exact, err := describe(stmt)
	return schema, exact, errors.Join(err, stmt.Close())
}

// rescue computes each expression so that a row without a value is told from a row whose value is null.
func (e evaluation) rescue(ctx context.Context, c *duckdb.Conn, items []string) ([]value.Row, error) {
	values := make([]value.Row, len(e.rows))
	for r := range values {
		values[r] = make(value.Row, len(items))
	}
	for i, item := range items {
		// An error makes the whole struct null; a null value is a struct that holds null.
		wrapped := "SELECT TRY(struct_pack(v := " + item + ")) FROM " + recordTable + " ORDER BY " + rowColumn
		result, err := collect(ctx, c, wrapped, nil)
		if err != nil {
			return nil, err
		}
		for r, row := range result.Rows {
			s, ok := row[0].(value.Struct)
			if !ok {
				e.fault(ctx, c, r, i, item)
				continue
			}
			values[r][i] = s[0].Value
		}
	}
	return values, nil
}

// fault names the reason why an expression has no value for a row.
func (e evaluation) fault(ctx context.Context, c *duckdb.Conn, row, expr int, item string) {
	if e.faults[row] != nil {
		return
	}
	kind := "invalid input"
	_, err := collect(ctx, c, fmt.Sprintf("SELECT %s FROM %s WHERE %s = %d", item, recordTable, rowColumn, row), nil)
	if refusal, ok := errors.AsType[*QueryError](err); ok {
		kind = refusal.Kind
	}
	e.faults[row] = &RowError{Expr: e.exprs[expr], Kind: kind}
}

func asDriverValues(cells []any) []driver.Value {
	values := make([]driver.Value, len(cells))
	for i, cell := range cells {
		values[i] = cell
	}
	return values
}
