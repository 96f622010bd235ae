package objecttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/object"
)

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
