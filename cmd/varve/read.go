package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
	var changes string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cat TABLE",
		Short: "print a Delta table: one of the project's by name, or any by its folder",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			switch {
			case flags.Changed("version") && flags.Changed("changes"):
				return &usageError{cause: errors.New("--version and --changes are two different questions: give one of them")}
			case !flags.Changed("version"):
				version = newest
			case version < 0:
				return &usageError{cause: fmt.Errorf("--version %d is less than 0", version)}
			}
			show := func() (value.Schema, iter.Seq2[value.Row, error], error) { return tableRows(cmd, o, args[0], version) }
			if flags.Changed("changes") {
				from, to, err := versionRange(changes)
				if err != nil {
					return &usageError{cause: err}
				}
				show = func() (value.Schema, iter.Seq2[value.Row, error], error) {
					return changedRows(cmd, o, args[0], from, to)
				}
			}
			schema, rows, err := show()
			if err == nil {
				err = printRows(cmd.OutOrStdout(), schema, rows, asJSON)
			}
			if err != nil {
				return fmt.Errorf("cat %s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().Int64Var(&version, "version", 0, "the table version (default the newest)")
	cmd.Flags().StringVar(&changes, "changes", "", "the change data feed of the versions FROM..TO, both included; FROM.. is up to the newest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

// tableRows gives the rows of a table's version.
func tableRows(cmd *cobra.Command, o *options, name string, version int64) (value.Schema, iter.Seq2[value.Row, error], error) {
	snap, err := openTable(cmd, o, name, version)
	if err != nil {
		return nil, nil, err
	}
	return snap.Schema(), snap.Scan(cmd.Context(), nil), nil
}

// changedRows gives the rows of a table's change data feed, each with what became of it, in which version and when.
func changedRows(cmd *cobra.Command, o *options, name string, from, to int64) (value.Schema, iter.Seq2[value.Row, error], error) {
	table, err := tableAt(cmd, o, name, false)
	if err != nil {
		return nil, nil, err
	}
	feed, err := table.Changes(cmd.Context(), from, to)
	if err != nil {
		return nil, nil, err
	}
	return feed.Columns(), func(yield func(value.Row, error) bool) {
		for c, err := range feed.Rows(cmd.Context()) {
			if !yield(append(slices.Clip(c.Row), string(c.Type), c.Version, value.Timestamp(c.At.UnixMicro())), err) || err != nil {
				return
			}
		}
	}, nil
}

// versionRange reads FROM..TO or FROM.., whose end is the newest version.
func versionRange(text string) (from, to int64, err error) {
	first, last, ok := strings.Cut(text, "..")
	wrong := fmt.Errorf("--changes %q: it takes versions as 3..7, or 3.. up to the newest", text)
	if !ok {
		return 0, 0, wrong
	}
	number := func(text string) int64 {
		n, failed := strconv.ParseUint(text, 10, 63)
		if failed != nil {
			err = wrong
		}
		return int64(n)
	}
	if from, to = number(first), newest; last != "" {
		if to = number(last); err == nil && to < from {
			err = fmt.Errorf("--changes %q: it ends before it begins", text)
		}
	}
	return from, to, err
}

// printRows writes rows: aligned, which needs all of them at once, or as JSON one by one.
func printRows(w io.Writer, schema value.Schema, rows iter.Seq2[value.Row, error], asJSON bool) error {
	var all []value.Row
	for row, err := range rows {
		if err != nil {
			return err
		}
		if !asJSON {
			all = append(all, row)
			continue
		}
		if err := printJSON(w, schema, []value.Row{row}); err != nil {
			return err
		}
	}
	if asJSON {
		return nil
	}
	return printTable(w, "", schema, all)
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
