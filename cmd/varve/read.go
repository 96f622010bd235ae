package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"varve/internal/delta"
	"varve/internal/object/filestore"
	"varve/internal/value"
	"varve/schemas"
	"varve/worker"
)

// newest is the version that stands for a table's newest.
const newest = -1

func catCommand(o *options) *cobra.Command {
	var version int64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cat TABLE",
		Short: "print a Delta table: one of the project's by name, or any by its folder",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("version"):
				version = newest
			case version < 0:
				return &usageError{cause: fmt.Errorf("--version %d is less than 0", version)}
			}
			snap, err := openTable(cmd, o, args[0], version)
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

// openTable opens a version of a table of the project by name, or of the Delta table in a folder; version < 0 means the newest.
func openTable(cmd *cobra.Command, o *options, name string, version int64) (*delta.Snapshot, error) {
	if schemas.IsTableName(name) {
		p, err := worker.OpenProject(cmd.Context(), o.project, o.log())
		if err != nil {
			return nil, err
		}
		return p.Engine.Snapshot(cmd.Context(), name, version)
	}
	dir, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", name, err)
	}
	store, err := filestore.OpenReadOnly(filepath.Dir(dir))
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", name, err)
	}
	table := delta.At(store, filepath.Base(dir))
	if version < 0 {
		return table.Latest(cmd.Context())
	}
	return table.Version(cmd.Context(), version)
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
