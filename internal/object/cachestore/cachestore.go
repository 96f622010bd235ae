// Package cachestore is a store that keeps copies of another's immutable objects in a folder on the local disk. It keeps
// nothing that may change, and what it keeps is a copy: the folder may be lost at any time.
package cachestore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"varve/internal/object"
)

// chunk is how much of an entry is held in memory at once on its way to a sink.
const chunk = 4 << 20 // bytes

// Options says what is kept, where, and how much.
type Options struct {
	// Dir is the folder, made where it is missing. Processes may share it.
	Dir string
	// MaxBytes is how much room the files in the folder may take, except those that are just being written. Of several
	// processes each may exceed it by a sixteenth until it next looks at what the others wrote. An object that is larger than
	// a quarter of it is not kept.
	MaxBytes int64
	// Scope names the store inside among all that share the folder.
	Scope string
	// Keep says which keys name one content for ever. Default Immutable.
	Keep func(key string) bool
	// Now is the clock that tells which entries were used last. Default time.Now.
	Now func() time.Time
	// Log is told when the folder cannot be used. Default no log.
	Log *slog.Logger
}

// WithDefaults gives a copy with the defaults filled in.
func (o Options) WithDefaults() Options {
	if o.Keep == nil {
		o.Keep = Immutable
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of a clock that callers may set
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// Store reads objects from the folder where it has them, and fetches a whole one before it serves a range of it. Whether
// there is an object (Read of length 0), listings and writes are the inner store's. What this process overwrites or deletes
// goes from the folder; an object that somebody else deleted may be read from here until it makes room for others.
//
// A folder that is full, damaged or may not be written costs time and nothing else.
type Store struct {
	inner  object.Store
	o      Options
	folder *folder // nil where there can be none

	mu      sync.Mutex
	flights map[string]*flight // by key; guarded by mu, as all below
	busy    map[string]int     // how many writes of the key are on their way
	large   map[string]bool    // keys that are too large to keep
	off     time.Time          // until when nothing is fetched, after trouble with the folder
}

// maxLarge bounds the memory for keys that are too large; they are found out anew after.
const maxLarge = 10_000

// rest is how long the folder is left alone after it failed.
const rest = time.Minute

// New lays a cache over inner.
func New(ctx context.Context, inner object.Store, o Options) *Store {
	o = o.WithDefaults()
	s := &Store{inner: inner, o: o, flights: map[string]*flight{}, busy: map[string]int{}, large: map[string]bool{}}
	folder, err := openFolder(o.Dir, o.MaxBytes, o.Now)
	if err != nil {
		o.Log.WarnContext(ctx, "no cache: its folder cannot be used", "folder", o.Dir, "error", err.Error())
		return s
	}
	s.folder = folder
	return s
}

// name is the entry's for a key.
func (s *Store) name(key string) id {
	return sha256.Sum256([]byte(s.o.Scope + "\x00" + key)) // no key has a NUL
}

// keeps says whether a key may be in the folder.
func (s *Store) keeps(key string) bool {
	return s.folder != nil && object.CheckKey(key) == nil && s.o.Keep(key)
}

// Read gives the range of the entry, after it was fetched.
func (s *Store) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if offset >= 0 && length != 0 && s.keeps(key) {
		var body []byte
		served, err := s.use(ctx, key, func(e entry) (err error) {
			body, err = e.read(offset, length)
			return err
		})
		if served || err != nil {
			return body, err
		}
	}
	return s.inner.Read(ctx, key, offset, length)
}

// Download writes the entry to the sink, after it was fetched.
func (s *Store) Download(ctx context.Context, key string, to object.Sink) (int64, error) {
	if s.keeps(key) {
		size := int64(0)
		var sinkErr error
		served, err := s.use(ctx, key, func(e entry) error {
			size = e.size
			for at := int64(0); sinkErr == nil && (at < size || at == 0); at += chunk {
				body, err := e.read(at, chunk)
				if err != nil {
					return err
				}
				if sinkErr = ctx.Err(); sinkErr == nil {
					_, sinkErr = to.WriteAt(body, at)
				}
			}
			return nil
		})
		if sinkErr != nil {
			return 0, fmt.Errorf("read %q: %w", key, sinkErr)
		}
		if served || err != nil {
			return size, err
		}
	}
	return object.Download(ctx, s.inner, key, to)
}

// use gives the entry to f. It tells whether f had it whole; the error is the inner store's, or the context's. A damaged
// entry is fetched once more.
func (s *Store) use(ctx context.Context, key string, f func(entry) error) (served bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("read %q: %w", key, err)
	}
	name := s.name(key)
	for range 2 {
		e, ok := s.folder.lookup(name)
		if !ok {
			if err := s.fetch(ctx, key); err != nil {
				return false, err
			}
			if e, ok = s.folder.lookup(name); !ok {
				return false, nil
			}
		}
		err := errors.Join(f(e), e.file.Close())
		if err == nil {
			return true, nil
		}
		s.folder.remove(name)
	}
	return false, nil
}

// Put writes to the inner store.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	return s.change(key, func() error { return s.inner.Put(ctx, key, body) })
}

// PutIfAbsent writes to the inner store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	return s.change(key, func() error { return s.inner.PutIfAbsent(ctx, key, body) })
}

// Delete deletes from the inner store.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.change(key, func() error { return s.inner.Delete(ctx, key) })
}

// List lists the inner store.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return s.inner.List(ctx, prefix, after)
}

// change writes or deletes the object. Its entry goes before, so that a process that dies in the midst leaves none, and
// after, since another process may have fetched it meanwhile. This one fetches nothing of it meanwhile.
func (s *Store) change(key string, write func() error) error {
	if !s.keeps(key) {
		return write()
	}
	s.mu.Lock()
	s.busy[key]++
	if f := s.flights[key]; f != nil {
		f.doomed = true
		delete(s.flights, key)
	}
	s.mu.Unlock()
	s.folder.remove(s.name(key))
	defer func() {
		s.folder.remove(s.name(key))
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.busy[key]--; s.busy[key] == 0 {
			delete(s.busy, key)
		}
	}()
	return write()
}
