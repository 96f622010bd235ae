//go:build unix

package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock keeps a second server from the same state; two would undo each other's writes. The lock ends with the process.
func lock(file string) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return nil, fmt.Errorf("make the folder of Temporal's state: %w", err)
	}
	f, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the project's own file
	if err != nil {
		return nil, fmt.Errorf("lock Temporal's state: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close() //nolint:gosec // nothing was written
		return nil, &InUseError{File: file}
	}
	return f.Close, nil
}
