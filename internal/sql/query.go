package sql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"varve/internal/value"
)

// Result is all rows of a query.
type Result struct {
	Schema value.Schema
	Rows   []value.Row
}

// Query runs one query that gives rows and does nothing else. Its arguments are values of internal/value, or nil. A
// type that no table has, such as a time or an uuid, comes as its text.
func (db *DB) Query(ctx context.Context, query string, args ...any) (*Result, error) {
	text := "(" + strings.TrimRight(query, "; \t\r\n") + "\n)"
	var result *Result
	err := db.raw(ctx, func(c *duckdb.Conn) error {
		exactText, err := exactly(ctx, c, text)
		if err != nil {
			return err
		}
		result, err = collect(ctx, c, exactText, args)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return result, nil
}

// exactly gives the query that selects from text each column in a form that the driver gives exactly.
func exactly(ctx context.Context, c *duckdb.Conn, text string) (string, error) {
	stmt, err := prepare(ctx, c, "SELECT * FROM "+text)
	if err != nil {
		return "", err
	}
	schema, exact, err := describe(stmt)
	if err = errors.Join(err, stmt.Close()); err != nil {
		return "", err
	}
	columns := make([]string, len(schema))
	for i, f := range schema {
		columns[i] = Ident(f.Name)
		if exact[i] {
			continue
		}
		t, err := typeText(f.Type)
		if err != nil {
			return "", fmt.Errorf("column %q: %w", f.Name, err)
		}
		columns[i] = "CAST(" + columns[i] + " AS " + t + ") AS " + columns[i]
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + text, nil
}

// collect runs one statement and keeps all its rows.
func collect(ctx context.Context, c *duckdb.Conn, text string, args []any) (result *Result, err error) {
	named, err := arguments(args)
	if err != nil {
		return nil, err
	}
	stmt, err := prepare(ctx, c, text)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	schema, _, err := describe(stmt)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, named)
	if err != nil {
		return nil, clean(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	result = &Result{Schema: schema}
	cells := make([]driver.Value, len(schema))
	for {
		switch err := rows.Next(cells); {
		case errors.Is(err, io.EOF):
			return result, nil
		case err != nil:
			return nil, clean(err)
		}
		row := make(value.Row, len(schema))
		for i := range schema {
			if row[i], err = fromDriver(schema[i].Type, cells[i]); err != nil {
				return nil, fmt.Errorf("column %q: %w", schema[i].Name, err)
			}
		}
		result.Rows = append(result.Rows, row)
	}
}

func prepare(ctx context.Context, c *duckdb.Conn, text string) (*duckdb.Stmt, error) {
	prepared, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, clean(err)
	}
	stmt, ok := prepared.(*duckdb.Stmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the SQL engine's statement is a %T", prepared), prepared.Close())
	}
	return stmt, nil
}

// describe gives the columns of a statement, and whether the driver gives each exactly.
func describe(stmt *duckdb.Stmt) (value.Schema, []bool, error) {
	n, err := stmt.ColumnCount()
	if err != nil {
		return nil, nil, clean(err)
	}
	schema, exact := make(value.Schema, n), make([]bool, n)
	for i := range n {
		name, err := stmt.ColumnName(i)
		if err != nil {
			return nil, nil, clean(err)
		}
		info, err := stmt.ColumnTypeInfo(i)
		if err != nil {
			return nil, nil, fmt.Errorf("column %q: %w", name, clean(err))
		}
		schema[i] = value.Field{Name: name, Nullable: true}
		if schema[i].Type, exact[i], err = typeOf(info); err != nil {
			return nil, nil, fmt.Errorf("column %q: %w", name, err)
		}
	}
	return schema, exact, nil
}

func arguments(args []any) ([]driver.NamedValue, error) {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i].Ordinal = i + 1
		switch v := arg.(type) {
		case value.Date:
			named[i].Value = time.Unix(int64(v)*secondsPerDay, 0).UTC()
		case value.Timestamp:
			named[i].Value = time.UnixMicro(int64(v)).UTC()
		case value.LocalTimestamp:
			named[i].Value = time.UnixMicro(int64(v)).UTC()
		case value.Decimal:
			named[i].Value = duckdb.Decimal{Width: maxPrecision, Scale: uint8(v.Scale), Value: v.Unscaled} //nolint:gosec // at most 38
		case value.Binary:
			named[i].Value = []byte(v)
		case value.Struct, value.List, value.Map:
			return nil, fmt.Errorf("argument %d: a %T cannot be an argument", i+1, v)
		default:
			named[i].Value = arg
		}
	}
	return named, nil
}
