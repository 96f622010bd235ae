package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"varve/worker"
)

func contractCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "contract",
		Short: "what workers go by: the published contracts and models",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	cmd.AddCommand(publishCommand(o))
	return cmd
}

func publishCommand(o *options) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "print what the project's contracts and models change, then publish them",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			p, err := worker.OpenProject(cmd.Context(), o.project, o.log())
			if err != nil {
				return err
			}
			changes := 0
			// All of it is tried before any of it is done: a change that tables cannot follow leaves everything as it is.
			err = p.Preview(cmd.Context(), func(line string) {
				changes++
				fmt.Fprintln(out, line)
			})
			switch {
			case err != nil:
				return err
			case changes == 0:
				fmt.Fprintln(out, "Nothing differs from what is published.")
				return nil
			case dry:
				fmt.Fprintln(out, "Nothing was published.")
				return nil
			}
			_, err = p.Publish(cmd.Context(), func(string) {})
			return err
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the changes only")
	return cmd
}
