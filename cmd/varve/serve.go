package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"varve/worker"
)

// lookAgain is how often varve dev looks for changed contracts and models.
const lookAgain = 500 * time.Millisecond

func devCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "dev",
		Short: "serve a project: Temporal, its UI, a worker, schedules; contracts are published when they change",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			p, err := worker.OpenProject(cmd.Context(), o.project, o.log())
			if err != nil {
				return err
			}
			seen := fingerprint(p.Dir)
			if err := publish(cmd.Context(), out, p, nil); err != nil {
				return err
			}
			s, err := worker.Serve(cmd.Context(), p.Config(o.log()), p.Engine)
			if err != nil {
				return err
			}
			if err := publish(cmd.Context(), out, p, s); err != nil {
				return errors.Join(err, s.Stop())
			}
			announce(out, s)
			watch(cmd.Context(), out, p, s, seen)
			return s.Stop()
		},
	}
}

// announce tells where things are, once everything answers.
func announce(w io.Writer, s *worker.Service) {
	if s.Server.SetAside != "" {
		fmt.Fprintf(w, "Temporal's state of another version was set aside as %s; what is done stands in the warehouse\n", s.Server.SetAside)
	}
	fmt.Fprintf(w, "ready: Temporal at %s, its UI at %s/namespaces/%s/workflows; Ctrl-C ends it\n", s.Server.Address, s.Server.UI, s.Namespace)
}

// publish publishes what changed, and sets the schedules to it where a service runs.
func publish(ctx context.Context, w io.Writer, p *worker.Project, s *worker.Service) error {
	contracts, err := p.Publish(ctx, func(line string) { fmt.Fprintln(w, line) })
	if err != nil || s == nil {
		return err
	}
	return s.Schedules(ctx, contracts)
}

// watch publishes contracts and models when their files are not any more what was seen, until ctx ends. A change with
// problems is told and not published; what was published before stays in force.
func watch(ctx context.Context, w io.Writer, p *worker.Project, s *worker.Service, seen []byte) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := fingerprint(p.Dir)
		if bytes.Equal(now, seen) {
			continue
		}
		seen = now
		if err := publish(ctx, w, p, s); err != nil && ctx.Err() == nil {
			fmt.Fprintf(w, "not published: %v\n", err)
		}
	}
}

// fingerprint is the text of every contract and model of a project, by file.
func fingerprint(dir string) []byte {
	var out bytes.Buffer
	for _, folder := range []string{"datasets", "models"} {
		err := filepath.WalkDir(filepath.Join(dir, folder), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			body, err := os.ReadFile(name) //nolint:gosec // the user's own project
			fmt.Fprintf(&out, "%s\n%s\n%v\n", name, body, err)
			return nil
		})
		if err != nil {
			fmt.Fprintln(&out, folder, err) // a missing folder is a state like any other
		}
	}
	return out.Bytes()
}

func workerCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "work for a project on an existing Temporal service",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := worker.OpenProject(cmd.Context(), o.project, o.log())
			if err != nil {
				return err
			}
			s, err := worker.Join(cmd.Context(), p.Config(o.log()), p.Engine)
			if err != nil {
				return err
			}
			if err := publish(cmd.Context(), cmd.OutOrStdout(), p, s); err != nil {
				return errors.Join(err, s.Stop())
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ready: works on task queue %s in namespace %s; Ctrl-C ends it\n", s.Queue, s.Namespace)
			<-cmd.Context().Done()
			return s.Stop()
		},
	}
}
