package objecttest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
)

func TestFaultsWithoutFaultObeysTheLawOfStores(t *testing.T) {
	t.Parallel()
	objecttest.Run(t, func(*testing.T) object.Store { return objecttest.NewFaults(memstore.New()) })
}

// job does each operation once and gives what each returned.
func job(t *testing.T, s object.Store) []error {
	t.Helper()
	_, readErr := s.Read(t.Context(), "old", 0, -1)
	putErr := s.Put(t.Context(), "put", nil)
	absentErr := s.PutIfAbsent(t.Context(), "absent", nil)
	deleteErr := s.Delete(t.Context(), "old")
	var listErr error
	for _, err := range s.List(t.Context(), "a", "") {
		listErr = errors.Join(listErr, err)
	}
	return []error{readErr, putErr, absentErr, deleteErr, listErr}
}

func setup(t *testing.T) (*objecttest.Faults, object.Store) {
	t.Helper()
	inner := memstore.New()
	require.NoError(t, inner.Put(t.Context(), "old", nil))
	return objecttest.NewFaults(inner), inner
}

func has(t *testing.T, s object.Store, key string) bool {
	t.Helper()
	_, err := s.Read(t.Context(), key, 0, 0)
	return err == nil
}

func TestFaultHitsTheChosenOperationOnly(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 5; n++ {
		for _, after := range []bool{false, true} {
			f, inner := setup(t)
			f.FailAt(n, after)
			for i, err := range job(t, f) {
				if i+1 == n {
					require.ErrorIs(t, err, object.ErrUnavailable)
				} else {
					require.NoError(t, err)
				}
			}
			require.Equal(t, n != 2 || after, has(t, inner, "put"))
			require.Equal(t, n != 3 || after, has(t, inner, "absent"))
			require.Equal(t, n == 4 && !after, has(t, inner, "old"))
		}
	}
}

func TestNothingHasEffectAfterDeath(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		f, inner := setup(t)
		f.DieAt(2, after)
		for i, err := range job(t, f) {
			if i < 1 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, objecttest.ErrDead)
			}
		}
		require.Equal(t, after, has(t, inner, "put"))
		require.False(t, has(t, inner, "absent"))
		require.True(t, has(t, inner, "old"))
		f.Reset()
		require.NoError(t, errors.Join(job(t, f)...))
	}
}

func TestTraceNamesEachOperation(t *testing.T) {
	t.Parallel()
	f, _ := setup(t)
	errs := job(t, f)
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, []string{`Read "old"`, `Put "put"`, `PutIfAbsent "absent"`, `Delete "old"`, `List "a"`}, f.Trace())
	require.Equal(t, 5, f.Count())
	f.Reset()
	require.Zero(t, f.Count())
}

func TestFaultCanBeChosen(t *testing.T) {
	t.Parallel()
	f, _ := setup(t)
	f.FailWith(1, false, object.ErrFull)
	require.ErrorIs(t, job(t, f)[0], object.ErrFull)
}
