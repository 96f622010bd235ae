package cachestore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/object"
	"varve/internal/object/cachestore"
	"varve/internal/object/objecttest"
	"varve/internal/object/s3store"
)

// BenchmarkRead compares a read of 64 KiB of an object of 4 MiB from an S3 server on this machine with one that the cache
// serves, and with one that fetches the object first.
func BenchmarkRead(b *testing.B) {
	const size, part = 4 << 20, 64 << 10
	server := objecttest.StartS3(b)
	c := server.Config()
	c.Bucket = server.NewBucket(b)
	s3, err := s3store.Open(b.Context(), c)
	require.NoError(b, err)
	cached := cachestore.New(b.Context(), s3, cachestore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30, Keep: every})
	require.NoError(b, s3.Put(b.Context(), "a", pattern(size, 1)))
	read := func(b *testing.B, s object.Store) {
		b.Helper()
		b.SetBytes(part)
		offset := int64(0)
		for b.Loop() {
			if _, err := s.Read(b.Context(), "a", offset, part); err != nil {
				b.Fatal(err)
			}
			offset = (offset + part) % size
		}
	}
	b.Run("S3", func(b *testing.B) { read(b, s3) })
	b.Run("Hit", func(b *testing.B) { read(b, cached) })
	b.Run("Miss", func(b *testing.B) {
		b.SetBytes(part)
		for b.Loop() {
			s := cachestore.New(b.Context(), s3, cachestore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30, Keep: every})
			if _, err := s.Read(b.Context(), "a", 0, part); err != nil {
				b.Fatal(err)
			}
		}
	})
}
