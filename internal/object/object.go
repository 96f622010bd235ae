// Package object is named bytes: the Store interface that everything durable goes through, with the laws that each
// store obeys. It does not know what the bytes mean.
package object

import (
	"context"
	"errors"
	"iter"
	"time"
)

// The conditions that callers test for with errors.Is.
var (
	// ErrNotFound says that no object has the key.
	ErrNotFound = errors.New("object: not found")
	// ErrExists says that another object has the key already.
	ErrExists = errors.New("object: exists")
	// ErrUnavailable says that the store did not answer, or not in time: the same call may succeed later, and a write
	// may have taken effect.
	ErrUnavailable = errors.New("object: store unavailable")
	// ErrFull says that the store has no room left.
	ErrFull = errors.New("object: no space left")
	// ErrDenied says that the store refuses the caller.
	ErrDenied = errors.New("object: permission denied")
	// ErrBadKey says that no object can have the key, or a key that begins with the prefix.
	ErrBadKey = errors.New("object: bad key")
	// ErrNoPutIfAbsent says that the place cannot promise one winner, so that no store can be opened on it.
	ErrNoPutIfAbsent = errors.New("object: the store cannot put if absent")
)

// Store is a flat space of keys, each with immutable-looking bytes. Keys are relative, slash-separated, in clean form:
// no empty, "." or ".." segment (CheckKey). An implementation refuses any other key with ErrBadKey. It may refuse a key
// below another object's ("a/b" beside "a"), as file systems do.
//
// Every call heeds ctx and names itself and its key in its errors. Methods are safe to call at once from many goroutines.
type Store interface {
	// Read gives length bytes of the object from offset; length < 0 means up to the end. A range beyond the end gives what
	// there is; length 0 tells whether there is an object. ErrNotFound where there is none. The caller owns the bytes.
	Read(ctx context.Context, key string, offset, length int64) ([]byte, error)
	// Put writes the whole object, replacing what is there. A reader sees the old bytes or the new, never a part.
	Put(ctx context.Context, key string, body []byte) error
	// PutIfAbsent writes the whole object if there is none: of many at once exactly one wins, the others get ErrExists.
	// Repeating one's own call with the same bytes succeeds. After it returns nil the object is durable.
	PutIfAbsent(ctx context.Context, key string, body []byte) error
	// List gives the objects whose keys begin with prefix and are greater than after, in byte order of the
	// whole keys. A prefix need not end at a slash, and after need not be a key. An error ends the listing.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
	// Delete removes the object; removing what is not there succeeds.
	Delete(ctx context.Context, key string) error
}

// Info is what a listing tells of an object.
type Info struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
}
