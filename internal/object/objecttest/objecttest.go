// Package objecttest is the law that every object.Store obeys, as tests; with it, a store that fails on script, and an S3
// server for tests.
package objecttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"varve/internal/object"
)

// Run holds the stores that open gives, each empty, to the law.
func Run(t *testing.T, open func(t *testing.T) object.Store) {
	t.Helper()
	laws := map[string]func(*testing.T, object.Store){
		"ReadGivesWhatPutWrote":               readGivesWhatPutWrote,
		"RangesAreCutAtTheEnd":                rangesAreCutAtTheEnd,
		"RangesOfALargeObjectAreItsBytes":     rangesOfALargeObject,
		"AbsentKeyIsNotFound":                 absentKeyIsNotFound,
		"PutReplaces":                         putReplaces,
		"PutIfAbsentKeepsTheFirst":            putIfAbsentKeepsTheFirst,
		"RepeatingOnesOwnPutIfAbsentSucceeds": repeatingSucceeds,
		"DeleteIsIdempotentAndFreesTheKey":    deleteFreesTheKey,
		"BytesAreNotShared":                   bytesAreNotShared,
		"BadKeysAreRefused":                   badKeysAreRefused,
		"CancelledCallsDoNothing":             cancelledCallsDoNothing,
		"OddKeysAreKept":                      oddKeysAreKept,
		"ListGivesSizeAndTime":                listGivesSizeAndTime,
		"ListIsInByteOrderOfWholeKeys":        listIsInByteOrder,
		"ListIsAFilterOfAllKeys":              listIsAFilter,
		"ListCanBeLeft":                       listCanBeLeft,
		"16WritersHaveOneWinner":              func(t *testing.T, s object.Store) { oneWinner(t, s, 16) }, //nolint:thelper // a law
		"50WritersHaveOneWinner":              func(t *testing.T, s object.Store) { oneWinner(t, s, 50) }, //nolint:thelper // a law
		"WritersOfEqualBytesAllSucceed":       equalWritersSucceed,
		"ReadersNeverSeeAPart":                readersNeverSeeAPart,
		"LocalGivesTheBytes":                  localGivesTheBytes,
		"DownloadGivesTheWholeObject":         downloadGivesTheObject,
	}
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			law(t, open(t))
		})
	}
}

func readGivesWhatPutWrote(t *testing.T, s object.Store) {
	t.Helper()
	for key, body := range map[string][]byte{
		"a": []byte("some bytes"), "b/c": {}, "b/d/e": {0, 255, '\r', '\n'}, "big": large(),
	} {
		require.NoError(t, s.Put(t.Context(), key, body))
		requireBody(t, s, key, body)
		require.NoError(t, s.PutIfAbsent(t.Context(), key+"-2", body))
		requireBody(t, s, key+"-2", body)
	}
}

func rangesAreCutAtTheEnd(t *testing.T, s object.Store) {
	t.Helper()
	const maxInt64 = 1<<63 - 1
	require.NoError(t, s.Put(t.Context(), "k", []byte("0123456789")))
	require.NoError(t, s.Put(t.Context(), "empty", nil))
	for _, c := range []struct {
		key            string
		offset, length int64
		want           string
	}{
		{"k", 0, -1, "0123456789"},
		{"k", 0, 10, "0123456789"},
		{"k", 0, 1, "0"},
		{"k", 3, 4, "3456"},
		{"k", 9, 1, "9"},
		{"k", 9, -1, "9"},
		{"k", 8, 100, "89"},
		{"k", 4, maxInt64, "456789"},
		{"k", 3, 0, ""},
		{"k", 10, -1, ""},
		{"k", 10, 5, ""},
		{"k", 11, 5, ""},
		{"k", maxInt64, maxInt64, ""},
		{"empty", 0, -1, ""},
		{"empty", 0, 5, ""},
		{"empty", 5, -1, ""},
	} {
		got, err := s.Read(t.Context(), c.key, c.offset, c.length)
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.want, string(got), "%+v", c)
	}
	_, err := s.Read(t.Context(), "k", -1, 1)
	require.Error(t, err)
}

// partBytes is the least that S3 takes as a part of an object. A store that transfers large objects in parts is held to the
// law with parts of this size.
const partBytes = 5 << 20

// large gives a body of more than one part, in which no place looks like another.
func large() []byte {
	body := make([]byte, 0, partBytes+100_000)
	for n := uint64(0); len(body) < cap(body); n++ {
		body = binary.BigEndian.AppendUint64(body, n*0x9e3779b97f4a7c15)
	}
	return body
}

func rangesOfALargeObject(t *testing.T, s object.Store) {
	t.Helper()
	body := large()
	size := int64(len(body))
	require.NoError(t, s.PutIfAbsent(t.Context(), "k", body))
	require.NoError(t, s.PutIfAbsent(t.Context(), "k", body), "its own again")
	other := slices.Clone(body)
	other[size-1]++
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", other), object.ErrExists)
	for _, c := range []struct{ offset, length int64 }{
		{0, -1},
		{0, size},
		{0, size + 1},
		{1, -1},
		{3, partBytes + 50_000},
		{partBytes - 1, 3},
		{partBytes, partBytes},
		{partBytes + 1, -1},
		{size - 1, 10},
		{size, -1},
		{size + 1, partBytes + 1},
	} {
		want := body[min(c.offset, size):]
		if c.length >= 0 {
			want = want[:min(c.length, int64(len(want)))]
		}
		got, err := s.Read(t.Context(), "k", c.offset, c.length)
		require.NoError(t, err, "%+v", c)
		require.True(t, bytes.Equal(want, got), "%+v: got %d bytes, want %d", c, len(got), len(want))
	}
	require.NoError(t, s.Put(t.Context(), "k", other))
	requireBody(t, s, "k", other)
}

func absentKeyIsNotFound(t *testing.T, s object.Store) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), "folder/file", []byte("x")))
	for _, key := range []string{"a", "a/b", "folder", "folder/other", "folder/file/below"} {
		for _, length := range []int64{-1, 0, 10} {
			_, err := s.Read(t.Context(), key, 0, length)
			require.ErrorIs(t, err, object.ErrNotFound, "read %q, %d bytes", key, length)
			require.ErrorContains(t, err, fmt.Sprintf("%q", key))
		}
		require.NoError(t, s.Delete(t.Context(), key))
	}
	requireBody(t, s, "folder/file", []byte("x"))
	require.Empty(t, keys(t, s, "nowhere/", ""))
}

func putReplaces(t *testing.T, s object.Store) {
	t.Helper()
	for _, body := range []string{"a long first body", "second", "", "third"} {
		require.NoError(t, s.Put(t.Context(), "a/b", []byte(body)))
		requireBody(t, s, "a/b", []byte(body))
	}
	require.Equal(t, []string{"a/b"}, keys(t, s, "", ""))
}

func putIfAbsentKeepsTheFirst(t *testing.T, s object.Store) {
	t.Helper()
	require.NoError(t, s.PutIfAbsent(t.Context(), "a/b", []byte("first")))
	for _, body := range []string{"second", "", "first and more", "firs"} {
		require.ErrorIs(t, s.PutIfAbsent(t.Context(), "a/b", []byte(body)), object.ErrExists)
	}
	requireBody(t, s, "a/b", []byte("first"))
	require.NoError(t, s.Put(t.Context(), "c", []byte("put")))
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "c", []byte("if absent")), object.ErrExists)
	requireBody(t, s, "c", []byte("put"))
}

func repeatingSucceeds(t *testing.T, s object.Store) {
	t.Helper()
	for key, body := range map[string][]byte{"a": []byte("body"), "empty": nil} {
		require.NoError(t, s.PutIfAbsent(t.Context(), key, body))
		require.NoError(t, s.PutIfAbsent(t.Context(), key, body))
		requireBody(t, s, key, body)
	}
}

func deleteFreesTheKey(t *testing.T, s object.Store) {
	t.Helper()
	require.NoError(t, s.PutIfAbsent(t.Context(), "a/b/c", []byte("one")))
	require.NoError(t, s.Delete(t.Context(), "a/b/c"))
	require.NoError(t, s.Delete(t.Context(), "a/b/c"))
	_, err := s.Read(t.Context(), "a/b/c", 0, -1)
	require.ErrorIs(t, err, object.ErrNotFound)
	require.Empty(t, keys(t, s, "", ""))
	require.NoError(t, s.PutIfAbsent(t.Context(), "a/b/c", []byte("two")))
	requireBody(t, s, "a/b/c", []byte("two"))
	require.NoError(t, s.Delete(t.Context(), "a/b/c"))
	require.NoError(t, s.Put(t.Context(), "a/b", []byte("where a folder was")))
}

func bytesAreNotShared(t *testing.T, s object.Store) {
	t.Helper()
	one, two := []byte("body"), []byte("body")
	require.NoError(t, s.Put(t.Context(), "a", one))
	require.NoError(t, s.PutIfAbsent(t.Context(), "b", two))
	one[0], two[0] = 'X', 'X'
	for _, key := range []string{"a", "b"} {
		got, err := s.Read(t.Context(), key, 0, -1)
		require.NoError(t, err)
		require.Equal(t, "body", string(got))
		got[0] = 'Y'
		requireBody(t, s, key, []byte("body"))
	}
}

func badKeysAreRefused(t *testing.T, s object.Store) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), "a/b", []byte("x")))
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/./b", "../a", "a/..", "a/../b", "a/b/../../../c",
		"a\x00b", "a\nb", "a\x7f", "a\xffb", strings.Repeat("k", 1025),
	} {
		_, err := s.Read(t.Context(), key, 0, -1)
		require.ErrorIs(t, err, object.ErrBadKey, "read %q", key)
		require.ErrorIs(t, s.Put(t.Context(), key, []byte("x")), object.ErrBadKey, "put %q", key)
		require.ErrorIs(t, s.PutIfAbsent(t.Context(), key, []byte("x")), object.ErrBadKey, "put if absent %q", key)
		require.ErrorIs(t, s.Delete(t.Context(), key), object.ErrBadKey, "delete %q", key)
	}
	for _, prefix := range []string{"/", "/a", "a//", "../", "a/../", "./", "a\n", "\xff"} {
		_, err := collect(t.Context(), s, prefix, "")
		require.ErrorIs(t, err, object.ErrBadKey, "list %q", prefix)
	}
	require.Equal(t, []string{"a/b"}, keys(t, s, "", ""))
}

func cancelledCallsDoNothing(t *testing.T, s object.Store) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), "a", []byte("x")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Read(ctx, "a", 0, -1)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Put(ctx, "a", []byte("y")), context.Canceled)
	require.ErrorIs(t, s.PutIfAbsent(ctx, "b", []byte("y")), context.Canceled)
	require.ErrorIs(t, s.Delete(ctx, "a"), context.Canceled)
	_, err = collect(ctx, s, "", "")
	require.ErrorIs(t, err, context.Canceled)
	requireBody(t, s, "a", []byte("x"))
	require.Equal(t, []string{"a"}, keys(t, s, "", ""))
}

func oddKeysAreKept(t *testing.T, s object.Store) {
	t.Helper()
	odd := []string{
		"a b", "a+b", "a%20b", "a%2Fb", "day=2026-09-14/x", "Ünïcödé/日本", "q?x=1&y=2#z", "a'b\"c", "<a>&amp;", "back\\slash", "a:b",
		".hidden", "_under", "..a", "a..", "x/...", "~", "*", "{a}", "a@b,c;d!e$f",
	}
	slices.Sort(odd)
	for _, key := range odd {
		require.NoError(t, s.PutIfAbsent(t.Context(), key, []byte(key)), "put %q", key)
	}
	require.Equal(t, odd, keys(t, s, "", ""))
	for i, key := range odd {
		requireBody(t, s, key, []byte(key))
		require.Contains(t, keys(t, s, key, ""), key)
		require.Equal(t, odd[i+1:], append([]string{}, keys(t, s, "", key)...))
	}
	for _, key := range odd {
		require.NoError(t, s.Delete(t.Context(), key))
	}
	require.Empty(t, keys(t, s, "", ""))
}

func listGivesSizeAndTime(t *testing.T, s object.Store) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), "a", []byte("12345")))
	require.NoError(t, s.Put(t.Context(), "b", nil))
	infos, err := collect(t.Context(), s, "", "")
	require.NoError(t, err)
	require.Len(t, infos, 2)
	require.Equal(t, int64(5), infos[0].Size)
	require.Equal(t, int64(0), infos[1].Size)
	require.False(t, infos[0].Modified.IsZero())
}

func listIsInByteOrder(t *testing.T, s object.Store) {
	t.Helper()
	ordered := []string{"A", "a!/x", "a-b", "a.b", "a/b", "a/b-c", "a/c/d", "a0", "aa/b", "b-/z", "b/z", "é"}
	for _, key := range ordered {
		require.NoError(t, s.Put(t.Context(), key, []byte("x")))
	}
	for _, c := range []struct {
		prefix, after string
		want          []string
	}{
		{"", "", ordered},
		{"a", "", ordered[1:9]},
		{"a/", "", ordered[4:7]},
		{"a/b", "", ordered[4:6]},
		{"a/b-c", "", ordered[5:6]},
		{"a/b-cd", "", nil},
		{"b", "b-/z", ordered[10:11]},
		{"", "a.b", ordered[4:]},
		{"", "a/b", ordered[5:]},
		{"", "a/", ordered[4:]},
		{"", "a/c", ordered[6:]},
		{"a", "a/zzz", ordered[7:9]},
		{"a/", "A", ordered[4:7]},
		{"a/", "a0", nil},
		{"a/", "b", nil},
		{"", "é", nil},
	} {
		require.Equal(t, c.want, keys(t, s, c.prefix, c.after), "prefix %q, after %q", c.prefix, c.after)
	}
}

// listIsAFilter compares listings of a random set of keys with the filter that defines them.
func listIsAFilter(t *testing.T, s object.Store) {
	t.Helper()
	segment := rapid.StringOfN(rapid.SampledFrom([]rune{'a', 'b', '-', '.', '0', '!', 'é'}), 1, 3, -1).
		Filter(func(s string) bool { return s != "." && s != ".." })
	folder := rapid.SampledFrom([]string{"", "a/", "a-/", "a/b/", "a/b-/", "b0/", "é/"})
	text := rapid.Custom(func(t *rapid.T) string { return folder.Draw(t, "folder") + segment.Draw(t, "segment") })
	var all []string
	for _, key := range rapid.SliceOfNDistinct(text, 40, 60, rapid.ID).Example(1) {
		isFolder := func(other string) bool { return strings.HasPrefix(other, key+"/") || strings.HasPrefix(key, other+"/") }
		if !slices.ContainsFunc(all, isFolder) { // file systems do not have both
			require.NoError(t, s.Put(t.Context(), key, []byte("x")))
			all = append(all, key)
		}
	}
	slices.Sort(all)
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.OneOf(rapid.SampledFrom(all), text, folder).Draw(t, "prefix")
		if i := rapid.IntRange(0, len(prefix)).Draw(t, "cut"); !strings.HasSuffix(prefix[:i], "\xc3") {
			prefix = prefix[:i]
		}
		after := rapid.OneOf(rapid.SampledFrom(all), text, folder).Draw(t, "after")
		var want []string
		for _, key := range all {
			if strings.HasPrefix(key, prefix) && key > after {
				want = append(want, key)
			}
		}
		infos, err := collect(context.Background(), s, prefix, after)
		if err != nil {
			t.Fatal(err)
		}
		if got := names(infos); !slices.Equal(got, want) {
			t.Fatalf("list %q after %q: got %q, want %q", prefix, after, got, want)
		}
	})
}

func listCanBeLeft(t *testing.T, s object.Store) {
	t.Helper()
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		require.NoError(t, s.Put(t.Context(), key, []byte("x")))
	}
	var seen []string
	for info, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		if seen = append(seen, info.Key); len(seen) == 2 {
			break
		}
	}
	require.Equal(t, []string{"a/1", "a/2"}, seen)
}

func oneWinner(t *testing.T, s object.Store, writers int) {
	t.Helper()
	body := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "writer %d;", i), 1000) }
	errs := race(writers, func(i int) error { return s.PutIfAbsent(t.Context(), "folder/new/key", body(i)) })
	winner := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	require.GreaterOrEqual(t, winner, 0, "no winner: %v", errs)
	for i, err := range errs {
		if i != winner {
			require.ErrorIs(t, err, object.ErrExists, "writer %d beside winner %d", i, winner)
		}
	}
	requireBody(t, s, "folder/new/key", body(winner))
	require.Equal(t, []string{"folder/new/key"}, keys(t, s, "", ""))
}

func equalWritersSucceed(t *testing.T, s object.Store) {
	t.Helper()
	for i, err := range race(16, func(int) error { return s.PutIfAbsent(t.Context(), "a/b", []byte("same")) }) {
		require.NoError(t, err, "writer %d", i)
	}
	requireBody(t, s, "a/b", []byte("same"))
}

func readersNeverSeeAPart(t *testing.T, s object.Store) {
	t.Helper()
	const size = 100_000
	require.NoError(t, s.Put(t.Context(), "a", bytes.Repeat([]byte{'0'}, size)))
	for _, err := range race(8, func(i int) error {
		for n := range 10 {
			if i < 4 {
				if err := s.Put(t.Context(), "a", bytes.Repeat([]byte{byte('0' + n)}, size)); err != nil {
					return err
				}
				continue
			}
			body, err := s.Read(t.Context(), "a", 0, -1)
			if err != nil {
				return err
			}
			if len(body) != size || len(bytes.Trim(body, string(body[:1]))) > 0 {
				return errors.New("saw a part of a body")
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

// race calls f for each of n at once and gives what each returned.
func race(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func requireBody(t *testing.T, s object.Store, key string, want []byte) {
	t.Helper()
	got, err := s.Read(t.Context(), key, 0, -1)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%q: got %d bytes, want %d", key, len(got), len(want))
}

func keys(t *testing.T, s object.Store, prefix, after string) []string {
	t.Helper()
	infos, err := collect(t.Context(), s, prefix, after)
	require.NoError(t, err)
	return names(infos)
}

func names(infos []object.Info) []string {
	var out []string //nolint:prealloc // nil where there are none, as tests write it
	for _, info := range infos {
		out = append(out, info.Key)
	}
	return out
}

func collect(ctx context.Context, s object.Store, prefix, after string) ([]object.Info, error) {
	var out []object.Info
	for info, err := range s.List(ctx, prefix, after) {
		if err != nil {
			return out, err
		}
		out = append(out, info)
	}
	return out, nil
}
