package objecttest

import (
	"bytes"
	"context"
	"errors"
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

func downloadGivesTheObject(t *testing.T, s object.Store) {
	t.Helper()
	for key, want := range map[string][]byte{"small": []byte("bytes"), "empty": {}, "big": large()} {
		require.NoError(t, s.Put(t.Context(), "a/"+key, want))
		for range 2 { // the second time a cache may have it
			file, err := os.Create(filepath.Join(t.TempDir(), "sink"))
			require.NoError(t, err)
			n, err := object.Download(t.Context(), s, "a/"+key, file)
			require.NoError(t, err)
			require.Equal(t, int64(len(want)), n)
			require.NoError(t, file.Close())
			got, err := os.ReadFile(file.Name())
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got), "%q: got %d bytes, want %d", key, len(got), len(want))
		}
		_, err := object.Download(t.Context(), s, "a/"+key, brokenSink{})
		require.ErrorIs(t, err, errBrokenSink)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := object.Download(ctx, s, "a/small", brokenSink{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = object.Download(t.Context(), s, "a/absent", brokenSink{})
	require.ErrorIs(t, err, object.ErrNotFound)
	_, err = object.Download(t.Context(), s, "../a/small", brokenSink{})
	require.ErrorIs(t, err, object.ErrBadKey)
}

var errBrokenSink = errors.New("objecttest: the sink takes nothing")

// brokenSink is a sink that takes no bytes.
type brokenSink struct{}

func (brokenSink) Truncate(int64) error { return nil }

func (brokenSink) WriteAt([]byte, int64) (int, error) { return 0, errBrokenSink }
