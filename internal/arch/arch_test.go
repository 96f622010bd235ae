package arch

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func TestTheHouseObeysTheLaw(t *testing.T) {
	t.Parallel()
	r, err := load(root)
	require.NoError(t, err)
	require.NotEmpty(t, r.files)
	for _, breach := range check(r) {
		t.Error(breach)
	}
}

// TestEveryBreachIsFound holds the law against a tree that breaks every rule once.
func TestEveryBreachIsFound(t *testing.T) {
	t.Parallel()
	r, err := load(filepath.Join("testdata", "broken"))
	require.NoError(t, err)
	require.Equal(t, lines(t, filepath.Join("testdata", "broken.txt")), check(r))
}

func TestEveryLevelNamesAFolderOnce(t *testing.T) {
	t.Parallel()
	all := slices.Concat(levels...)
	slices.Sort(all)
	require.Equal(t, slices.Compact(slices.Clone(all)), all)
	for _, d := range doors {
		require.NotEmpty(t, d.folders, d.library)
	}
}

// lines reads a text file.
func lines(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var out []string
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		out = append(out, scanner.Text())
	}
	require.NoError(t, scanner.Err())
	return out
}

func TestIgnoredEntriesMayStandAtTheTop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("# builds\n/varve\n*.test\n"), 0o600))
	for _, name := range []string{"varve", "delta.test", "stray"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	r, err := load(dir)
	require.NoError(t, err)
	require.Equal(t, []string{".gitignore", "stray"}, r.entries)
}
