package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"varve/internal/delta"
	"varve/internal/object/filestore"
	"varve/internal/stage"
	"varve/internal/value"
	"varve/schemas"
	"varve/worker"
)

func catCommand(o *options) *cobra.Command {
	var version int64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cat TABLE",
		Short: "print a Delta table: one of the project's by name, or any by its folder",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTable(cmd, o, args[0])
			if err != nil {
				return err
			}
			snap, err := t.Latest(cmd.Context())
			if cmd.Flags().Changed("version") {
				snap, err = t.Version(cmd.Context(), version)
			}
			if err != nil {
				return fmt.Errorf("cat %s: %w", args[0], err)
			}
			var rows []value.Row
			for row, err := range snap.Scan(cmd.Context(), nil) {
				if err != nil {
					return fmt.Errorf("cat %s: %w", args[0], err)
				}
				if !asJSON {
					rows = append(rows, row)
					continue
				}
				if err := printJSON(cmd.OutOrStdout(), snap.Schema(), []value.Row{row}); err != nil {
					return err
				}
			}
			if asJSON {
				return nil
			}
			return printTable(cmd.OutOrStdout(), "", snap.Schema(), rows)
		},
	}
	cmd.Flags().Int64Var(&version, "version", 0, "the table version (default the newest)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

// openTable opens a table of the project by name, or the Delta table in a folder.
func openTable(cmd *cobra.Command, o *options, name string) (delta.Table, error) {
	if !schemas.IsTableName(name) {
		dir, err := filepath.Abs(name)
		if err != nil {
			return delta.Table{}, fmt.Errorf("open %q: %w", name, err)
		}
		store, err := filestore.Open(filepath.Dir(dir))
		if err != nil {
			return delta.Table{}, fmt.Errorf("open %q: %w", name, err)
		}
		return delta.At(store, filepath.Base(dir)), nil
	}
	p, err := worker.OpenProject(cmd.Context(), o.project, o.log())
	if err != nil {
		return delta.Table{}, err
	}
	t := delta.At(p.Engine.Warehouse, stage.Root(name))
	if _, err := t.Latest(cmd.Context()); errors.Is(err, delta.ErrNoTable) {
		known, err := stage.Tables(cmd.Context(), p.Engine.Warehouse)
		return t, errors.Join(&stage.NoTableError{Table: name, Known: known}, err)
	}
	return t, nil
}

func queryCommand(o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "query SQL",
		Short: "answer a SQL query over the project's tables, each by its name",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := worker.OpenProject(cmd.Context(), o.project, o.log())
			if err != nil {
				return err
			}
			result, err := p.Engine.Query(cmd.Context(), args[0], nil)
			if err != nil {
				return fmt.Errorf("query: %w", err)
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), result.Schema, result.Rows)
			}
			return printTable(cmd.OutOrStdout(), "", result.Schema, result.Rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}
