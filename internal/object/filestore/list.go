package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"varve/internal/object"
)

// List walks the folders that can hold such keys. What comes or goes meanwhile may or may not be given.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		if err := object.CheckPrefix(prefix); err != nil {
			yield(object.Info{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		}
		w := walk{ctx: ctx, root: s.root, prefix: prefix, after: after, yield: yield}
		folder := ""
		if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
			folder = prefix[:i+1]
		}
		w.walk(folder, nil)
	}
}

// walk is one listing; it lives no longer than that, which is why it may hold the context.
type walk struct {
	ctx           context.Context //nolint:containedctx // the recursion's constant
	root          *os.Root
	prefix, after string
	yield         func(object.Info, error) bool
}

// walk lists the keys below a folder, "" or ending in a slash; false ends the listing. A folder that is one of those above
// it again, by a link, is left out: its keys would never end.
func (w walk) walk(folder string, above []fs.FileInfo) bool {
	if err := w.ctx.Err(); err != nil {
		return w.fail(err)
	}
	if strings.Contains("/"+folder, "/"+tempDir+"/") {
		return true
	}
	dir, err := w.root.OpenRoot(path.Clean(folder)) // "" is "."
	if errors.Is(mapped(err), object.ErrNotFound) {
		return true
	}
	if err != nil {
		return w.fail(err)
	}
	self, err := dir.Stat(".")
	var names []string
	if err == nil && !slices.ContainsFunc(above, func(f fs.FileInfo) bool { return os.SameFile(f, self) }) {
		names, err = w.names(dir, folder)
	}
	goOn := err == nil || w.fail(err)
	for _, name := range names {
		if !goOn {
			break
		}
		if strings.HasSuffix(name, "/") {
			goOn = w.walk(folder+name, append(slices.Clip(above), self))
		} else {
			goOn = w.file(dir, folder, name)
		}
	}
	if err := dir.Close(); err != nil && goOn {
		return w.fail(err)
	}
	return goOn
}

// names gives what the listing wants of a folder in the order of keys: a folder's name ends in the slash that all keys
// below it have there, so that "a-b" comes before "a/b".
func (w walk) names(dir *os.Root, folder string) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name, mode := e.Name(), e.Type()
		if name == tempDir || !w.wants(folder+name) && !w.wants(folder+name+"/") {
			continue
		}
		if mode&fs.ModeSymlink != 0 {
			info, err := w.root.Stat(folder + name) // by the root: it may lead anywhere in the store
			switch {
			case errors.Is(mapped(err), object.ErrNotFound):
				continue // it leads to nothing
			case err != nil:
				return nil, err
			}
			mode = info.Mode()
		}
		if mode.IsDir() {
			name += "/"
		}
		if (mode.IsDir() || mode.IsRegular()) && w.wants(folder+name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// wants says whether a key, or a key below a folder, can be part of the listing.
func (w walk) wants(name string) bool {
	below := strings.HasSuffix(name, "/")
	begins := strings.HasPrefix(name, w.prefix) || below && strings.HasPrefix(w.prefix, name)
	follows := name > w.after || below && strings.HasPrefix(w.after, name)
	return begins && follows
}

// file gives one file of a folder.
func (w walk) file(dir *os.Root, folder, name string) bool {
	info, err := dir.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		info, err = w.root.Stat(folder + name)
	}
	switch {
	case errors.Is(mapped(err), object.ErrNotFound):
		return true // gone meanwhile, or a link to nothing
	case err != nil:
		return w.fail(err)
	case !info.Mode().IsRegular():
		return true
	}
	return w.yield(object.Info{Key: folder + name, Size: info.Size(), Modified: info.ModTime()}, nil)
}

func (w walk) fail(err error) bool {
	w.yield(object.Info{}, fmt.Errorf("list %q: %w", w.prefix, mapped(err)))
	return false
}
