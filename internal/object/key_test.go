package object_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"varve/internal/object"
)

func TestGoodKeyIsACleanPathBelowAnyRoot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringOf(rapid.SampledFrom([]rune{'a', '.', '/', '-', '\n', '\\', 'é'})).Draw(t, "key")
		clean := path.Clean("/"+key) == "/"+key && key != "" && key[0] != '/' && !strings.Contains(key, "\n")
		if good := object.CheckKey(key) == nil; good != clean {
			t.Fatalf("%q: good %v, clean %v", key, good, clean)
		}
	})
}

func TestEveryBeginningOfAGoodKeyIsAGoodPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringOf(rapid.SampledFrom([]rune{'a', '.', '/', '-'})).Draw(t, "key")
		if object.CheckKey(key) != nil {
			t.Skip()
		}
		for i := range key {
			if err := object.CheckPrefix(key[:i]); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestBadKeyIsNamedWithItsReason(t *testing.T) {
	t.Parallel()
	for key, reason := range map[string]string{
		"a/../b": `"a/../b" has the segment ".."`,
		"/a":     `"/a" has an empty segment`,
		"a\tb":   `"a\tb" has a control character`,
		"\xff":   `"\xff" is not UTF-8`,
	} {
		err := object.CheckKey(key)
		require.ErrorIs(t, err, object.ErrBadKey)
		require.ErrorContains(t, err, reason)
	}
}
