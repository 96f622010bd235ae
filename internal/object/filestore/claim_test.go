package filestore

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/object"
	"varve/internal/object/objecttest"
)

func TestRenameWithoutReplaceObeysTheLawOfStores(t *testing.T) {
	t.Parallel()
	objecttest.Run(t, func(t *testing.T) object.Store {
		t.Helper()
		s, err := Open(t.TempDir())
		require.NoError(t, err)
		s.claim, err = s.probe(noLinks, s.renameNoReplace)
		require.NoError(t, err)
		return s
	})
}

// noLinks is the link of a file system without hard links.
func noLinks(string, string) error {
	return &os.LinkError{Op: "link", Err: syscall.EPERM}
}

func TestFileSystemThatCannotClaimIsRefused(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	for name, claims := range map[string][]claim{
		"knows neither way":       {noLinks, noLinks},
		"replaces what was there": {s.root.Rename},
	} {
		_, err := s.probe(claims...)
		require.ErrorIs(t, err, object.ErrNoPutIfAbsent, name)
		require.NotErrorIs(t, err, object.ErrDenied, name)
	}
	entries, err := fs.ReadDir(s.root.FS(), ".")
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestErrorsOfTheFileSystemBecomeConditions(t *testing.T) {
	t.Parallel()
	for no, want := range map[syscall.Errno]error{
		syscall.ENOSPC:  object.ErrFull,
		syscall.EDQUOT:  object.ErrFull,
		syscall.EACCES:  object.ErrDenied,
		syscall.EPERM:   object.ErrDenied,
		syscall.EROFS:   object.ErrDenied,
		syscall.ENOENT:  object.ErrNotFound,
		syscall.ENOTDIR: object.ErrNotFound,
		syscall.ESTALE:  object.ErrUnavailable,
		syscall.EMFILE:  object.ErrUnavailable,
	} {
		cause := &fs.PathError{Op: "write", Path: "a/b", Err: no}
		err := mapped(cause)
		require.ErrorIs(t, err, want)
		require.Equal(t, err, mapped(err), "mapping twice says it once")
		if !errors.Is(want, object.ErrNotFound) {
			require.ErrorIs(t, err, no, "the cause stays")
		}
	}
	require.NoError(t, mapped(nil))
}

func TestFolderThatFailsToTakeFilesSaysWhyOnEachPut(t *testing.T) {
	t.Parallel()
	for no, want := range map[syscall.Errno]error{syscall.ENOSPC: object.ErrFull, syscall.EACCES: object.ErrDenied} {
		s, err := Open(t.TempDir())
		require.NoError(t, err)
		s.claim = func(string, string) error { return &os.LinkError{Op: "link", Err: no} }
		err = s.PutIfAbsent(t.Context(), "a/b", []byte("x"))
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, `put "a/b": object: `)
	}
}
