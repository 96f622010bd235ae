// Package overlay is a store that reads one store and writes another: what would be, without touching what is.
package overlay

import (
	"context"
	"errors"
	"iter"
	"sync"

	"varve/internal/object"
	"varve/internal/object/memstore"
)

// Store shows base with changes laid over it. Nothing is ever written to base.
type Store struct {
	base, changes object.Store
	mu            sync.Mutex
	gone          map[string]bool
}

// New lays an empty set of changes, kept in memory, over base.
func New(base object.Store) *Store {
	return &Store{base: base, changes: memstore.New(), gone: map[string]bool{}}
}

// layer gives the store that has the key, if the changes say anything of it.
func (s *Store) layer(key string) (object.Store, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone[key] {
		return nil, false
	}
	return s.base, true
}

// Read gives the changed bytes, else base's.
func (s *Store) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	body, err := s.changes.Read(ctx, key, offset, length)
	if !errors.Is(err, object.ErrNotFound) {
		return body, err
	}
	base, ok := s.layer(key)
	if !ok {
		return nil, err
	}
	return base.Read(ctx, key, offset, length)
}

// Put writes to the changes.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	return s.changes.Put(ctx, key, body)
}

// PutIfAbsent writes to the changes unless either store has another object of that key.
func (s *Store) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if base, ok := s.layer(key); ok {
		have, err := base.Read(ctx, key, 0, -1)
		switch {
		case err == nil && string(have) == string(body):
			return nil
		case err == nil:
			return &existsError{key: key}
		case !errors.Is(err, object.ErrNotFound):
			return err
		}
	}
	return s.changes.PutIfAbsent(ctx, key, body)
}

// List gives the keys of both stores, in order, each once.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		nextA, stopA := iter.Pull2(s.changes.List(ctx, prefix, after))
		defer stopA()
		nextB, stopB := iter.Pull2(s.base.List(ctx, prefix, after))
		defer stopB()
		a, errA, okA := nextA()
		b, errB, okB := nextB()
		for okA || okB {
			switch {
			case errA != nil || errB != nil:
				yield(object.Info{}, errors.Join(errA, errB))
				return
			case okA && (!okB || a.Key <= b.Key):
				if okB && a.Key == b.Key {
					b, errB, okB = nextB()
				}
				if !yield(a, nil) {
					return
				}
				a, errA, okA = nextA()
			default:
				if _, shown := s.layer(b.Key); shown && !yield(b, nil) {
					return
				}
				b, errB, okB = nextB()
			}
		}
	}
}

// Delete hides the key.
func (s *Store) Delete(ctx context.Context, key string) error {
	s.mu.Lock()
	s.gone[key] = true
	s.mu.Unlock()
	return s.changes.Delete(ctx, key)
}

// existsError names the key that exists in base.
type existsError struct{ key string }

func (e *existsError) Error() string { return "put " + e.key + ": " + object.ErrExists.Error() }

func (e *existsError) Unwrap() error { return object.ErrExists }
