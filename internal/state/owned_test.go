package state_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/object/memstore"
	"varve/internal/state"
)

// TestStateThatNoReadableVersionNamesIsNotNeeded has manifests 1 to 5, of which each shares a file with the next one.
func TestStateThatNoReadableVersionNamesIsNotNeeded(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	file := func(n int64) state.File { return state.File{Path: fmt.Sprintf("_varve/state/f%d.parquet", n)} }
	for n := range int64(5) {
		require.NoError(t, state.Put(t.Context(), store, "silver/x", state.Manifest{Format: state.Format, Number: n + 1, Files: []state.File{file(n), file(n + 1)}}))
	}
	for name, c := range map[string]struct {
		marks   []int64
		planned []state.File
		want    []string
	}{
		"the newest of all":         {[]int64{5}, nil, []string{"5.json", "f4.parquet", "f5.parquet"}},
		"a past version too":        {[]int64{3, 5}, nil, []string{"3.json", "5.json", "f2.parquet", "f3.parquet", "f4.parquet", "f5.parquet"}},
		"prepared after the newest": {[]int64{4}, nil, []string{"4.json", "5.json", "f3.parquet", "f4.parquet", "f5.parquet"}},
		"a plan":                    {[]int64{5}, []state.File{file(0)}, []string{"5.json", "f0.parquet", "f4.parquet", "f5.parquet"}},
		"a past manifest is gone":   {[]int64{0, 5}, nil, []string{"5.json", "f4.parquet", "f5.parquet"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owned := state.Owned(store, "silver/x", c.planned)
			require.Equal(t, "_varve/state", owned.Path)
			require.Equal(t, state.AppID, owned.AppID)
			needed, err := owned.Needed(t.Context(), c.marks)
			require.NoError(t, err)
			var got []string
			for _, name := range []string{"1.json", "2.json", "3.json", "4.json", "5.json", "05.json", "f0.parquet", "f1.parquet", "f2.parquet", "f3.parquet", "f4.parquet", "f5.parquet", "other"} {
				if needed("_varve/state/" + name) {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			require.Equal(t, c.want, got)
		})
	}
	_, err := state.Owned(store, "silver/x", nil).Needed(t.Context(), []int64{5, 6})
	var missing *state.MissingError
	require.ErrorAs(t, err, &missing, "the newest version's own manifest is missing")
}
