package cachestore

import (
	"context"
	"errors"
	"fmt"

	"varve/internal/object"
)

// flight is one fetch of an object, for all who wait for it. It ends early when nobody does.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int   // guarded by the store's mu
	doomed  bool  // guarded by the store's mu: the object is being changed, the copy may be the old one
	err     error // set before done is closed
}

// fetch makes an entry, or joins who is making it. A nil error does not mean that there is one now: the object may be too
// large, about to change, or the folder in trouble.
func (s *Store) fetch(ctx context.Context, key string) error {
	f := s.board(ctx, key)
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		s.leave(key, f)
		return fmt.Errorf("read %q: %w", key, ctx.Err())
	}
}

// board gives the flight of the key, which it may begin; nil where nothing is to be fetched.
func (s *Store) board(ctx context.Context, key string) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[key] > 0 || s.large[key] || s.o.Now().Before(s.off) {
		return nil
	}
	f := s.flights[key]
	if f == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // others may wait longer than who began it
		f = &flight{done: make(chan struct{}), cancel: cancel}
		s.flights[key] = f
		go func() {
			defer cancel()
			err := s.load(ctx, key, f)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.flights[key] == f {
				delete(s.flights, key)
			}
			f.err = err
			close(f.done)
		}()
	}
	f.waiting++
	return f
}

func (s *Store) leave(key string, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return
	}
	f.cancel()
	if s.flights[key] == f {
		delete(s.flights, key)
	}
}

// load copies the object into a new file and makes it the key's entry. The error is the inner store's.
func (s *Store) load(ctx context.Context, key string, f *flight) error {
	file, temp, err := s.folder.stage()
	if err != nil {
		s.trouble(ctx, err)
		return nil
	}
	defer s.folder.discard(temp)
	to := &sink{file: file, most: s.o.MaxBytes / largest}
	size, err := object.Download(ctx, s.inner, key, to)
	switch sinkErr := to.failed(); {
	case errors.Is(sinkErr, errTooLarge):
		_ = file.Close() // it is removed
		s.tooLarge(key)
		return nil
	case sinkErr != nil:
		err = sinkErr
	case err != nil:
		_ = file.Close() // it is removed
		return err
	default:
		err = seal(file, s.name(key), size)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = s.folder.room(fileBytes(size), temp)
	}
	if err == nil {
		err = s.publish(temp, s.name(key), f)
	}
	if err != nil {
		s.trouble(ctx, err)
	}
	return nil
}

// publish makes the file an entry, unless the object is being changed.
func (s *Store) publish(temp string, name id, f *flight) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.doomed {
		return nil
	}
	return s.folder.publish(temp, name)
}

func (s *Store) tooLarge(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.large) >= maxLarge {
		clear(s.large)
	}
	s.large[key] = true
}

// trouble leaves the folder alone for a while.
func (s *Store) trouble(ctx context.Context, err error) {
	s.mu.Lock()
	s.off = s.o.Now().Add(rest)
	s.mu.Unlock()
	s.o.Log.WarnContext(ctx, "the cache's folder fails: objects are read from the store", "folder", s.o.Dir, "error", err.Error())
}

// largest is which part of the limit one object may take at most.
const largest = 4
