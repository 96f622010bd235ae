//go:build !linux

package filestore

import (
	"errors"
	"os"
)

// renameNoReplace is not to be had on this system.
func renameNoReplace(*os.File, string, *os.File, string) error {
	return errors.ErrUnsupported
}
