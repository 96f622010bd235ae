package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"varve/internal/object"
)

const dayMark = "{day}"

// listing finds the files of a source.
type listing struct {
	landing object.Store
	// pattern is the source's path in the contract.
	pattern string
}

// files gives the files that the pattern means for a day, in byte order of their paths. A *MissingError where there is
// no folder for them.
func (l listing) files(ctx context.Context, day string) ([]object.Info, error) {
	pattern := strings.ReplaceAll(l.pattern, dayMark, day)
	folder := fixedFolder(pattern)
	prefix := folder
	if prefix != "" {
		prefix += "/"
	}
	var found []object.Info
	seen := false
	for info, err := range l.landing.List(ctx, prefix, "") {
		if err != nil {
			return nil, l.listError(folder, err)
		}
		seen = true
		if matches(pattern, info.Key) && !hidden(pattern, info.Key) {
			found = append(found, info)
		}
	}
	if !seen && !l.isFolder(folder) {
		return nil, &MissingError{Path: folder, Hint: l.hint(ctx, day)}
	}
	return found, nil
}

func (l listing) listError(folder string, err error) error {
	if errors.Is(err, object.ErrDenied) {
		return &UnreadableError{File: folder, Err: err}
	}
	return fmt.Errorf("list source folder %q: %w", folder, err)
}

// isFolder says whether the store is a file system that has the folder, though there is no file in it.
func (l listing) isFolder(folder string) bool {
	if folder == "" {
		return true
	}
	local, ok := l.landing.(interface {
		LocalPath(key string) (string, bool)
	})
	if !ok {
		return false
	}
	at, ok := local.LocalPath(folder)
	if !ok {
		return false
	}
	info, err := os.Stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || info.IsDir()
}

// hint tells what is there instead of a day's folder.
func (l listing) hint(ctx context.Context, day string) string {
	const look = 10000 // files
	advice := fmt.Sprintf("put the files of %s there, or correct source.path in the contract", day)
	head, tail, hasDay := strings.Cut(l.pattern, dayMark)
	if !hasDay {
		return advice
	}
	first, _, _ := strings.Cut(tail, "/")
	newest, n := "", 0
	for info, err := range l.landing.List(ctx, fixedFolder(head+"*")+"/", "") {
		if n++; err != nil || n > look {
			break
		}
		rest, ok := strings.CutPrefix(info.Key, head)
		if !ok || len(rest) < len(day) || !strings.HasPrefix(rest[len(day):], first) {
			continue
		}
		newest = max(newest, rest[:len(day)])
	}
	if newest == "" {
		return advice
	}
	return fmt.Sprintf("the newest day there is %s; %s", newest, advice)
}

// fixedFolder is the folder of a pattern up to its first wildcard.
func fixedFolder(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[`); i >= 0 {
		pattern = pattern[:i]
	} else if !strings.HasSuffix(pattern, "/") {
		return strings.TrimSuffix(path.Dir(pattern), ".")
	}
	return pattern[:max(0, strings.LastIndexByte(pattern, '/'))]
}

// hidden says whether a file is one that its writer has not shown yet, or a mark: its name begins with a point or an
// underscore, and the pattern's does not.
func hidden(pattern, name string) bool {
	first := path.Base(name)[0]
	return (first == '.' || first == '_') && path.Base(pattern)[0] != first
}

// matches says whether a path is one of a pattern: *, ? and [...] within a segment, ** for any number of segments.
func matches(pattern, name string) bool {
	return matchSegments(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

func matchSegments(pattern, name []string) bool {
	for i, p := range pattern {
		if p == "**" {
			rest := pattern[i+1:]
			for n := range len(name) - i + 1 {
				if matchSegments(rest, name[i+n:]) {
					return true
				}
			}
			return false
		}
		if i >= len(name) {
			return false
		}
		if ok, err := path.Match(p, name[i]); err != nil || !ok {
			return false
		}
	}
	return len(pattern) == len(name)
}
