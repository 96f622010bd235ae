package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"varve/internal/value"
)

// printTable writes rows under their column names, aligned.
func printTable(w io.Writer, indent string, schema value.Schema, rows []value.Row) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, indent+strings.Join(schema.Names(), "\t"))
	for _, row := range rows {
		fmt.Fprintln(tab, indent+strings.Join(cells(schema, row), "\t"))
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// cells gives a row's values as a person reads them: text bare, null as a dash.
func cells(schema value.Schema, row value.Row) []string {
	out := make([]string, len(schema))
	for i, f := range schema {
		switch v := row[i].(type) {
		case nil:
			out[i] = "-"
		case string:
			out[i] = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(v)
		default:
			out[i] = strings.Trim(string(value.AppendJSON(nil, f.Type, v)), `"`)
		}
	}
	return out
}

// printJSON writes one JSON object a row.
func printJSON(w io.Writer, schema value.Schema, rows []value.Row) error {
	t := value.Type{Kind: value.StructKind, Fields: schema}
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, string(value.AppendJSON(nil, t, asStruct(schema, row)))); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

func asStruct(schema value.Schema, row value.Row) value.Struct {
	out := make(value.Struct, len(schema))
	for i, f := range schema {
		out[i] = value.Member{Name: f.Name, Value: row[i]}
	}
	return out
}
