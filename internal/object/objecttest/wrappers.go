package objecttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/object"
)

func prefixIsAStore(t *testing.T, s object.Store) {
	t.Helper()
	sub := object.Prefix(s, "sub/space/")
	require.NoError(t, s.Put(t.Context(), "sub/other", []byte("other")))
	require.NoError(t, s.Put(t.Context(), "sub/space-2/a", []byte("other")))
	require.NoError(t, sub.Put(t.Context(), "a", []byte("1")))
	require.NoError(t, sub.PutIfAbsent(t.Context(), "b/c", []byte("2")))
	require.ErrorIs(t, sub.PutIfAbsent(t.Context(), "b/c", []byte("3")), object.ErrExists)
	requireBody(t, sub, "a", []byte("1"))
	requireBody(t, s, "sub/space/b/c", []byte("2"))
	require.Equal(t, []string{"a", "b/c"}, keys(t, sub, "", ""))
	require.Equal(t, []string{"b/c"}, keys(t, sub, "", "a"))
	require.Equal(t, []string{"b/c"}, keys(t, sub, "b", ""))
	require.Equal(t, []string{"c"}, keys(t, object.Prefix(sub, "b"), "", ""))
	for _, key := range []string{"", "../other", "/a"} {
		_, err := sub.Read(t.Context(), key, 0, -1)
		require.ErrorIs(t, err, object.ErrBadKey)
	}
	require.NoError(t, sub.Delete(t.Context(), "a"))
	require.Equal(t, []string{"sub/other", "sub/space-2/a", "sub/space/b/c"}, keys(t, s, "", ""))
	require.Equal(t, s, object.Prefix(s, ""))
}

func localGivesTheBytes(t *testing.T, s object.Store) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), "a/b/part.parquet", []byte("columns")))
	require.NoError(t, s.Put(t.Context(), "c/part.parquet", nil))
	dir := filepath.Join(t.TempDir(), "new")
	for key, want := range map[string]string{"a/b/part.parquet": "columns", "c/part.parquet": ""} {
		path, err := object.Local(t.Context(), s, key, dir)
		require.NoError(t, err)
		require.Equal(t, ".parquet", filepath.Ext(path))
		body, err := os.ReadFile(path) //nolint:gosec // the path under test
		require.NoError(t, err)
		require.Equal(t, want, string(body))
		again, err := object.Local(t.Context(), s, key, dir)
		require.NoError(t, err)
		require.Equal(t, path, again)
	}
	for _, key := range []string{"a/b", "absent", "a/absent.parquet"} {
		_, err := object.Local(t.Context(), s, key, dir)
		require.ErrorIs(t, err, object.ErrNotFound)
	}
	left, err := filepath.Glob(filepath.Join(dir, "copy-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
