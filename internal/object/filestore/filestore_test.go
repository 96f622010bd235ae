package filestore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"varve/internal/object"
	"varve/internal/object/filestore"
	"varve/internal/object/objecttest"
)

func open(t *testing.T, dir string) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(dir)
	require.NoError(t, err)
	return s
}

func keys(t *testing.T, s object.Store, prefix string) ([]string, error) {
	t.Helper()
	var out []string
	for info, err := range s.List(t.Context(), prefix, "") {
		if err != nil {
			return out, err
		}
		out = append(out, info.Key)
	}
	return out, nil
}

func requireKeys(t *testing.T, s object.Store, want ...string) {
	t.Helper()
	got, err := keys(t, s, "")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestObeysTheLawOfStores(t *testing.T) {
	t.Parallel()
	objecttest.Run(t, func(t *testing.T) object.Store {
		t.Helper()
		return open(t, t.TempDir())
	})
}

func TestOpenLeavesTheFolderAsItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestStoreOpenedToBeReadNeverTouchesTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, open(t, dir).Put(t.Context(), "a", []byte("x")))
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(dir, long, long)) // what is made and removed again shows in the folder's time
	s, err := filestore.OpenReadOnly(dir)
	require.NoError(t, err)
	body, err := s.Read(t.Context(), "a", 0, -1)
	require.NoError(t, err)
	require.Equal(t, "x", string(body))
	require.ErrorIs(t, s.Put(t.Context(), "b", nil), object.ErrDenied)
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "b", nil), object.ErrDenied)
	require.ErrorIs(t, s.Delete(t.Context(), "a"), object.ErrDenied)
	requireKeys(t, s, "a")
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, long.UTC(), info.ModTime().UTC())
}

func TestOpenNeedsAFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	_, err := filestore.Open(file)
	require.ErrorIs(t, err, object.ErrNotFound)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = filestore.Open(file)
	require.Error(t, err)
}

func TestStoresOnOneFolderHaveOneWinner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		s := open(t, dir)
		wg.Go(func() { errs[i] = s.PutIfAbsent(t.Context(), "a/b/c", fmt.Appendf(nil, "writer %d", i)) })
	}
	wg.Wait()
	winners := 0
	for _, err := range errs {
		if err == nil {
			winners++
			continue
		}
		require.ErrorIs(t, err, object.ErrExists)
	}
	require.Equal(t, 1, winners)
}

// A delete that leaves a folder empty removes it, perhaps just when a put wants to use it.
func TestPutsAndDeletesInOneFolderDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		s := open(t, dir)
		wg.Go(func() {
			key := fmt.Sprintf("a/b/%d", i)
			for range 50 {
				errs[i] = errors.Join(errs[i], s.PutIfAbsent(t.Context(), key, []byte(key)), s.Delete(t.Context(), key))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.Equal(t, ".varve-tmp", e.Name())
	}
}

func TestLinkThatLeavesTheFolderIsRefused(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "folder")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "file")))
	s := open(t, dir)
	for _, key := range []string{"folder/secret", "file"} {
		_, err := s.Read(t.Context(), key, 0, -1)
		require.Error(t, err)
		_, ok := s.LocalPath(key)
		require.False(t, ok)
	}
	require.Error(t, s.Put(t.Context(), "folder/new", []byte("x")))
	require.Error(t, s.PutIfAbsent(t.Context(), "folder/new", []byte("x")))
	require.Error(t, s.PutIfAbsent(t.Context(), "file", []byte("x")))
	require.Error(t, s.Delete(t.Context(), "folder/secret"))
	for _, prefix := range []string{"", "f", "folder/", "file"} {
		_, err := keys(t, s, prefix)
		require.ErrorContains(t, err, "escapes", "list %q", prefix)
	}
	got, err := keys(t, s, "other")
	require.NoError(t, err)
	require.Empty(t, got)
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestLinkInsideTheFolderIsFollowedAndLoopsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Put(t.Context(), "day/a", []byte("x")))
	require.NoError(t, os.Symlink("day", filepath.Join(dir, "latest")))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "day", "b")))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "day", "loop")))
	require.NoError(t, os.Symlink("nothing", filepath.Join(dir, "dangling")))
	require.NoError(t, os.Symlink("self", filepath.Join(dir, "self")))
	requireKeys(t, s, "day/a", "day/b", "latest/a", "latest/b")
	for _, key := range []string{"day/b", "latest/a"} {
		body, err := s.Read(t.Context(), key, 0, -1)
		require.NoError(t, err)
		require.Equal(t, "x", string(body))
	}
	require.NoError(t, s.Delete(t.Context(), "day/b"))
	requireKeys(t, s, "day/a", "latest/a")
}

func TestTempFileOfADeadPutIsNeverVisible(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	dir := filepath.Join(above, "warehouse")
	temp := filepath.Join(dir, ".varve-tmp")
	require.NoError(t, os.MkdirAll(temp, 0o700))
	for _, name := range []string{"young", "old"} {
		require.NoError(t, os.WriteFile(filepath.Join(temp, name), []byte("half a bo"), 0o600))
	}
	long := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(temp, "old"), long, long))

	s := open(t, dir)
	require.NoError(t, s.PutIfAbsent(t.Context(), "a", []byte("x")))
	requireKeys(t, s, "a")
	requireKeys(t, open(t, above), "warehouse/a")
	got, err := keys(t, s, ".varve-tmp/")
	require.NoError(t, err)
	require.Empty(t, got)
	for _, key := range []string{".varve-tmp", ".varve-tmp/young", "a/.varve-tmp/young"} {
		_, err := s.Read(t.Context(), key, 0, -1)
		require.ErrorIs(t, err, object.ErrBadKey)
		require.ErrorIs(t, s.Put(t.Context(), key, nil), object.ErrBadKey)
	}

	require.FileExists(t, filepath.Join(temp, "young"), "another process may be writing it")
	require.NoFileExists(t, filepath.Join(temp, "old"))
}

func TestPutsLeaveNoTempFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Put(t.Context(), "a", []byte("x")))
	require.NoError(t, s.Put(t.Context(), "a", []byte("y")))
	require.NoError(t, s.PutIfAbsent(t.Context(), "b", []byte("x")))
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "b", []byte("y")), object.ErrExists)
	left, err := os.ReadDir(filepath.Join(dir, ".varve-tmp"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestKeyBesideAnObjectOrFolderOfThatNameIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	require.NoError(t, s.Put(t.Context(), "a/b", []byte("x")))
	for _, key := range []string{"a", "a/b/c", "a/b/c/d"} {
		for _, err := range []error{s.Put(t.Context(), key, []byte("y")), s.PutIfAbsent(t.Context(), key, []byte("y"))} {
			require.Error(t, err, key)
			require.NotErrorIs(t, err, object.ErrNotFound, key)
			require.NotErrorIs(t, err, object.ErrExists, key)
			require.NotErrorIs(t, err, object.ErrUnavailable, key)
		}
	}
	requireKeys(t, s, "a/b")
}

func TestLocalPathIsTheFileItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Put(t.Context(), "a/b.parquet", []byte("x")))
	got, err := object.Local(t.Context(), s, "a/b.parquet", t.TempDir())
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "a", "b.parquet"), got)
	got, ok := s.LocalPath("a") // a folder, or nothing yet, has a place too
	require.True(t, ok)
	require.Equal(t, filepath.Join(dir, "a"), got)
	_, ok = s.LocalPath("../a")
	require.False(t, ok)
}
