package cachestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"varve/internal/object"
	"varve/internal/object/cachestore"
	"varve/internal/object/filestore"
	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func every(string) bool { return true }

func TestObeysTheLawOfStores(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]func(t *testing.T) object.Store{
		"Memory": func(*testing.T) object.Store { return memstore.New() },
		"File": func(t *testing.T) object.Store {
			t.Helper()
			s, err := filestore.Open(t.TempDir())
			require.NoError(t, err)
			return s
		},
	} {
		for what, keep := range map[string]func(string) bool{"Immutable": nil, "Every": every} {
			t.Run(name+what, func(t *testing.T) {
				t.Parallel()
				objecttest.Run(t, func(t *testing.T) object.Store {
					t.Helper()
					return cachestore.New(t.Context(), inner(t), cachestore.Options{Dir: t.TempDir(), MaxBytes: 64 << 20, Keep: keep})
				})
			})
		}
	}
	t.Run("RoomForSmallObjects", func(t *testing.T) {
		t.Parallel()
		objecttest.Run(t, func(t *testing.T) object.Store {
			t.Helper()
			return cachestore.New(t.Context(), memstore.New(), cachestore.Options{Dir: t.TempDir(), MaxBytes: 1 << 20, Keep: every})
		})
	})
}

// world is a cache over a store whose operations are counted.
type world struct {
	*cachestore.Store
	faults *objecttest.Faults
	inner  *memstore.Store
	dir    string
	clock  *clock
}

// clock gives a later time at each call.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) tick() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

func newWorld(t *testing.T, change ...func(*cachestore.Options)) world {
	t.Helper()
	w := world{inner: memstore.New(), dir: t.TempDir(), clock: &clock{now: time.Now()}}
	w.faults = objecttest.NewFaults(w.inner)
	o := cachestore.Options{Dir: w.dir, MaxBytes: 64 << 20, Now: w.clock.tick}
	for _, f := range change {
		f(&o)
	}
	w.Store = cachestore.New(t.Context(), w.faults, o)
	return w
}

// put writes an object of a fresh immutable key and gives the key.
func (w world) put(t *testing.T, body []byte) string {
	t.Helper()
	key := "silver/customer/part-00000-" + uuid.NewString() + ".c000.zstd.parquet"
	require.NoError(t, w.inner.Put(t.Context(), key, body))
	return key
}

func requireRead(t *testing.T, s object.Store, key string, want []byte) {
	t.Helper()
	got, err := s.Read(t.Context(), key, 0, -1)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%q: got %d bytes, want %d", key, len(got), len(want))
}

// pattern gives bytes in which no place looks like another.
func pattern(n int, seed uint64) []byte {
	body := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(body) // it never fails
	return body
}

func files(t *testing.T, dir string) (names []string, size int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		names, size = append(names, filepath.Join(dir, e.Name())), size+info.Size()
	}
	return names, size
}

func TestObjectIsFetchedOnceAndItsRangesServedFromTheFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := pattern(300_000, 1)
	key := w.put(t, body)
	for _, c := range []struct{ offset, length int }{{299_990, 10}, {0, 300_000}, {131_071, 2}, {131_072, 131_072}, {5, 262_144}, {1, 299_998}} {
		got, err := w.Read(t.Context(), key, int64(c.offset), int64(c.length))
		require.NoError(t, err)
		require.True(t, bytes.Equal(body[c.offset:c.offset+c.length], got), "%+v", c)
	}
	requireRead(t, w, key, body)
	local, err := object.Local(t.Context(), w, key, t.TempDir())
	require.NoError(t, err)
	got, err := os.ReadFile(local)
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
	require.Equal(t, []string{fmt.Sprintf("Read %q", key)}, w.faults.Trace())
}

func TestWhatMayChangeIsNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, key := range []string{"t/_delta_log/_last_checkpoint", "t/_delta_log/00000000000000000007.json", "t/_delta_log/00000000000000000010.checkpoint.parquet"} {
		for _, body := range []string{"one", "two"} {
			require.NoError(t, w.inner.Put(t.Context(), key, []byte(body)), "by somebody else")
			requireRead(t, w, key, []byte(body))
		}
	}
	names, _ := files(t, w.dir)
	require.Empty(t, names)
}

func TestReadersOfOneObjectFetchItOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := pattern(200_000, 2)
	key := w.put(t, body)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			got, err := w.Read(t.Context(), key, int64(i), 100)
			if err != nil || !bytes.Equal(got, body[i:i+100]) {
				t.Errorf("reader %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, w.faults.Count())
}

func TestWhetherThereIsAnObjectIsAskedOfTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.put(t, []byte("body"))
	requireRead(t, w, key, []byte("body"))
	require.NoError(t, w.inner.Delete(t.Context(), key), "by somebody else")
	_, err := w.Read(t.Context(), key, 0, 0)
	require.ErrorIs(t, err, object.ErrNotFound)
	absent := w.put(t, nil)
	require.NoError(t, w.inner.Delete(t.Context(), absent))
	for range 2 {
		_, err = w.Read(t.Context(), absent, 0, -1)
		require.ErrorIs(t, err, object.ErrNotFound)
	}
	require.NoError(t, w.inner.Put(t.Context(), absent, []byte("now")))
	requireRead(t, w, absent, []byte("now"))
}

func TestDeleteAndOverwriteDropTheEntry(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w world, key string) error{
		"delete":        func(w world, key string) error { return w.Delete(context.Background(), key) },
		"put":           func(w world, key string) error { return w.Put(context.Background(), key, []byte("new")) },
		"put if absent": func(w world, key string) error { return w.PutIfAbsent(context.Background(), key, []byte("new")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := w.put(t, []byte("old"))
			requireRead(t, w, key, []byte("old"))
			w.faults.FailAt(2, true) // it takes effect, and nobody is told
			err := change(w, key)
			require.True(t, errors.Is(err, object.ErrUnavailable) || errors.Is(err, object.ErrExists), err)
			names, _ := files(t, w.dir)
			require.Empty(t, names)
		})
	}
}

func TestDamagedEntryIsFetchedAgain(t *testing.T) {
	t.Parallel()
	body := pattern(300_000, 3)
	w := newWorld(t)
	key := w.put(t, body)
	other := w.put(t, pattern(300_000, 4))
	requireRead(t, w, other, pattern(300_000, 4))
	names, _ := files(t, w.dir)
	require.Len(t, names, 1)
	foreign, err := os.ReadFile(names[0])
	require.NoError(t, err)
	require.NoError(t, os.Remove(names[0]))
	requireRead(t, w, key, body)
	names, _ = files(t, w.dir)
	require.Len(t, names, 1)
	good, err := os.ReadFile(names[0])
	require.NoError(t, err)
	damages := map[string][]byte{
		"empty": {}, "another object's": foreign, "longer": append(bytes.Clone(good), 0), "zeros": make([]byte, len(good)),
	}
	for _, at := range []int{0, 131_071, 131_072, 299_999, 300_000, 300_004, 300_012, 300_020, 300_060, len(good) - 9, len(good) - 1} {
		flipped := bytes.Clone(good)
		flipped[at] ^= 0x10
		damages[fmt.Sprintf("flipped at %d", at)] = flipped
		damages[fmt.Sprintf("cut at %d", at)] = good[:at]
	}
	for name, damaged := range damages {
		require.NoError(t, os.WriteFile(names[0], damaged, 0o600))
		w.faults.Reset()
		requireRead(t, w, key, body)
		require.Equal(t, 1, w.faults.Count(), name)
		requireRead(t, w, key, body)
		require.Equal(t, 1, w.faults.Count(), "%s: mended", name)
	}
}

func TestLimitIsKeptByDroppingWhatWasUsedLongestAgo(t *testing.T) {
	t.Parallel()
	const limit, size = 100_000, 2_000
	w := newWorld(t, func(o *cachestore.Options) { o.MaxBytes = limit })
	favourite := w.put(t, pattern(size, 0))
	keys := make([]string, 120)
	for i := range uint64(120) {
		keys[i] = w.put(t, pattern(size, i+1))
		requireRead(t, w, keys[i], pattern(size, i+1))
		requireRead(t, w, favourite, pattern(size, 0))
		_, used := files(t, w.dir)
		require.LessOrEqual(t, used, int64(limit))
	}
	_, used := files(t, w.dir)
	require.Greater(t, used, int64(limit*8/10), "room is used")
	w.faults.Reset()
	requireRead(t, w, favourite, pattern(size, 0))
	for i := 119; i > 80; i-- {
		requireRead(t, w, keys[i], pattern(size, uint64(i)+1))
	}
	require.Zero(t, w.faults.Count())
	requireRead(t, w, keys[0], pattern(size, 1))
	require.Equal(t, 1, w.faults.Count())
}

func TestLimitThatWasLoweredIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range uint64(20) {
		requireRead(t, w, w.put(t, pattern(10_000, i)), pattern(10_000, i))
	}
	lower := cachestore.New(t.Context(), w.faults, cachestore.Options{Dir: w.dir, MaxBytes: 50_000, Now: w.clock.tick})
	requireRead(t, lower, w.put(t, []byte("x")), []byte("x"))
	_, used := files(t, w.dir)
	require.LessOrEqual(t, used, int64(50_000))
}

func TestObjectThatIsTooLargePassesBy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *cachestore.Options) { o.MaxBytes = 1000 })
	body := pattern(5000, 1)
	key := w.put(t, body)
	requireRead(t, w, key, body)
	w.faults.Reset()
	requireRead(t, w, key, body)
	require.Equal(t, 1, w.faults.Count(), "it is not tried again")
	names, _ := files(t, w.dir)
	require.Empty(t, names)
}

func TestFolderThatCannotBeUsedIsNoError(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	vanishes := t.TempDir()
	for name, dir := range map[string]string{"is a file": file, "below a file": filepath.Join(file, "dir"), "vanishes": vanishes} {
		w := newWorld(t, func(o *cachestore.Options) { o.Dir = dir })
		if dir == vanishes {
			require.NoError(t, os.RemoveAll(dir))
		}
		key := w.put(t, []byte("body"))
		for range 3 {
			got, err := w.Read(t.Context(), key, 1, 2)
			require.NoError(t, err, name)
			require.Equal(t, "od", string(got), name)
		}
		require.Equal(t, 3, w.faults.Count(), name)
		require.NoError(t, w.Put(t.Context(), key, []byte("new")), name)
		require.NoError(t, w.Delete(t.Context(), key), name)
	}
}

func TestFilesOfDeadProcessesAreSwept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"tmp-old", "tmp-young", "not ours"} {
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), []byte("x"), 0o600))
		if name != "tmp-young" {
			require.NoError(t, os.Chtimes(filepath.Join(w.dir, name), long, long))
		}
	}
	requireRead(t, w, w.put(t, []byte("x")), []byte("x"))
	require.NoFileExists(t, filepath.Join(w.dir, "tmp-old"))
	require.FileExists(t, filepath.Join(w.dir, "tmp-young"))
	require.FileExists(t, filepath.Join(w.dir, "not ours"))
}

// slow is a store whose next read waits.
type slow struct {
	object.Store
	began, goOn chan struct{}
}

func (s slow) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	body, err := s.Store.Read(ctx, key, offset, length)
	if length > 0 {
		s.began <- struct{}{}
		select {
		case <-s.goOn:
		case <-ctx.Done():
			return nil, fmt.Errorf("read %q: %w", key, ctx.Err())
		}
	}
	return body, err
}

func newSlow(t *testing.T) (*cachestore.Store, slow, string) {
	t.Helper()
	inner := slow{Store: memstore.New(), began: make(chan struct{}), goOn: make(chan struct{})}
	dir := t.TempDir()
	return cachestore.New(t.Context(), inner, cachestore.Options{Dir: dir, MaxBytes: 1 << 20, Keep: every}), inner, dir
}

func TestCopyThatAWriteOvertookIsNotKept(t *testing.T) {
	t.Parallel()
	s, inner, dir := newSlow(t)
	require.NoError(t, inner.Put(t.Context(), "a", []byte("old")))
	read := make(chan error)
	go func() {
		_, err := s.Read(t.Context(), "a", 0, -1)
		read <- err
	}()
	<-inner.began
	require.NoError(t, s.Put(t.Context(), "a", []byte("new")))
	inner.goOn <- struct{}{}
	require.NoError(t, <-read)
	names, _ := files(t, dir)
	require.Empty(t, names)
	got := make(chan string)
	go func() {
		body, err := s.Read(t.Context(), "a", 0, -1)
		got <- fmt.Sprint(string(body), err)
	}()
	<-inner.began
	inner.goOn <- struct{}{}
	require.Equal(t, "new<nil>", <-got)
}

func TestFetchEndsWhenNobodyWaitsForIt(t *testing.T) {
	t.Parallel()
	s, inner, dir := newSlow(t)
	require.NoError(t, inner.Put(t.Context(), "a", []byte("body")))
	first, leave := context.WithCancel(t.Context())
	second, leaveToo := context.WithCancel(t.Context())
	read := make(chan error)
	for _, ctx := range []context.Context{first, second} {
		go func() {
			_, err := s.Read(ctx, "a", 0, 1)
			read <- err
		}()
	}
	<-inner.began
	leave()
	require.ErrorIs(t, <-read, context.Canceled)
	leaveToo()
	require.ErrorIs(t, <-read, context.Canceled)
	require.Eventually(t, func() bool { names, _ := files(t, dir); return len(names) == 0 }, 10*time.Second, time.Millisecond)
}

func TestProcessesOnOneFolderServeRightBytes(t *testing.T) {
	t.Parallel()
	inner, dir := memstore.New(), t.TempDir()
	const keys, size = 30, 3000
	for i := range uint64(keys) {
		require.NoError(t, inner.Put(t.Context(), strconv.FormatUint(i, 10), pattern(size, i)))
	}
	var wg sync.WaitGroup
	for p := range uint64(4) { // each store stands for a process
		s := cachestore.New(t.Context(), inner, cachestore.Options{Dir: dir, MaxBytes: 40_000, Keep: every})
		for g := range uint64(2) {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(p, g))
				for range 100 {
					i := r.Uint64N(keys)
					offset, length := r.Int64N(size), r.Int64N(size)+1
					got, err := s.Read(t.Context(), strconv.FormatUint(i, 10), offset, length)
					if want := pattern(size, i)[offset:min(offset+length, size)]; err != nil || !bytes.Equal(got, want) {
						t.Errorf("process %d: object %d from %d: %d bytes, %v", p, i, offset, len(got), err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	_, used := files(t, dir)
	require.LessOrEqual(t, used, int64(40_000+4*40_000/16))
}

func TestScopesShareAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		for _, scope := range []string{"one", "two"} {
			inner := memstore.New()
			require.NoError(t, inner.Put(t.Context(), "a", []byte(scope)))
			s := cachestore.New(t.Context(), inner, cachestore.Options{Dir: dir, MaxBytes: 1 << 20, Keep: every, Scope: scope})
			requireRead(t, s, "a", []byte(scope))
		}
	}
}

func TestImmutableIsWhatHasAUUIDInItsName(t *testing.T) {
	t.Parallel()
	const id = "d2c639aa-8816-431a-aaf6-d3fe2512ff61"
	for key, want := range map[string]bool{
		"silver/t/part-00000-" + id + ".c000.zstd.parquet":                           true,
		"t/day=2026-09-14/part-00000-" + id + "-c000.snappy.parquet":                 true,
		"t/ab/deletion_vector_" + id + ".bin":                                        true,
		"t/_change_data/cdc-00000-" + id + ".c000.parquet":                           true,
		"t/_varve/state/" + id + ".parquet":                                          true,
		"t/_delta_log/_sidecars/" + id + ".parquet":                                  true,
		"t/_delta_log/00000000000000000010.checkpoint." + id + ".parquet":            true,
		"t/_delta_log/00000000000000000010.checkpoint." + id + ".json":               true,
		"t/_delta_log/00000000000000000010.checkpoint.parquet":                       false,
		"t/_delta_log/00000000000000000010.checkpoint.0000000001.0000000002.parquet": false,
		"t/_delta_log/00000000000000000010.json":                                     false,
		"t/_delta_log/00000000000000000010.00000000000000000011.compacted.json":      false,
		"t/_delta_log/_staged_commits/00000000000000000010." + id + ".json":          false,
		"t/_delta_log/_last_checkpoint":                                              false,
		"t/_delta_log/00000000000000000010.crc":                                      false,
		"_varve/contracts/customer/1.json":                                           false,
		"t/" + id + "/part-0.parquet":                                                false,
		"t/part-x" + id + ".parquet":                                                 false,
		"t/part-" + id + "0.parquet":                                                 false,
		"t/data.parquet":                                                             false,
	} {
		require.Equal(t, want, cachestore.Immutable(key), key)
	}
}
