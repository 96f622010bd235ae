package filestore

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace renames in one step, failing with fs.ErrExist where the new name is taken.
func renameNoReplace(from *os.File, oldName string, to *os.File, newName string) error {
	err := unix.Renameat2(int(from.Fd()), oldName, int(to.Fd()), newName, unix.RENAME_NOREPLACE)
	if err != nil {
		return os.NewSyscallError("renameat2", err)
	}
	return nil
}
