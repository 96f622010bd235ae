package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"varve/schemas/scaffold"
	"varve/worker"
)

func initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init DIR",
		Short: "make a project to start from",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(filepath.Join(args[0], worker.ProjectFile)); err == nil {
				return fmt.Errorf("init: %q is a project already", args[0])
			}
			if err := plant(scaffold.Files(), args[0]); err != nil {
				return fmt.Errorf("init: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "made a project in %s; next:\n  varve -C %s run customer --day 2026-01-05\n  varve -C %s dev\n", args[0], args[0], args[0])
			return nil
		},
	}
}

// plant writes the files that dir lacks, each whole or not at all.
func plant(files fs.FS, dir string) error {
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(to, 0o750)
		}
		if _, err := os.Stat(to); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return writeWhole(to, body)
	})
}

// writeWhole gives the file its name once its content is on disk, so that not even a lost power leaves a part under it.
func writeWhole(to string, body []byte) (err error) {
	part := to + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // the user names the folder
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(part, to)
}
