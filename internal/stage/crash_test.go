package stage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"varve/internal/delta"
	"varve/internal/delta/deltatest"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
	"varve/internal/stage"
)

// TestEveryStoreOperationOfADayMayFail fails each operation of one day, before and after its effect, with the process
// dead from then on. The day run again ends with the tables of an undisturbed run, and with the same change data feeds.
func TestEveryStoreOperationOfADayMayFail(t *testing.T) {
	t.Parallel()
	const day = "2026-01-06" // a delete, a late event and a file sent again, on tables that exist
	base := newWorld(t, memstore.New())
	base.run(t, "customer", "2026-01-05")
	landing := base.Landing
	fed := map[string]int64{}
	for _, table := range []string{"silver.customer_current", "silver.customer_history"} {
		fed[table] = deltatest.TurnOnFeed(t, delta.At(base.warehouse, stage.Root(table)))
	}
	feeds := func(warehouse object.Store) string {
		out := map[string]map[delta.ChangeType]int{}
		for table, from := range fed {
			out[table] = deltatest.RequireFeed(t, delta.At(warehouse, stage.Root(table)), from)
		}
		return fmt.Sprint(out)
	}

	undisturbed := objecttest.NewFaults(clone(t.Context(), t, base.warehouse))
	w := on(t, undisturbed, landing)
	w.run(t, "customer", day)
	operations := undisturbed.Count()
	want, told := content(t, undisturbed), feeds(undisturbed)
	if !strings.Contains(told, string(delta.RowAfter)) {
		t.Fatalf("the day updates nothing: %s", told)
	}
	if operations < 50 {
		t.Fatalf("a day is %d operations: the count must be wrong", operations)
	}

	type point struct {
		operation int
		after     bool
	}
	points := make(chan point)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for p := range points {
				faults := objecttest.NewFaults(clone(t.Context(), t, base.warehouse))
				faults.DieAt(p.operation, p.after)
				w := on(t, faults, landing)
				run := stage.DayRequest{Dataset: "customer", Day: day, Run: uuid.NewString()}
				name := fmt.Sprintf("operation %d of %d, after its effect %t", p.operation, operations, p.after)
				if _, err := w.Day(t.Context(), run); err != nil && !errors.Is(err, objecttest.ErrDead) {
					t.Errorf("%s: the day failed with another error than the store's: %v", name, err)
				}
				faults.Reset()
				if _, err := w.Day(t.Context(), run); err != nil {
					t.Errorf("%s: the day run again: %v", name, err)
					continue
				}
				if diff := differences(content(t, faults), want); diff != "" {
					t.Errorf("%s:\n%s", name, diff)
				}
				if got := feeds(faults); got != told {
					t.Errorf("%s: the feeds have %s, want %s", name, got, told)
				}
			}
		})
	}
	for operation := 1; operation <= operations; operation++ {
		for _, after := range []bool{false, true} {
			points <- point{operation, after}
		}
	}
	close(points)
	workers.Wait()
	t.Logf("%d operations failed, before and after their effect", operations)
}

// TestFullStoreLeavesNothingHalfVisible lets every write from one on fail as on a full disk. The day fails with a typed
// error, targets show what they showed, and once there is room the day ends as if nothing had been.
func TestFullStoreLeavesNothingHalfVisible(t *testing.T) {
	t.Parallel()
	const day = "2026-01-06"
	base := newWorld(t, memstore.New())
	base.run(t, "customer", "2026-01-05")
	calm := on(t, clone(t.Context(), t, base.warehouse), base.Landing)
	calm.run(t, "customer", day)
	before, want := content(t, base.warehouse), content(t, calm.warehouse)
	targets := []string{"silver.customer_current", "silver.customer_current_flagged", "silver.customer_history"}
	applied := 0 // runs that ended with some target at the new rows
	for room := 0; ; room++ {
		full := &fullStore{Store: clone(t.Context(), t, base.warehouse), room: room}
		w := on(t, full, base.Landing)
		_, err := w.Day(t.Context(), stage.DayRequest{Dataset: "customer", Day: day, Run: uuid.NewString()})
		if err == nil {
			break
		}
		if !errors.Is(err, object.ErrFull) {
			t.Fatalf("room for %d writes: %v, want %v", room, err, object.ErrFull)
		}
		for table, is := range content(t, full.Store) {
			if slices.Contains(targets, table) && !slices.Equal(is, before[table]) && !slices.Equal(is, want[table]) {
				t.Errorf("room for %d writes: %s is half visible: %v", room, table, is)
			}
			if slices.Contains(targets, table) && !slices.Equal(is, before[table]) {
				applied++
			}
		}
		full.room = 1 << 30
		w.run(t, "customer", day)
		if diff := differences(content(t, full.Store), want); diff != "" {
			t.Errorf("room for %d writes, then more:\n%s", room, diff)
		}
	}
	if applied < len(targets) {
		t.Errorf("%d times a target was at the new rows when the store was full: the test does not reach their commits", applied)
	}
}

// fullStore has room for some writes.
type fullStore struct {
	object.Store
	room int
}

func (s *fullStore) take() error {
	if s.room--; s.room < 0 {
		return object.ErrFull
	}
	return nil
}

func (s *fullStore) Put(ctx context.Context, key string, body []byte) error {
	if err := s.take(); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, body)
}

func (s *fullStore) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := s.take(); err != nil {
		return err
	}
	return s.Store.PutIfAbsent(ctx, key, body)
}

// TestTwoRunsOfADayAtOnceAreOne runs one day four times at once on one warehouse.
func TestTwoRunsOfADayAtOnceAreOne(t *testing.T) {
	t.Parallel()
	base := newWorld(t, memstore.New())
	base.run(t, "customer", "2026-01-05")
	alone := on(t, clone(t.Context(), t, base.warehouse), base.Landing)
	alone.run(t, "customer", "2026-01-06")
	shared := clone(t.Context(), t, base.warehouse)
	var runs sync.WaitGroup
	for range 4 {
		w := on(t, shared, base.Landing)
		runs.Go(func() {
			if _, err := w.Day(t.Context(), stage.DayRequest{Dataset: "customer", Day: "2026-01-06", Run: uuid.NewString()}); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	for table, version := range versions(t, alone) {
		if snap, err := alone.Snapshot(t.Context(), table, version); err != nil {
			t.Fatal(err)
		} else if is, err := on(t, shared, base.Landing).Snapshot(t.Context(), table, -1); err != nil || is.Version() != snap.Version() {
			t.Errorf("%s is at version %d, not %d (%v)", table, is.Version(), version, err)
		}
	}
	if diff := differences(content(t, shared), content(t, alone.warehouse)); diff != "" {
		t.Fatal(diff)
	}
}
