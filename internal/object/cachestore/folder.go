package cachestore

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// tempPrefix begins the names of files that are just being written.
	tempPrefix = "tmp-"
	// staleAfter is the age beyond which such a file belongs to a process that died.
	staleAfter = 6 * time.Hour
	// slack is which part of the limit is freed at a time, so that the folder is not searched for each new entry.
	slack = 16
)

// folder is the entries on disk. It never leaves its folder, and touches no file that is not of its own making.
type folder struct {
	root *os.Root // stays open as long as the store is in use; the runtime closes it after
	// create opens a new file of a name that is free.
	create func(name string) (*os.File, error)
	most   int64 // bytes
	now    func() time.Time

	mu    sync.Mutex
	used  int64 // as far as this process knows; below 0 before the first look
	added int64 // since the last look
}

func openFolder(dir string, most int64, now func() time.Time) (*folder, error) {
	if most <= 0 {
		return nil, fmt.Errorf("max bytes: %d is no room", most)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	create := func(name string) (*os.File, error) {
		return root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	return &folder{root: root, create: create, most: most, now: now, used: -1}, nil
}

// lookup opens an entry and marks it as used. What is damaged is removed.
func (f *folder) lookup(name id) (entry, bool) {
	file, err := f.root.Open(name.String())
	if err != nil {
		return entry{}, false
	}
	e, err := open(file, name)
	if err != nil {
		_ = file.Close() // it was only read
		f.remove(name)
		return entry{}, false
	}
	f.touch(name.String())
	return e, true
}

// touch marks a file as used now.
func (f *folder) touch(name string) {
	now := f.now()
	_ = f.root.Chtimes(name, now, now) // another process may have removed it; or it is removed a little early
}

// remove removes an entry. One that stays is found out to be damaged again, or is of an object that is no more.
func (f *folder) remove(name id) {
	_ = f.root.Remove(name.String()) // mostly not there
}

// stage makes a new file.
func (f *folder) stage() (*os.File, string, error) {
	name := tempPrefix + rand.Text()
	file, err := f.create(name)
	return file, name, err
}

func (f *folder) discard(temp string) {
	_ = f.root.Remove(temp) // mostly gone, by the rename that made it an entry
}

// publish gives a finished file the name of an entry. A crash may leave a name whose bytes did not come to disk: the
// entry's sums tell.
func (f *folder) publish(temp string, name id) error {
	f.touch(temp)
	return f.root.Rename(temp, name.String())
}

// room makes sure that so many bytes more may lie in the folder, those of the file temp, by removing what was used longest
// ago.
func (f *folder) room(need int64, temp string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used >= 0 && f.used+need <= f.most && f.added+need <= f.most/slack {
		f.used, f.added = f.used+need, f.added+need
		return nil
	}
	files, err := f.look(temp)
	if err != nil {
		return err
	}
	total := need
	for _, file := range files {
		total += file.Size()
	}
	for _, file := range files {
		if total <= f.most-f.most/slack {
			break
		}
		if err := f.root.Remove(file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= file.Size()
	}
	if total > f.most {
		return fmt.Errorf("no room for %d bytes", need)
	}
	f.used, f.added = total, need
	return nil
}

// look gives the folder's entries, the one used longest ago first, and removes what dead processes left.
func (f *folder) look(temp string) ([]fs.FileInfo, error) {
	all, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var out []fs.FileInfo
	for _, e := range all {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || e.Name() == temp {
			continue // gone meanwhile, or not ours
		}
		switch {
		case isEntry(e.Name()):
			out = append(out, info)
		case strings.HasPrefix(e.Name(), tempPrefix) && f.now().Sub(info.ModTime()) > staleAfter:
			f.discard(e.Name())
		}
	}
	slices.SortFunc(out, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	return out, nil
}

func isEntry(name string) bool {
	return len(name) == 2*len(id{}) && strings.Trim(name, "0123456789abcdef") == ""
}
