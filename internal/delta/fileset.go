package delta

import (
	"slices"
	"strings"
)

// fileKey is what reconciliation knows a file by. PROTOCOL.md, Action Reconciliation.
type fileKey struct{ path, vector string }

// keyOf gives the key of a file. A path that is refused stands for itself: a tombstone of it must not fail.
func keyOf(raw string, d *DeletionVector) fileKey {
	p, err := filePath(raw)
	if err != nil {
		p = raw
	}
	return fileKey{path: p, vector: d.uniqueID()}
}

// fileSet is the data files of a table while its log is replayed. It remembers the order in which they came: checkpoints are
// mostly in order of paths already.
type fileSet struct {
	all []liveFile
	at  map[fileKey]int // where in all
}

// liveFile is a file and its path, percent-decoded, or as it stands where it is refused. It has no add once it is removed.
type liveFile struct {
	path    string
	add     *Add
	refused error
}

// newFileSet is empty, with room for so many files.
func newFileSet(n int) fileSet {
	return fileSet{all: make([]liveFile, 0, n), at: make(map[fileKey]int, n)}
}

// set adds a file, in the place of the one with the same key, which it gives.
func (f *fileSet) set(add *Add) fileKey {
	file := liveFile{add: add}
	if file.path, file.refused = filePath(add.Path); file.refused != nil {
		file.path = add.Path
	}
	key := fileKey{path: file.path, vector: add.DeletionVector.uniqueID()}
	if i, ok := f.at[key]; ok {
		f.all[i] = file
		return key
	}
	f.at[key] = len(f.all)
	f.all = append(f.all, file)
	return key
}

// remove takes a file out, if it is there.
func (f *fileSet) remove(key fileKey) {
	if i, ok := f.at[key]; ok {
		f.all[i].add = nil
		delete(f.at, key)
	}
}

func (f *fileSet) has(key fileKey) bool {
	_, ok := f.at[key]
	return ok
}

func (f *fileSet) len() int { return len(f.at) }

// adds gives the files in the order of their coming.
func (f *fileSet) adds() []Add {
	out := make([]Add, 0, f.len())
	for _, file := range f.all {
		if file.add != nil {
			out = append(out, *file.add)
		}
	}
	return out
}

// byPath gives the files in order of their paths. Those that came in order are not sorted again.
func (f *fileSet) byPath() []liveFile {
	files := slices.DeleteFunc(slices.Clone(f.all), func(file liveFile) bool { return file.add == nil })
	compare := func(a, b liveFile) int { return strings.Compare(a.path, b.path) }
	sorted := 1
	for sorted < len(files) && compare(files[sorted-1], files[sorted]) <= 0 {
		sorted++
	}
	if sorted >= len(files) {
		return files
	}
	slices.SortFunc(files[sorted:], compare)
	head, tail := files[:sorted], files[sorted:]
	out := make([]liveFile, 0, len(files))
	for len(head) > 0 && len(tail) > 0 {
		if compare(head[0], tail[0]) <= 0 {
			out, head = append(out, head[0]), head[1:]
		} else {
			out, tail = append(out, tail[0]), tail[1:]
		}
	}
	return append(append(out, head...), tail...)
}
