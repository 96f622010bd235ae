// Package memstore is a store in memory, for tests and for what need not last. It obeys every law of object.Store but
// durability.
package memstore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"varve/internal/object"
)

// Store is a store in memory. Make one with New.
type Store struct {
	// Now is the clock for the time of a change. Set it before the first use. Default time.Now.
	Now func() time.Time

	mu      sync.RWMutex
	objects map[string]entry
}

type entry struct {
	body     []byte
	modified time.Time
}

// New gives an empty store.
func New() *Store {
	return &Store{
		Now:     time.Now, //nolint:forbidigo // the default of a clock that callers may set
		objects: map[string]entry{},
	}
}

// Read gives a copy of the bytes.
func (s *Store) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := check(ctx, key); err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("read %q: negative offset %d", key, offset)
	}
	s.mu.RLock()
	e, ok := s.objects[key]
	s.mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("read %q: %w", key, object.ErrNotFound)
	}
	rest := e.body[min(offset, int64(len(e.body))):] // bodies never change in place
	if length >= 0 && length < int64(len(rest)) {
		rest = rest[:length]
	}
	return bytes.Clone(rest), nil
}

// Put keeps a copy of the bytes.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	if err := check(ctx, key); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = entry{body: append([]byte{}, body...), modified: s.Now()}
	return nil
}

// PutIfAbsent keeps a copy of the bytes if the key is free.
func (s *Store) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := check(ctx, key); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.objects[key]; ok {
		if bytes.Equal(have.body, body) {
			return nil
		}
		return fmt.Errorf("put %q: %w", key, object.ErrExists)
	}
	s.objects[key] = entry{body: append([]byte{}, body...), modified: s.Now()}
	return nil
}

// List gives what the store held when the listing began.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		if err := object.CheckPrefix(prefix); err != nil {
			yield(object.Info{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		}
		for _, info := range s.infos(prefix, after) {
			if err := ctx.Err(); err != nil {
				yield(object.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(object.Info{}, fmt.Errorf("list %q: %w", prefix, err))
		}
	}
}

func (s *Store) infos(prefix, after string) []object.Info {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []object.Info
	for key, e := range s.objects {
		if strings.HasPrefix(key, prefix) && key > after {
			out = append(out, object.Info{Key: key, Size: int64(len(e.body)), Modified: e.modified})
		}
	}
	slices.SortFunc(out, func(a, b object.Info) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Delete forgets the object.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return fmt.Errorf("delete %q: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
	return nil
}

func check(ctx context.Context, key string) error {
	if err := object.CheckKey(key); err != nil {
		return err
	}
	return ctx.Err()
}
