package sql

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"varve/internal/value"
)

// Part is one data file of a table.
type Part struct {
	// Path is a local Parquet file.
	Path string
	// Constants are the columns that have one value for the whole file, such as those that the table is partitioned by.
	Constants map[string]value.Value
}

// View makes layer.name readable by queries as the rows of the parts, in the columns of the schema. A column that a
// file lacks is null. It replaces a view of the name.
func (db *DB) View(ctx context.Context, name string, parts []Part, schema value.Schema) error {
	layer, table, ok := strings.Cut(name, ".")
	if !ok {
		return fmt.Errorf("view %q: the name must be layer.name", name)
	}
	err := db.raw(ctx, func(c *duckdb.Conn) error {
		body, err := viewBody(ctx, c, parts, schema)
		if err != nil {
			return err
		}
		if err := exec(ctx, c, "CREATE SCHEMA IF NOT EXISTS "+Ident(layer)); err != nil {
			return err
		}
		return exec(ctx, c, "CREATE OR REPLACE VIEW "+Ident(layer)+"."+Ident(table)+" AS "+body)
	})
	if err != nil {
		return fmt.Errorf("view %s: %w", name, err)
	}
	return nil
}

func viewBody(ctx context.Context, c *duckdb.Conn, parts []Part, schema value.Schema) (string, error) {
	if len(parts) == 0 {
		columns, err := viewColumns(schema, nil, nil)
		return "SELECT " + columns + " WHERE false", err
	}
	groups, err := groupParts(parts, schema)
	if err != nil {
		return "", err
	}
	selects := make([]string, len(groups))
	for i, g := range groups {
		from := "read_parquet([" + strings.Join(g.paths, ", ") + "], union_by_name=true, hive_partitioning=false)"
		present, err := columnsOf(ctx, c, from)
		if err != nil {
			return "", err
		}
		columns, err := viewColumns(schema, g.constants, present)
		if err != nil {
			return "", err
		}
		selects[i] = "SELECT " + columns + " FROM " + from
	}
	return strings.Join(selects, " UNION ALL "), nil
}

type partGroup struct {
	paths     []string
	constants map[string]string
}

// groupParts puts parts with the same constants together, so that a view stays short.
func groupParts(parts []Part, schema value.Schema) ([]partGroup, error) {
	var groups []partGroup
	index := map[string]int{}
	for _, p := range parts {
		constants := map[string]string{}
		var key strings.Builder
		for _, f := range schema {
			v, ok := p.Constants[f.Name]
			if !ok {
				continue
			}
			text, err := literal(f.Type, v)
			if err != nil {
				return nil, fmt.Errorf("column %q: %w", f.Name, err)
			}
			constants[f.Name] = text
			key.WriteString(strconv.Quote(f.Name) + text)
		}
		i, ok := index[key.String()]
		if !ok {
			i = len(groups)
			index[key.String()] = i
			groups = append(groups, partGroup{constants: constants})
		}
		groups[i].paths = append(groups[i].paths, Text(unglob(p.Path)))
	}
	return groups, nil
}

// unglob spells a path so that the engine takes none of it as a pattern.
func unglob(path string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(path)
}

func columnsOf(ctx context.Context, c *duckdb.Conn, from string) ([]string, error) {
	stmt, err := prepare(ctx, c, "SELECT * FROM "+from)
	if err != nil {
		return nil, err
	}
	schema, _, err := describe(stmt)
	return schema.Names(), errors.Join(err, stmt.Close())
}

func viewColumns(schema value.Schema, constants map[string]string, present []string) (string, error) {
	columns := make([]string, len(schema))
	for i, f := range schema {
		t, err := typeText(f.Type)
		if err != nil {
			return "", fmt.Errorf("column %q: %w", f.Name, err)
		}
		source := "NULL"
		if text, ok := constants[f.Name]; ok {
			source = text
		} else if slices.ContainsFunc(present, func(s string) bool { return strings.EqualFold(s, f.Name) }) {
			source = Ident(f.Name)
		}
		columns[i] = "CAST(" + source + " AS " + t + ") AS " + Ident(f.Name)
	}
	return strings.Join(columns, ", "), nil
}

// literal is the SQL text of one value that is not nested.
func literal(t value.Type, v value.Value) (string, error) {
	name, err := typeText(t)
	if err != nil {
		return "", err
	}
	var text string
	switch v := v.(type) {
	case nil:
		text = "NULL"
	case bool:
		text = strconv.FormatBool(v)
	case int64:
		text = Text(strconv.FormatInt(v, 10))
	case float32:
		text = Text(strconv.FormatFloat(float64(v), 'g', -1, 32))
	case float64:
		text = Text(strconv.FormatFloat(v, 'g', -1, 64))
	case string:
		text = Text(v)
	case value.Decimal:
		text = Text(new(big.Rat).SetFrac(v.Unscaled, tenTo(v.Scale)).FloatString(v.Scale))
	case value.Binary:
		text = fmt.Sprintf("from_hex('%x')", []byte(v))
	case value.Date:
		text = fmt.Sprintf("(DATE '1970-01-01' + (%d))", int32(v))
	case value.Timestamp:
		text = fmt.Sprintf("to_timestamp(0) + to_microseconds(%d)", int64(v))
	case value.LocalTimestamp:
		text = fmt.Sprintf("make_timestamp(%d)", int64(v))
	default:
		return "", fmt.Errorf("a %T cannot be a constant", v)
	}
	return "CAST(" + text + " AS " + name + ")", nil
}
