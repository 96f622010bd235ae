package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"varve/internal/stage"
	"varve/schemas/demo"
	"varve/worker"
	"varve/workflows"
)

func demoCommand(o *options) *cobra.Command {
	var dir string
	var exit bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "make a project, run its days through Temporal, and show what becomes of its tables",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := demoProject(dir)
			if err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			if err := plant(demo.Files(), at); err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			p, err := worker.OpenProject(cmd.Context(), at, o.log())
			if err != nil {
				return err
			}
			s, err := worker.Serve(cmd.Context(), p.Config(o.log()), p.Engine)
			if err != nil {
				return err
			}
			d := demonstration{out: cmd.OutOrStdout(), project: p, service: s}
			return errors.Join(d.run(cmd.Context(), exit), s.Stop())
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the project's folder (default a new temporary one)")
	cmd.Flags().BoolVar(&exit, "exit", false, "end when the days are done")
	return cmd
}

// demoProject makes the demo's project in dir, unless it is there. A folder with something else in it is refused.
func demoProject(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "varve-demo-")
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, worker.ProjectFile)); errors.Is(err, fs.ErrNotExist) && len(entries) > 0 {
		return "", fmt.Errorf("%q is not empty: name a new folder with --dir", dir)
	}
	return dir, nil
}

// demonstration runs the demo's days and tells of them.
type demonstration struct {
	out     io.Writer
	project *worker.Project
	service *worker.Service
}

func (d demonstration) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d demonstration) run(ctx context.Context, exit bool) error {
	seen := fingerprint(d.project.Dir)
	if err := publish(ctx, d.out, d.project, d.service); err != nil {
		return err
	}
	d.say("project  %s\nTemporal %s\nUI       %s/namespaces/%s/workflows\n", d.project.Dir, d.service.Server.Address, d.service.Server.UI, d.service.Namespace)
	var datasets []string
	for _, day := range demo.Days() {
		d.say("== %s", day.Day)
		for _, line := range day.Story {
			d.say("   %s", line)
		}
		for _, dataset := range day.Datasets {
			datasets = append(datasets, dataset)
			if err := d.day(ctx, "demo/day/"+dataset+"/"+day.Day, workflows.Day, workflows.DayInput{Dataset: dataset, Day: day.Day}); err != nil {
				return err
			}
		}
		if err := d.tables(ctx); err != nil {
			return err
		}
	}
	if err := d.again(ctx); err != nil {
		return err
	}
	slices.Sort(datasets)
	for _, dataset := range slices.Compact(datasets) {
		if err := d.maintain(ctx, dataset); err != nil {
			return err
		}
	}
	d.hints()
	if exit {
		return nil
	}
	d.say("It stays up until Ctrl-C.")
	return stay(ctx, d.service, lookAgain, saved(ctx, d.out, d.project, d.service, seen))
}

// day runs a workflow of one day, Day or Replay, and tells what became of the day.
func (d demonstration) day(ctx context.Context, id, workflow string, in any) error {
	var r workflows.DayResult
	if err := d.service.Run(ctx, id, workflow, in, &r); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	d.say("   %s %s: %d files, %d records, %d events, %d to quarantine", r.Dataset, r.Day, r.Counts["files"], r.Counts["records"], r.Counts["events"], r.Counts["quarantined"])
	return nil
}

// again runs the last day of every dataset a second time, which changes nothing.
func (d demonstration) again(ctx context.Context) error {
	days := demo.Days()
	last := days[len(days)-1]
	d.say("== %s again", last.Day)
	for _, dataset := range last.Datasets {
		before, err := d.versions(ctx)
		if err != nil {
			return err
		}
		if err := d.day(ctx, "demo/replay/"+dataset+"/"+last.Day, workflows.Replay, workflows.ReplayInput{Dataset: dataset, Day: last.Day}); err != nil {
			return err
		}
		after, err := d.versions(ctx)
		if err != nil {
			return err
		}
		for _, table := range slices.Sorted(maps.Keys(after)) {
			if before[table] != after[table] {
				return fmt.Errorf("demo: a day run again made version %d of %s", after[table], table)
			}
		}
		d.say("   no table has a new version")
	}
	return nil
}

func (d demonstration) maintain(ctx context.Context, dataset string) error {
	var done stage.Maintained
	if err := d.service.Run(ctx, "demo/maintain/"+dataset, workflows.Maintain, workflows.MaintainInput{Dataset: dataset}, &done); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	for _, t := range done.Tables {
		d.say("   maintained %s: %s", t.Table, t.Done)
	}
	return nil
}

// maintained are the warehouse's silver and gold tables.
func (d demonstration) maintained(ctx context.Context) ([]string, error) {
	return stage.Maintainable(ctx, d.project.Engine.Warehouse)
}

// versions are the versions of silver and gold tables.
func (d demonstration) versions(ctx context.Context) (map[string]int64, error) {
	names, err := d.maintained(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for _, name := range names {
		snap, err := d.project.Engine.Snapshot(ctx, name, -1)
		if err != nil {
			return nil, err
		}
		out[name] = snap.Version()
	}
	return out, nil
}

// tables prints the silver and gold tables.
func (d demonstration) tables(ctx context.Context) error {
	names, err := d.maintained(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		result, err := d.project.Engine.Query(ctx, "SELECT * FROM "+name+" ORDER BY ALL", nil)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		d.say("\n   %s", name)
		if err := printTable(d.out, "     ", result.Schema, result.Rows); err != nil {
			return err
		}
	}
	d.say("")
	return nil
}

// hints says what to look at.
func (d demonstration) hints() {
	ui := d.service.Server.UI + "/namespaces/" + d.service.Namespace
	d.say(`
In the Temporal UI:
  %[1]s/workflows                             every run; Day has one activity a stage
  %[1]s/workflows/lane%%2Fcustomer             the lane that runs a dataset's days one at a time
  Start Workflow, type Replay, task queue %[2]s, input {"dataset": "customer", "day": "2026-01-06"}
  Start Workflow, type Backfill, task queue %[2]s, input {"dataset": "customer", "from": "2026-01-05", "to": "2026-01-08"}
Beside it:
  varve -C %[3]s cat ops.runs
  varve -C %[3]s query "SELECT * FROM gold.sales_by_city"
  varve -C %[3]s cat quarantine.customers`, ui, d.service.Queue, d.project.Dir)
}
