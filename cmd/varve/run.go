package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"varve/internal/merge"
	"varve/internal/stage"
	"varve/internal/value"
	"varve/schemas"
	"varve/worker"
)

func runCommand(o *options) *cobra.Command {
	var day string
	var dry bool
	var contract int64
	cmd := &cobra.Command{
		Use:   "run DATASET",
		Short: "run every stage of a dataset's day in this process, without Temporal",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := time.Parse(time.DateOnly, day); cmd.Flags().Changed("day") && err != nil {
				return &usageError{cause: fmt.Errorf("--day %q is not of the form 2026-09-14", day)}
			}
			p, err := worker.OpenProject(cmd.Context(), o.project, o.log())
			if err != nil {
				return err
			}
			in := stage.DayRequest{
				Dataset: args[0], Day: cmp.Or(day, p.Engine.Now().Format(time.DateOnly)), Contract: contract, Run: "run-" + uuid.NewString(), Reopen: true,
			}
			out := cmd.OutOrStdout()
			if dry {
				return dryRun(cmd, p, in)
			}
			published, err := p.Publish(cmd.Context(), func(line string) { fmt.Fprintln(out, line) })
			own := slices.ContainsFunc(published, func(c schemas.Published) bool { return c.Contract.Dataset == in.Dataset })
			if err != nil && !own {
				return err
			}
			notPublished(cmd.ErrOrStderr(), err)
			result, err := p.Engine.Day(cmd.Context(), in)
			if err != nil {
				return err
			}
			report(out, result)
			for _, table := range slices.Sorted(maps.Keys(result.Versions)) {
				fmt.Fprintf(out, "  %s is at version %d", table, result.Versions[table])
				count := func(name string) int64 { return result.Counts[table+"."+name] }
				if _, merged := result.Counts[table+"."+merge.Events]; merged {
					fmt.Fprintf(out, ": %d rows inserted, %d updated, %d deleted", count(merge.Inserted), count(merge.Updated), count(merge.Deleted))
				}
				fmt.Fprintln(out)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&day, "day", "", "the logical day, as 2026-09-14 (default today)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "tell what would change, and change nothing")
	cmd.Flags().Int64Var(&contract, "contract", 0, "the number of the published contract to use (default the newest)")
	return cmd
}

// report tells in a few lines what came and what became of it.
func report(w io.Writer, r stage.DayResult) {
	fmt.Fprintf(w, "%s %s: %d files, %d records, %d events\n", r.Run.Dataset, r.Run.Day, r.Normalized.Files, r.Normalized.Records, r.Normalized.Events)
	if r.Normalized.Quarantined > 0 {
		fmt.Fprintf(w, "  %d records went to quarantine: varve cat quarantine.%s\n", r.Normalized.Quarantined, r.Run.Dataset)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Normalized.Unknown)) {
		fmt.Fprintf(w, "  %d records have a field %q, and the contract has no column of that name\n", r.Normalized.Unknown[name], name)
	}
	for _, line := range r.Waiting {
		fmt.Fprintf(w, "  model %s: it was not made\n", line)
	}
}

func dryRun(cmd *cobra.Command, p *worker.Project, in stage.DayRequest) error {
	out := cmd.OutOrStdout()
	contracts, err := p.Contracts(cmd.Context())
	own := slices.ContainsFunc(contracts, func(c schemas.Contract) bool { return c.Dataset == in.Dataset })
	if err != nil && !own {
		return err
	}
	notPublished(cmd.ErrOrStderr(), err)
	result, forecasts, err := p.Engine.DryRun(cmd.Context(), in, contracts)
	if err != nil {
		return err
	}
	report(out, result)
	for _, f := range forecasts {
		fmt.Fprintf(out, "%s would have %d rows inserted, %d updated, %d deleted\n", f.Target, f.Counts[merge.Inserted], f.Counts[merge.Updated], f.Counts[merge.Deleted])
		if len(f.Changes) == 0 {
			continue
		}
		schema := append(value.Schema{{Name: "change", Type: value.Type{Kind: value.StringKind}}}, f.Schema...)
		var rows []value.Row
		for _, c := range f.Changes {
			sign := "-"
			if c.Added {
				sign = "+"
			}
			rows = append(rows, append(value.Row{sign}, c.Row...))
		}
		if err := printTable(out, "  ", schema, rows); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "Nothing was committed.")
	return nil
}
