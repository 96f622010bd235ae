package filestore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"varve/internal/object"
)

// staleAfter is the age beyond which a temp file belongs to a put that died.
const staleAfter = 24 * time.Hour

// publish makes body durable under a temp name, then visible by move, then the name durable. A nil from move means that
// the key has the body.
func (s *Store) publish(key string, body []byte, move claim) error {
	staged, err := s.stage(body)
	if err != nil {
		return err
	}
	defer s.discard(staged)
	for range maxTries {
		if err = s.makeDir(path.Dir(key)); err == nil {
			err = move(staged, key)
		}
		if err == nil {
			err = s.syncDir(path.Dir(key))
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// The folder was removed when it was empty for a moment, or the object that had the key has gone.
		s.durable.Delete(path.Dir(key))
		if _, err := s.root.Lstat(staged); err != nil {
			return fmt.Errorf("%w: somebody took the temp file away: %w", object.ErrUnavailable, err)
		}
	}
	if info, err := s.root.Stat(key); err == nil && !info.Mode().IsRegular() {
		return errors.New("the name is taken by what is no file")
	}
	return fmt.Errorf("%w: other writers keep removing it", object.ErrUnavailable)
}

// stage writes a durable file of a fresh temp name.
func (s *Store) stage(body []byte) (string, error) {
	name := path.Join(tempDir, rand.Text())
	var f *os.File
	var err error
	for range maxTries {
		// The process's umask decides who else may read: other engines do, under other users.
		f, err = s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err := s.root.Mkdir(tempDir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(body)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.discard(name)
		return "", err
	}
	return name, nil
}

// discard removes a temp file. One that stays does no harm: it is never listed, and swept when the store is opened.
func (s *Store) discard(staged string) {
	_ = s.root.Remove(staged) // mostly gone already, by the rename that published it
}

// makeDir makes the folder, and makes sure once that its entry in each folder above is on disk, whoever made it.
func (s *Store) makeDir(dir string) error {
	if _, ok := s.durable.Load(dir); ok || dir == "." {
		return nil
	}
	if err := s.root.MkdirAll(dir, 0o777); err != nil {
		return s.whyNoDir(dir, err)
	}
	for up := path.Dir(dir); ; up = path.Dir(up) {
		if err := s.syncDir(up); err != nil {
			return err
		}
		if up == "." {
			break
		}
	}
	s.durable.Store(dir, struct{}{})
	return nil
}

// whyNoDir tells a folder whose name, or one above it, is an object's from one that was removed while it was made, which
// is fs.ErrNotExist.
func (s *Store) whyNoDir(dir string, err error) error {
	if !is(err, syscall.ENOTDIR, syscall.EEXIST) {
		return err
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := s.root.Stat(dir); err == nil && !info.IsDir() {
			return fmt.Errorf("%q is an object, and can have none below it", dir)
		}
	}
	return fs.ErrNotExist
}

func (s *Store) syncDir(dir string) error {
	f, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if is(err, syscall.EINVAL, syscall.ENOTSUP) {
		err = nil // file systems that sync no folders keep them safe by themselves
	}
	return errors.Join(err, f.Close())
}

// link claims a key by a hard link: exactly one of many succeeds.
func (s *Store) link(staged, key string) error {
	return s.root.Link(staged, key)
}

// renameNoReplace claims a key by a rename that fails where the name is taken.
func (s *Store) renameNoReplace(staged, key string) (err error) {
	from, err := s.root.Open(path.Dir(staged))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := s.root.Open(path.Dir(key))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return renameNoReplace(from, path.Base(staged), to, path.Base(key))
}

// claims gives the way to claim a key that works here, found out by the first call that can write.
func (s *Store) claims() (claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claim != nil {
		return s.claim, nil
	}
	found, err := s.probe(s.link, s.renameNoReplace)
	s.claim = found
	return found, err
}

// probe gives the first of the claims that works here.
func (s *Store) probe(claims ...claim) (claim, error) {
	staged, err := s.stage(nil)
	if err != nil {
		return nil, mappedPut(err)
	}
	defer func() { _ = s.root.Remove(tempDir) }() // stays where it is in use
	defer s.discard(staged)
	s.sweep(staged)
	why := []error{object.ErrNoPutIfAbsent}
	for _, c := range claims {
		err := s.try(c)
		switch {
		case err == nil:
			return c, nil
		case errors.Is(mapped(err), object.ErrFull):
			return nil, mapped(err)
		}
		why = append(why, err)
	}
	return nil, errors.Join(why...)
}

// try claims one name twice, in the temp folder.
func (s *Store) try(c claim) error {
	first, err := s.stage([]byte("first"))
	if err != nil {
		return err
	}
	defer s.discard(first)
	second, err := s.stage([]byte("second"))
	if err != nil {
		return err
	}
	defer s.discard(second)
	name := path.Join(tempDir, rand.Text())
	if err := c(first, name); err != nil {
		return err
	}
	defer s.discard(name)
	err = c(second, name)
	if err == nil {
		return errors.New("the same name was claimed twice")
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// sweep removes the temp files of puts that died. The file system's own clock, which dated the file probe, tells their
// age. Best effort: what stays is never visible.
func (s *Store) sweep(probe string) {
	now, err := s.root.Lstat(probe)
	if err != nil {
		return
	}
	entries, err := fs.ReadDir(s.root.FS(), tempDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && now.ModTime().Sub(info.ModTime()) > staleAfter {
			s.discard(path.Join(tempDir, e.Name()))
		}
	}
}
