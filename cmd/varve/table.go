package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/object/filestore"
	"varve/internal/stage"
	"varve/schemas"
	"varve/worker"
)

func tableCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table",
		Short: "look after a Delta table: one of the project's by name, or any by its folder",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tableInfoCommand(o), tableHistoryCommand(o), tableCheckpointCommand(o), tableVacuumCommand(o))
	return cmd
}

func tableInfoCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "info TABLE",
		Short: "tell what a table is, how its log and files are, and which engines can read and write it",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := tableAt(cmd, o, args[0], false)
			if err != nil {
				return err
			}
			if err := printInfo(cmd, t); err != nil {
				return fmt.Errorf("table info %s: %w", args[0], err)
			}
			return nil
		},
	}
}

// tableAt finds a table of the project by name, or the Delta table in a folder, which is opened to be written only where it is
// asked for.
func tableAt(cmd *cobra.Command, o *options, name string, write bool) (delta.Table, error) {
	snap, err := openTable(cmd, o, name, -1)
	if err != nil {
		return delta.Table{}, err
	}
	if !write || schemas.IsTableName(name) {
		return snap.Table(), nil
	}
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

// printInfo writes what is known of a table's newest version.
func printInfo(cmd *cobra.Command, t delta.Table) error {
	snap, err := t.Latest(cmd.Context())
	if err != nil {
		return err
	}
	log, err := logLines(cmd, t, snap)
	if err != nil {
		return err
	}
	m, p, totals := snap.Metadata(), snap.Protocol(), snap.Totals()
	rows := strconv.FormatInt(totals.Rows, 10)
	if totals.Rows < 0 {
		rows = "not told by every file's statistics"
	}
	lines := [][2]string{
		{"version", fmt.Sprintf("%d, of %s", snap.Version(), snap.Timestamp().UTC().Format(time.RFC3339))},
		{"id", m.ID},
		{"name", m.Name},
		{"description", m.Description},
		{"protocol", fmt.Sprintf("reader %d, writer %d", p.MinReaderVersion, p.MinWriterVersion)},
		{"features", orDash(p.Features())},
		{"columns", orDash(m.Schema.Names())},
		{"partitioned by", orDash(m.PartitionColumns)},
		{"statistics of", orDash(m.StatsColumns())},
		{"files", strconv.FormatInt(totals.Files, 10)},
		{"bytes", strconv.FormatInt(totals.Bytes, 10)},
		{"rows", rows},
		{"deletion vectors", fmt.Sprintf("%d, of %d rows", totals.Vectors, totals.Deleted)},
	}
	lines = append(lines, log...)
	for _, name := range slices.Sorted(maps.Keys(m.Configuration)) {
		lines = append(lines, [2]string{"property " + name, m.Configuration[name]})
	}
	for _, c := range delta.Clients(p) {
		lines = append(lines, [2]string{c.Name, abilities(c)})
	}
	return printPairs(cmd.OutOrStdout(), lines)
}

// logLines tells of a table's checkpoint and checksum.
func logLines(cmd *cobra.Command, t delta.Table, snap *delta.Snapshot) ([][2]string, error) {
	version, at, err := t.NewestCheckpoint(cmd.Context())
	if err != nil {
		return nil, err
	}
	checkpoint := "none"
	if version >= 0 {
		checkpoint = fmt.Sprintf("version %d, of %s, %d versions ago", version, at.UTC().Format(time.RFC3339), snap.Version()-version)
	}
	checksum := "agrees with the log"
	read, err := t.ReadChecksum(cmd.Context(), snap.Version())
	switch {
	case errors.Is(err, object.ErrNotFound):
		checksum = "none"
	case err != nil:
		return nil, err
	default:
		if differs := snap.Differs(read); len(differs) > 0 {
			checksum = "differs from the log in " + strings.Join(differs, ", ")
		}
	}
	return [][2]string{{"checkpoint", checkpoint}, {"checksum", checksum}}, nil
}

// abilities says in words what an engine can do with a table.
func abilities(c delta.Client) string {
	switch {
	case c.CannotRead != "":
		return "cannot read or write: it " + c.CannotRead
	case c.CannotWrite != "":
		return "reads; cannot write: it " + c.CannotWrite
	case c.AppendOnly:
		return "reads and appends"
	default:
		return "reads and writes"
	}
}

// orDash joins names; none are a dash.
func orDash(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ", ")
}

// printPairs writes names and what they stand for, aligned; what stands for nothing is left out.
func printPairs(w io.Writer, lines [][2]string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		if line[1] != "" {
			fmt.Fprintf(tab, "%s\t%s\n", line[0], strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(line[1]))
		}
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func tableHistoryCommand(o *options) *cobra.Command {
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history TABLE",
		Short: "list the commits that the table's log still has, newest first",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := tableAt(cmd, o, args[0], false)
			if err != nil {
				return err
			}
			entries, err := t.History(cmd.Context(), limit)
			if err != nil {
				return fmt.Errorf("table history %s: %w", args[0], err)
			}
			return printHistory(cmd.OutOrStdout(), entries, asJSON)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "how many commits (default all)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, with the names of Spark's DESCRIBE HISTORY")
	return cmd
}

// printHistory writes commits.
func printHistory(w io.Writer, entries []delta.HistoryEntry, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, e := range entries {
			if err := enc.Encode(e); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
		return nil
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "version\ttimestamp\toperation\tengine\tparameters\tmetrics")
	for _, e := range entries {
		parameters := make(map[string]string, len(e.OperationParameters))
		for name, raw := range e.OperationParameters {
			parameters[name] = string(raw)
		}
		fmt.Fprintf(tab, "%d\t%s\t%s\t%s\t%s\t%s\n", e.Version, e.Timestamp.Format("2006-01-02T15:04:05.000Z"),
			orDash(nonEmpty(e.Operation)), orDash(nonEmpty(e.EngineInfo)), pairs(parameters), pairs(e.OperationMetrics))
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// nonEmpty is a list of a text, unless it is empty.
func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text)}
}

// pairs writes a map in a line, ordered by name.
func pairs(m map[string]string) string {
	out := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, nonEmpty(name+"="+m[name])...)
	}
	return orDash(out)
}

func tableCheckpointCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint TABLE",
		Short: "write a checkpoint of the newest version, and delete the expired part of the log",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := tableAt(cmd, o, args[0], true)
			if err != nil {
				return err
			}
			snap, err := t.Latest(cmd.Context())
			if err != nil {
				return fmt.Errorf("table checkpoint %s: %w", args[0], err)
			}
			if err := t.Checkpoint(cmd.Context(), snap.Version()); err != nil {
				return fmt.Errorf("table checkpoint %s: %w", args[0], err)
			}
			cleaned, err := t.CleanLog(cmd.Context())
			if err != nil {
				return fmt.Errorf("table checkpoint %s: %w", args[0], err)
			}
			w := cmd.OutOrStdout()
			fmt.Fprintf(w, "checkpoint of version %d\n", snap.Version())
			if cleaned.Through >= 0 {
				fmt.Fprintf(w, "the log begins with version %d; %d expired files deleted\n", cleaned.Through, len(cleaned.Deleted))
			}
			return nil
		},
	}
}

func tableVacuumCommand(o *options) *cobra.Command {
	var options delta.VacuumOptions
	var retain time.Duration
	cmd := &cobra.Command{
		Use:   "vacuum TABLE",
		Short: "delete the files that no readable version of the table needs",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("retain") {
				options.Retention = &retain
			}
			result, err := vacuum(cmd, o, args[0], options)
			if _, tooShort := errors.AsType[*delta.RetentionError](err); tooShort {
				err = fmt.Errorf("%w with --force", err)
			}
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			verb := "deleted"
			if options.DryRun {
				verb = "would delete"
				for _, f := range result.Files {
					fmt.Fprintf(w, "%s\t%d\n", f.Path, f.Size)
				}
			}
			fmt.Fprintf(w, "%s %d files of %d bytes; versions %d to %d can be read\n", verb, len(result.Files), result.Bytes, result.Oldest, result.Version)
			return nil
		},
	}
	cmd.Flags().BoolVar(&options.DryRun, "dry-run", false, "list what would be deleted, and delete nothing")
	cmd.Flags().DurationVar(&retain, "retain", 0, "how long unneeded files and past versions are kept, as 168h (default the table's delta.deletedFileRetentionDuration)")
	cmd.Flags().BoolVar(&options.Force, "force", false, "allow --retain to be shorter than the table's own")
	return cmd
}

// vacuum sweeps a table of the project by name, or the table in a folder. A table that varve maintains is swept by its name
// only: what runs have prepared for it is known to its project.
func vacuum(cmd *cobra.Command, o *options, name string, options delta.VacuumOptions) (delta.VacuumResult, error) {
	if schemas.IsTableName(name) {
		p, err := worker.OpenProject(cmd.Context(), o.project, o.log())
		if err != nil {
			return delta.VacuumResult{}, err
		}
		return p.Engine.Vacuum(cmd.Context(), name, options)
	}
	t, err := tableAt(cmd, o, name, true)
	if err != nil {
		return delta.VacuumResult{}, err
	}
	ours, err := stage.HasState(cmd.Context(), t)
	if err != nil {
		return delta.VacuumResult{}, fmt.Errorf("table vacuum %s: %w", name, err)
	}
	if ours {
		return delta.VacuumResult{}, fmt.Errorf("table vacuum %s: varve maintains this table: name it as layer.name, with its project's folder in -C", name)
	}
	result, err := t.Vacuum(cmd.Context(), options)
	if err != nil {
		return result, fmt.Errorf("table vacuum %s: %w", name, err)
	}
	return result, nil
}
