package cachestore

import (
	"errors"
	"os"
	"sync"
)

// errTooLarge says that an object is too large to be kept.
var errTooLarge = errors.New("too large for the cache")

// sink is a file that takes so many bytes at most, and remembers that it failed: what the store makes of an error of its
// sink is the store's affair.
type sink struct {
	file *os.File
	most int64

	mu  sync.Mutex
	err error // guarded by mu
}

// Truncate refuses an object that is too large before its first byte comes.
func (s *sink) Truncate(size int64) error {
	if size > s.most {
		return s.fail(errTooLarge)
	}
	return s.fail(s.file.Truncate(size))
}

// WriteAt writes to the file.
func (s *sink) WriteAt(b []byte, offset int64) (int, error) {
	if int64(len(b)) > s.most-offset {
		return 0, s.fail(errTooLarge)
	}
	n, err := s.file.WriteAt(b, offset)
	return n, s.fail(err)
}

func (s *sink) fail(err error) error {
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = errors.Join(s.err, err)
	}
	return err
}

// failed is what went wrong, nil for nothing.
func (s *sink) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
