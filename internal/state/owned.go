package state

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"varve/internal/delta"
	"varve/internal/object"
)

// folder is where manifests and state files lie, below a table's root.
const folder = "_varve/state"

// Owned is the rule by which vacuum sweeps the state of the table at root: a manifest that a readable version of the table
// names stays with its files, and so does one with a number above all of those, since a commit that is prepared may yet name
// it. planned are files of manifests that are not written yet. Files of manifests that are gone go.
func Owned(store object.Store, root string, planned []File) delta.OwnedFolder {
	return delta.OwnedFolder{
		Path: folder, AppID: AppID,
		Needed: func(ctx context.Context, marks []int64) (func(string) bool, error) {
			return needed(ctx, store, root, marks, planned)
		},
	}
}

func needed(ctx context.Context, store object.Store, root string, marks []int64, planned []File) (func(string) bool, error) {
	newest := int64(-1)
	if len(marks) > 0 {
		newest = marks[len(marks)-1]
	}
	keep := map[string]bool{}
	for _, f := range planned {
		keep[path.Clean(f.Path)] = true
	}
	numbers := map[int64]bool{}
	for _, n := range marks {
		numbers[n] = true
	}
	prefix := path.Join(root, folder) + "/"
	for info, err := range store.List(ctx, prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("list state: %w", err)
		}
		if n, ok := number(strings.TrimPrefix(info.Key, prefix)); ok && n > newest {
			numbers[n] = true
		}
	}
	for n := range numbers {
		m, err := Load(ctx, store, root, n)
		if _, missing := errors.AsType[*MissingError](err); missing && n < newest {
			continue // of a past version: an earlier vacuum with a shorter retention took it
		}
		if err != nil {
			return nil, err
		}
		keep[path.Join(folder, strconv.FormatInt(n, 10)+".json")] = true
		for _, f := range m.Files {
			keep[path.Clean(f.Path)] = true
		}
	}
	return func(name string) bool { return keep[name] }, nil
}

// number gives the number in a manifest's name.
func number(name string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, ".json")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == digits
}
