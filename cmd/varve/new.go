package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"varve/internal/source"
	"varve/schemas"
)

func newCommand(o *options) *cobra.Command {
	var from []string
	cmd := &cobra.Command{
		Use:   "new DATASET --from FILE...",
		Short: "read real files and write a contract to start from, each choice with its evidence",
		Args:  arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			files := slices.Concat(from, args[1:])
			if len(files) == 0 {
				return &usageError{cause: errors.New("name the files to read with --from")}
			}
			if !schemas.IsName(args[0]) {
				return &usageError{cause: fmt.Errorf("dataset %q: a name is a letter, then letters, digits and _", args[0])}
			}
			found, err := source.Infer(cmd.Context(), files...)
			if err != nil {
				return fmt.Errorf("new %s: %w", args[0], err)
			}
			body := schemas.Draft(found.Spec(args[0], args[0]+"/{day}/*"+filepath.Ext(files[0])))
			to := filepath.Join(o.project, "datasets", args[0]+".yaml")
			if err := writeNew(to, body); err != nil {
				return fmt.Errorf("new %s: %w", args[0], err)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "wrote %s from %d records\n", to, found.Records)
			if found.Bad > 0 {
				fmt.Fprintf(out, "%d of them do not parse; they would go to quarantine\n", found.Bad)
			}
			if _, err := schemas.Parse(body); err != nil {
				fmt.Fprintf(out, "before it can be used:\n%v\n", schemas.InFile(err, to))
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&from, "from", nil, "files of the source, CSV or JSON; more may follow as arguments")
	return cmd
}

// writeNew writes a file that must not be there yet.
func writeNew(to string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user's own project
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q exists: move it away, or choose another name", to)
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(body); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
