// Package filestore is a store in a folder: an object is a file, its key the file's path. It never reads or writes
// outside the folder, and never shows a file that is not whole.
package filestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"varve/internal/object"
)

// tempDir holds the files that puts are still writing. No key has a segment of this name, at any depth, so that a store
// opened on a folder above shows none of them either.
const tempDir = ".varve-tmp"

// maxTries bounds how often a put begins again when folders or objects vanish under it.
const maxTries = 16

// Store is a folder. Make one with Open.
//
// A symbolic link that leads to a file or folder inside the folder is as good as what it leads to. One that leads outside
// is refused: a listing that meets it fails, since leaving out what a source sent would go unnoticed.
type Store struct {
	root *os.Root // stays open as long as the store is in use; the runtime closes it after
	dir  string   // absolute path of root
	// readOnly refuses puts and deletes.
	readOnly bool

	mu    sync.Mutex
	claim claim // nil as long as the folder could not be written; guarded by mu

	// durable is the folders whose own entry, up to the root, is known to be on disk.
	durable sync.Map // string → struct{}
}

// claim gives the staged file the name of a key if nothing has it, else fails with fs.ErrExist. It may or may not take the
// staged name away.
type claim func(staged, key string) error

// Open gives the store in the folder root, which must exist. It finds out whether the file system can put if absent, by
// hard links or else by a rename that never replaces, and refuses one that cannot with object.ErrNoPutIfAbsent. A folder
// that may not be written or has no room can be opened all the same: it is there to be read.
func Open(root string) (*Store, error) {
	s, err := open(root)
	if err != nil {
		return nil, err
	}
	_, err = s.claims()
	if err == nil || errors.Is(err, object.ErrDenied) || errors.Is(err, object.ErrFull) {
		return s, nil
	}
	return nil, errors.Join(fmt.Errorf("open store %q: %w", root, err), s.root.Close())
}

// OpenReadOnly gives the store in the folder root, which must exist, to be read: nothing is written, not even to find out
// what the file system can do, and puts and deletes are refused with object.ErrDenied.
func OpenReadOnly(root string) (*Store, error) {
	s, err := open(root)
	if err != nil {
		return nil, err
	}
	s.readOnly = true
	return s, nil
}

func open(root string) (*Store, error) {
	dir, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", root, err)
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", root, mapped(err))
	}
	return &Store{root: r, dir: dir}, nil
}

// Read gives bytes of the file.
func (s *Store) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := check(ctx, key); err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("read %q: negative offset %d", key, offset)
	}
	body, err := s.read(key, offset, length)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", key, mapped(err))
	}
	return body, nil
}

func (s *Store) read(key string, offset, length int64) (body []byte, err error) {
	info, err := s.root.Stat(key)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a folder is no object, and opening a pipe would wait for its writer
		return nil, fs.ErrNotExist
	}
	f, err := s.root.Open(key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil { // the one we opened, should the name have been given to another meanwhile
		return nil, err
	}
	rest := max(info.Size()-offset, 0)
	if length < 0 || length > rest {
		length = rest
	}
	body = make([]byte, length)
	n, err := f.ReadAt(body, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return body[:n], nil
}

// Put writes a new file and renames it over the old one.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	if err := cmp.Or(check(ctx, key), s.writable()); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	if err := s.publish(key, body, s.root.Rename); err != nil {
		return fmt.Errorf("put %q: %w", key, mappedPut(err))
	}
	return nil
}

// PutIfAbsent writes a new file and gives it the key's name if that is free.
func (s *Store) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := cmp.Or(check(ctx, key), s.writable()); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	claim, err := s.claims()
	if err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	err = s.publish(key, body, func(staged, key string) error {
		err := claim(staged, key)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Not found now, but the name was taken: removed meanwhile, or a folder's. publish tries again, and gives up.
		have, err := s.read(key, 0, -1)
		if err == nil && !bytes.Equal(have, body) {
			err = object.ErrExists
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("put %q: %w", key, mappedPut(err))
	}
	return nil
}

// Delete removes the file, and the folders that it leaves empty.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := cmp.Or(check(ctx, key), s.writable()); err != nil {
		return fmt.Errorf("delete %q: %w", key, err)
	}
	info, err := s.root.Lstat(key)
	if err == nil && !info.IsDir() {
		err = s.root.Remove(key)
	}
	switch err = mapped(err); {
	case errors.Is(err, object.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("delete %q: %w", key, err)
	}
	if !info.IsDir() {
		s.prune(path.Dir(key))
	}
	return nil
}

// prune removes empty folders from dir upwards. A put that loses its folder to this makes it again.
func (s *Store) prune(dir string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := s.root.Lstat(dir); err != nil || !info.IsDir() {
			return
		}
		s.durable.Delete(dir)
		if err := s.root.Remove(dir); err != nil {
			return // in use: the folder is not empty
		}
	}
}

// LocalPath gives the path that the key's file has or would have; false where no file of the store can have it.
func (s *Store) LocalPath(key string) (string, bool) {
	if checkKey(key) != nil {
		return "", false
	}
	if _, err := s.root.Stat(key); err != nil && !isPlain(err) {
		return "", false // it leads outside
	}
	return filepath.Join(s.dir, filepath.FromSlash(key)), true
}

// writable says whether the store was opened to be written.
func (s *Store) writable() error {
	if s.readOnly {
		return fmt.Errorf("%w: the store was opened to be read", object.ErrDenied)
	}
	return nil
}

func check(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return ctx.Err()
}

func checkKey(key string) error {
	if err := object.CheckKey(key); err != nil {
		return err
	}
	if strings.Contains("/"+key+"/", "/"+tempDir+"/") {
		return fmt.Errorf("%w: %q has the segment %q, which is the store's own", object.ErrBadKey, key, tempDir)
	}
	return nil
}
