package cachestore

import (
	"bytes"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
)

func TestFullDiskIsNoError(t *testing.T) {
	t.Parallel()
	const full = "/dev/full" // each write of it fails with ENOSPC
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	now := time.Now()
	var log bytes.Buffer
	inner := memstore.New()
	faults := objecttest.NewFaults(inner)
	s := New(t.Context(), faults, Options{
		Dir: t.TempDir(), MaxBytes: 1 << 20, Keep: func(string) bool { return true }, Now: func() time.Time { return now },
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	create := s.folder.create
	s.folder.create = func(string) (*os.File, error) { return os.OpenFile(full, os.O_RDWR, 0) }
	require.NoError(t, inner.Put(t.Context(), "a", []byte("body")))
	read := func(operations int) {
		faults.Reset()
		body, err := s.Read(t.Context(), "a", 0, -1)
		require.NoError(t, err)
		require.Equal(t, "body", string(body))
		require.Equal(t, operations, faults.Count())
	}
	read(2) // one for the folder, in vain
	read(1) // the folder is left alone
	require.Contains(t, log.String(), "no space left")
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("level=WARN")))
	s.folder.create = create
	now = now.Add(rest)
	read(1) // there is room again
	read(0)
}
