package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"varve/worker"
)

const (
	// lookAgain is how often varve dev looks for changed contracts and models.
	lookAgain = 500 * time.Millisecond
	// lookForPublished is how often varve worker looks for contracts that somebody published.
	lookForPublished = time.Minute
)

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
			published := publish(cmd.Context(), out, p, nil)
			if published != nil && cmd.Context().Err() != nil {
				return published
			}
			s, err := worker.Serve(cmd.Context(), p.Config(o.log()), p.Engine)
			if err != nil {
				return err
			}
			if published = publish(cmd.Context(), out, p, s); published != nil && cmd.Context().Err() != nil {
				return errors.Join(published, s.Stop())
			}
			announce(out, s)
			notPublished(out, published)
			err = stay(cmd.Context(), s, lookAgain, saved(cmd.Context(), out, p, s, seen))
			return errors.Join(err, s.Stop())
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
	_, err := p.Publish(ctx, func(line string) { fmt.Fprintln(w, line) })
	if s == nil {
		return err
	}
	contracts, listErr := p.Published(ctx)
	if listErr == nil {
		listErr = s.Schedules(ctx, contracts)
	}
	return errors.Join(err, listErr)
}

// notPublished tells what is wrong in the project's files, a line a fault. What was published before stays in force.
func notPublished(w io.Writer, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "not published: %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// saved gives the function that publishes contracts and models when their files are not any more what was seen. A change with
// problems is told and not published; what was published before stays in force.
func saved(ctx context.Context, w io.Writer, p *worker.Project, s *worker.Service, seen []byte) func() {
	return func() {
		now := fingerprint(p.Dir)
		if bytes.Equal(now, seen) {
			return
		}
		seen = now
		if err := publish(ctx, w, p, s); err != nil && ctx.Err() == nil {
			notPublished(w, err)
		}
	}
}

// stay looks again and again until ctx ends, or the worker gave up.
func stay(ctx context.Context, s *worker.Service, every time.Duration, look func()) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.Failed():
			return err
		case <-tick.C:
			look()
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
		Short: "work on an existing Temporal service for what a project has published",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			p, err := worker.OpenProject(cmd.Context(), o.project, o.log())
			if err != nil {
				return err
			}
			s, err := worker.Join(cmd.Context(), p.Config(o.log()), p.Engine)
			if err != nil {
				return err
			}
			f := follower{project: p, service: s}
			if err := f.follow(cmd.Context()); err != nil {
				return errors.Join(err, s.Stop())
			}
			if len(f.seen) == 0 {
				fmt.Fprintf(out, "no contract is published yet: publish the project's with varve -C %s contract publish\n", o.project)
			}
			fmt.Fprintf(out, "ready: works on task queue %s in namespace %s; Ctrl-C ends it\n", s.Queue, s.Namespace)
			err = stay(cmd.Context(), s, lookForPublished, func() {
				if err := f.follow(cmd.Context()); err != nil && cmd.Context().Err() == nil {
					fmt.Fprintf(out, "schedules not set: %v\n", err)
				}
			})
			return errors.Join(err, s.Stop())
		},
	}
}

// follower keeps the schedules those of the contracts that are published, whoever published them.
type follower struct {
	project *worker.Project
	service *worker.Service
	seen    map[string]string
}

// follow sets the schedules, unless the newest contracts are those that were seen.
func (f *follower) follow(ctx context.Context) error {
	contracts, err := f.project.Published(ctx)
	if err != nil {
		return err
	}
	now := map[string]string{}
	for _, c := range contracts {
		now[c.Contract.Dataset] = c.Hash
	}
	if f.seen != nil && maps.Equal(f.seen, now) {
		return nil
	}
	if err := f.service.Schedules(ctx, contracts); err != nil {
		return err
	}
	f.seen = now
	return nil
}
