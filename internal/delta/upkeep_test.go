package delta_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
	"varve/internal/value"
)

// days is a number of days.
func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// hands is a clock that a test moves.
type hands struct {
	mu sync.Mutex
	at time.Time
}

func (h *hands) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hands) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}

// ticking makes an empty table of people on a clock that moves.
func ticking(t *testing.T, config map[string]string) (delta.Table, *hands) {
	t.Helper()
	clock := &hands{at: clock()}
	store := memstore.New()
	store.Now = clock.now
	table := delta.Table{Store: store, Root: "silver/people", Now: clock.now}
	metadata := delta.NewMetadata(people(), nil, config)
	_, err := table.Commit(t.Context(), -1, delta.Commit{ID: uuid.NewString(), Operation: "CREATE TABLE", Metadata: &metadata})
	require.NoError(t, err)
	return table, clock
}

// names gives the keys below a prefix, without it.
func names(t *testing.T, store object.Store, prefix string) []string {
	t.Helper()
	var out []string
	for info, err := range store.List(t.Context(), prefix, "") {
		require.NoError(t, err)
		out = append(out, strings.TrimPrefix(info.Key, prefix))
	}
	return out
}

// contents gives every object of a store.
func contents(t *testing.T, store object.Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, key := range names(t, store, "") {
		body, err := store.Read(t.Context(), key, 0, -1)
		require.NoError(t, err)
		out[key] = string(body)
	}
	return out
}

// copyOf copies a store, with the times of its objects.
func copyOf(t *testing.T, from object.Store, clock *hands) *memstore.Store {
	t.Helper()
	to := memstore.New()
	for info, err := range from.List(t.Context(), "", "") {
		require.NoError(t, err)
		body, err := from.Read(t.Context(), info.Key, 0, -1)
		require.NoError(t, err)
		to.Now = func() time.Time { return info.Modified }
		require.NoError(t, to.Put(t.Context(), info.Key, body))
	}
	to.Now = clock.now
	return to
}

// aged makes a table of which a good part is expired: versions, removed files, leftovers.
func aged(t *testing.T) (delta.Table, *hands) {
	t.Helper()
	table, clock := ticking(t, map[string]string{"delta.checkpointInterval": "3"})
	var last delta.Add
	for i := range int64(8) {
		clock.move(days(3))
		add := write(t, table, value.Row{i, "x"})
		c := delta.Commit{ID: uuid.NewString(), Operation: "WRITE", Adds: []delta.Add{add}, Txns: []delta.Txn{{AppID: "w", Version: i}}}
		if i%2 == 1 {
			c.Removes = []delta.Remove{delta.RemoveOf(last, clock.now(), true)}
		}
		_, err := table.Commit(t.Context(), i, c)
		require.NoError(t, err)
		last = add
		write(t, table, value.Row{-i, "never committed"})
	}
	return table, clock
}

// jobs are what keeps a table in order.
func jobs() map[string]func(context.Context, delta.Table) error {
	return map[string]func(context.Context, delta.Table) error{
		"1 checkpoint": func(ctx context.Context, table delta.Table) error {
			s, err := table.Latest(ctx)
			if err != nil {
				return err
			}
			return table.Checkpoint(ctx, s.Version())
		},
		"2 clean the log": func(ctx context.Context, table delta.Table) error {
			_, err := table.CleanLog(ctx)
			return err
		},
		"3 vacuum": func(ctx context.Context, table delta.Table) error {
			_, err := table.Vacuum(ctx, delta.VacuumOptions{})
			return err
		},
	}
}

// TestEveryStoreOperationOfUpkeepMayFail fails each operation of checkpoint, cleanup and vacuum, before its effect and after,
// with the process dead from then on. At that point the newest rows can be read; the job run again ends with the objects of
// an undisturbed run.
func TestEveryStoreOperationOfUpkeepMayFail(t *testing.T) {
	t.Parallel()
	base, clock := aged(t)
	clock.move(days(25))
	latest, err := base.Latest(t.Context())
	require.NoError(t, err)
	rows := scan(t.Context(), t, latest, nil)
	start := base.Store
	for _, name := range slices.Sorted(maps.Keys(jobs())) {
		job := jobs()[name]
		undisturbed := objecttest.NewFaults(copyOf(t, start, clock))
		require.NoError(t, job(t.Context(), delta.Table{Store: undisturbed, Root: base.Root, Now: clock.now}))
		trace, want := undisturbed.Trace(), contents(t, undisturbed)
		writes := 0
		for n, operation := range trace {
			changes := !strings.HasPrefix(operation, "Read") && !strings.HasPrefix(operation, "List")
			for _, after := range []bool{false, true} {
				if after && !changes {
					continue // nothing happened, and nothing was learned
				}
				store := copyOf(t, start, clock)
				faults := objecttest.NewFaults(store)
				faults.DieAt(n+1, after)
				// A failed read of a hint costs a listing, no more.
				if err := job(t.Context(), delta.Table{Store: faults, Root: base.Root, Now: clock.now}); err != nil {
					require.ErrorIs(t, err, objecttest.ErrDead)
				}
				table := delta.Table{Store: store, Root: base.Root, Now: clock.now}
				if !changes {
					continue // the store is as after the change before, which has its turn
				}
				writes++
				s, err := table.Latest(t.Context())
				require.NoError(t, err, "%s: %s, after %t", name, operation, after)
				require.Equal(t, rows, scan(t.Context(), t, s, nil))
				require.NoError(t, job(t.Context(), table))
				require.True(t, maps.Equal(want, contents(t, store)), "%s: %s, after %t", name, operation, after)
			}
		}
		require.Greater(t, writes, 4, name)
		start = copyOf(t, undisturbed, clock)
	}
	require.Less(t, len(contents(t, start)), len(contents(t, base.Store))-8, "upkeep deleted next to nothing")
}
