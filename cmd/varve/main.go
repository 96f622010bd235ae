// Command varve keeps dimension tables true.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes: anything that went wrong, and a command line that could not be understood.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "varve:", err)
	if _, usage := errors.AsType[*usageError](err); usage {
		return exitUsage
	}
	return exitFailure
}

// usageError is a command line that could not be understood.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() + " (see varve --help)" }

func (e *usageError) Unwrap() error { return e.cause }

// options are the flags that every verb has.
type options struct {
	project string
	verbose bool
}

// log is where a verb tells its progress: standard error when asked, nowhere otherwise.
func (o *options) log() *slog.Logger {
	if !o.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func root() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "varve",
		Short:         "varve keeps dimension tables true",
		Long:          "varve lands what sources send, and keeps current-state (SCD1) and history (SCD2) Delta tables true,\nwhatever comes late, twice, out of order or half broken.",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	cmd.PersistentFlags().StringVarP(&o.project, "project", "C", ".", "the project's folder")
	cmd.PersistentFlags().BoolVarP(&o.verbose, "verbose", "v", false, "tell each stage on standard error, as JSON")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{cause: err} })
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(initCommand(), newCommand(&o), demoCommand(&o), devCommand(&o), workerCommand(&o), contractCommand(&o), tableCommand(&o),
		runCommand(&o), catCommand(&o), queryCommand(&o))
	return cmd
}

// version is that of the module and, where it was built in a clone, of the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	parts := []string{info.Main.Version, info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			parts = append(parts, "commit "+s.Value)
		}
	}
	return strings.Join(parts, ", ")
}

// arguments makes a wrong number of arguments a usage error.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{cause: fmt.Errorf("%s: %w", cmd.CommandPath(), err)}
		}
		return nil
	}
}
