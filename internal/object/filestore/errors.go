package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"varve/internal/object"
)

// mapped adds the condition that callers test for to an error of the file system.
func mapped(err error) error {
	var condition error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), is(err, syscall.ENOTDIR, syscall.ELOOP):
		return object.ErrNotFound // what exactly is missing on the way adds nothing
	case is(err, syscall.ENOSPC, syscall.EDQUOT):
		condition = object.ErrFull
	case errors.Is(err, fs.ErrPermission), is(err, syscall.EROFS):
		condition = object.ErrDenied
	case is(err, syscall.ETIMEDOUT, syscall.ESTALE, syscall.EBUSY, syscall.EMFILE, syscall.ENFILE):
		condition = object.ErrUnavailable
	default:
		return err
	}
	if errors.Is(err, condition) {
		return err
	}
	return fmt.Errorf("%w: %w", condition, err)
}

// mappedPut is mapped for a put, of which nobody expects that something is not found.
func mappedPut(err error) error {
	if m := mapped(err); !errors.Is(m, object.ErrNotFound) {
		return m
	}
	return err
}

// isPlain says whether the error is the operating system's, not a refusal to leave the root.
func isPlain(err error) bool {
	_, ok := errors.AsType[syscall.Errno](err)
	return ok
}

func is(err error, codes ...syscall.Errno) bool {
	no, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return false
	}
	for _, e := range codes {
		if no == e {
			return true
		}
	}
	return false
}
