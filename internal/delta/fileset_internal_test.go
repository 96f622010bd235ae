package delta

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFileSetIsAMapInOrderOfPaths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set, want := newFileSet(0), map[fileKey]int64{}
		for i := range rapid.IntRange(0, 60).Draw(t, "actions") {
			path := fmt.Sprintf("f%02d", min(rapid.IntRange(0, 30).Draw(t, "file"), i)) // in order at first
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				set.remove(fileKey{path: path})
				delete(want, fileKey{path: path})
				continue
			}
			key := set.set(&Add{Path: path, Size: int64(i)})
			want[key] = int64(i)
		}
		require.Equal(t, len(want), set.len())
		require.Len(t, set.adds(), len(want))
		files := set.byPath()
		require.Len(t, files, len(want))
		require.True(t, slices.IsSortedFunc(files, func(a, b liveFile) int { return strings.Compare(a.path, b.path) }))
		for _, file := range files {
			require.Equal(t, want[fileKey{path: file.path}], file.add.Size)
			require.True(t, set.has(fileKey{path: file.path}))
		}
	})
}
