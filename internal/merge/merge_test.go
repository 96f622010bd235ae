package merge_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"varve/internal/delta"
	"varve/internal/merge"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/scd"
	"varve/internal/state"
	"varve/internal/value"
)

func clock() time.Time { return time.Date(2026, 9, 14, 3, 30, 0, 0, time.UTC) }

// shape says which kind of target a test is about.
type shape struct {
	history, by, logical, ignoreNull, track bool
}

// target is a table of two columns and a struct, keyed by id.
func target(s shape) merge.Target {
	long, text := value.Type{Kind: value.Long}, value.Type{Kind: value.StringKind}
	pair := value.Type{Kind: value.StructKind, Fields: []value.Field{{Name: "p", Type: text, Nullable: true}, {Name: "q", Type: text, Nullable: true}}}
	keys := value.Schema{{Name: "id", Type: long}}
	columns := value.Schema{{Name: "a", Type: text, Nullable: true}, {Name: "b", Type: pair, Nullable: true}}
	t := merge.Target{
		Table: "silver.thing", Root: "silver/thing", Type: scd.Type1, Schema: slices.Concat(keys, columns),
		State:    state.Layout{Keys: keys, Columns: columns, Sequence: long},
		Spec:     scd.Spec{Columns: []scd.Column{{Name: "a", Tracked: true, IgnoreNull: s.ignoreNull}, {Name: "b", Leaves: []string{"p", "q"}, Tracked: !s.track}}, Logical: s.logical},
		Contract: 1, ContractHash: "hash",
	}
	if s.logical {
		t.Deleted = "is_deleted"
		t.Schema = append(t.Schema, value.Field{Name: t.Deleted, Type: value.Type{Kind: value.Boolean}, Nullable: true})
	}
	if s.history {
		t.Type, t.Start, t.End, t.Current = scd.Type2, "start", "end", "current"
		t.Schema = append(t.Schema, value.Field{Name: "start", Type: long}, value.Field{Name: "end", Type: long, Nullable: true},
			value.Field{Name: "current", Type: value.Type{Kind: value.Boolean}, Nullable: true})
		if s.by {
			t.Spec.By, t.State.Bound = true, &long
		}
	}
	return t
}

// apply merges one batch as a stage does: prepare, then commit.
func apply(t *rapid.T, store object.Store, target merge.Target, batch int64, events []merge.Event) {
	plan, err := merge.Prepare(t.Context(), merge.Request{Store: store, Target: target, Batches: []int64{batch}, Events: each(events), Now: clock})
	if err != nil {
		t.Fatalf("prepare batch %d: %v", batch, err)
	}
	if plan == nil {
		return
	}
	if _, err := merge.Commit(t.Context(), store, plan); err != nil {
		t.Fatalf("commit batch %d: %v", batch, err)
	}
}

func each(events []merge.Event) func(func(merge.Event, error) bool) {
	return func(yield func(merge.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// drawShape draws one of all kinds of targets.
func drawShape(t *rapid.T) shape {
	s := shape{
		history: rapid.Bool().Draw(t, "history"), by: rapid.Bool().Draw(t, "by"), logical: rapid.Bool().Draw(t, "logical"),
		ignoreNull: rapid.Bool().Draw(t, "ignore null"), track: rapid.Bool().Draw(t, "track a only"),
	}
	s.by, s.logical = s.by && s.history, s.logical && !s.history
	return s
}

// drawEvents draws a history with few keys, few values and many collisions.
func drawEvents(t *rapid.T, s shape, target merge.Target) []merge.Event {
	texts := []value.Value{"x", "y", nil}
	text := rapid.SampledFrom(texts)
	n := rapid.IntRange(1, 12).Draw(t, "events")
	out := make([]merge.Event, n)
	for i := range out {
		e := merge.Event{Key: value.Row{rapid.Int64Range(1, 2).Draw(t, "id")}}
		e.Event.Seq = rapid.Int64Range(1, 8).Draw(t, "seq")
		if s.by {
			e.Event.By = rapid.Int64Range(1, 5).Draw(t, "by")
		}
		if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
			e.Event.Op = scd.Delete
			out[i] = e
			continue
		}
		columns := map[string]value.Value{}
		if rapid.Bool().Draw(t, "has a") {
			columns["a"] = text.Draw(t, "a")
		}
		switch rapid.IntRange(0, 3).Draw(t, "b") {
		case 0:
			columns["b"] = nil
		case 1:
			columns["b"] = value.Struct{{Name: "p", Value: text.Draw(t, "p")}, {Name: "q", Value: text.Draw(t, "q")}}
		case 2:
			columns["b"] = value.Struct{{Name: "q", Value: text.Draw(t, "q")}}
		}
		e.Event.Authored = target.Spec.Author(columns)
		out[i] = e
	}
	return out
}

// TestBatchesGiveTheFoldOfAllEvents merges random histories batch by batch through files and hidden state, some batches
// twice, and compares the table with the pure fold of all events at once.
func TestBatchesGiveTheFoldOfAllEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		target := target(s)
		all := drawEvents(t, s, target)
		store := memstore.New()
		rest := slices.Clone(all)
		for batch := int64(1); len(rest) > 0; batch++ {
			n := rapid.IntRange(1, len(rest)).Draw(t, "batch")
			apply(t, store, target, batch, rest[:n])
			if rapid.Bool().Draw(t, "again") {
				apply(t, store, target, batch, rest[:n])
			}
			rest = rest[n:]
		}
		if got, want := table(t, store, target), folded(target, all); !slices.Equal(got, want) {
			t.Fatalf("%+v\n got  %v\n want %v", s, got, want)
		}
	})
}

// table is the target's visible rows as sorted text.
func table(t *rapid.T, store object.Store, target merge.Target) []string {
	snap, err := delta.At(store, target.Root).Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for row, err := range snap.Scan(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, value.KeyText(row))
	}
	slices.Sort(out)
	return out
}

// folded is what the law says that the table shows, as sorted text.
func folded(target merge.Target, all []merge.Event) []string {
	byKey := map[int64][]scd.Event{}
	for _, e := range all {
		id, _ := e.Key[0].(int64)
		byKey[id] = append(byKey[id], e.Event)
	}
	out := []string{}
	for id, events := range byKey {
		line := target.Spec.Fold(value.KeyText([]value.Value{id}), events, scd.Barriers{})
		rows := line.History()
		if target.Type == scd.Type1 {
			rows = nil
			if r, ok := line.Current(); ok {
				rows = append(rows, r)
			}
		}
		for _, r := range rows {
			row := append([]value.Value{id}, r.Values...)
			if target.Deleted != "" {
				row = append(row, r.Deleted)
			}
			if target.Start != "" {
				row = append(row, r.Start, r.End, r.End == nil)
			}
			out = append(out, value.KeyText(row))
		}
	}
	slices.Sort(out)
	return out
}

// one is a single upsert.
func one(target merge.Target, id, seq int64, a string) []merge.Event {
	return []merge.Event{{Key: value.Row{id}, Event: scd.Event{
		Seq: seq, Authored: target.Spec.Author(map[string]value.Value{"a": a, "b": nil}),
	}}}
}

func prepare(t *testing.T, store object.Store, target merge.Target, batch int64, events []merge.Event) (*merge.Plan, error) {
	t.Helper()
	return merge.Prepare(t.Context(), merge.Request{Store: store, Target: target, Batches: []int64{batch}, Events: each(events), Now: clock})
}

func mustApply(t *testing.T, store object.Store, target merge.Target, batch int64, events []merge.Event) int64 {
	t.Helper()
	plan, err := prepare(t, store, target, batch, events)
	if err != nil {
		t.Fatal(err)
	}
	version, err := merge.Commit(t.Context(), store, plan)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestOfTwoPlansOneWinsAndTheOtherPreparesAgain(t *testing.T) {
	t.Parallel()
	store, target := memstore.New(), target(shape{})
	mustApply(t, store, target, 1, one(target, 1, 1, "x"))
	first, err := prepare(t, store, target, 2, one(target, 1, 2, "y"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := prepare(t, store, target, 3, one(target, 1, 3, "z"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := merge.Commit(t.Context(), store, first); err != nil {
		t.Fatal(err)
	}
	_, err = merge.Commit(t.Context(), store, second)
	if _, conflict := errors.AsType[*delta.ConflictError](err); !conflict {
		t.Fatalf("the second plan: %v, want a conflict", err)
	}
	mustApply(t, store, target, 3, one(target, 1, 3, "z"))
	applied, _, version, err := merge.Applied(t.Context(), store, target.Table, target.Root)
	if err != nil || version != 2 || !applied.Has(2) || !applied.Has(3) {
		t.Fatalf("applied %v at version %d (%v)", applied, version, err)
	}
}

func TestCommittingAPlanAgainIsSuccess(t *testing.T) {
	t.Parallel()
	store, target := memstore.New(), target(shape{})
	plan, err := prepare(t, store, target, 1, one(target, 1, 1, "x"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if v, err := merge.Commit(t.Context(), store, plan); err != nil || v != 0 {
			t.Fatalf("version %d, %v", v, err)
		}
	}
}

func TestEventThatChangesNothingVisibleRewritesNoFile(t *testing.T) {
	t.Parallel()
	store, target := memstore.New(), target(shape{})
	mustApply(t, store, target, 1, one(target, 1, 1, "x"))
	plan, err := prepare(t, store, target, 2, one(target, 1, 5, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(plan.Commit.Adds) + len(plan.Commit.Removes); n != 0 {
		t.Fatalf("%d files are added or removed", n)
	}
	if _, err := merge.Commit(t.Context(), store, plan); err != nil {
		t.Fatal(err)
	}
	// the newer sequence is remembered: what lies between changes nothing
	plan, err = prepare(t, store, target, 3, one(target, 1, 4, "late"))
	if err != nil || len(plan.Commit.Adds) != 0 {
		t.Fatalf("a late event below what is remembered adds files (%v)", err)
	}
}

func TestForeignChangesAreRefused(t *testing.T) {
	t.Parallel()
	store, target := memstore.New(), target(shape{})
	mustApply(t, store, target, 1, one(target, 1, 1, "x"))
	table := delta.At(store, target.Root)
	snap, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remove := delta.RemoveOf(snap.Files()[0], clock(), true)
	if _, err := table.Commit(t.Context(), 0, delta.Commit{ID: uuid.NewString(), Operation: "DELETE", Removes: []delta.Remove{remove}}); err != nil {
		t.Fatal(err)
	}
	_, err = prepare(t, store, target, 2, one(target, 2, 1, "y"))
	foreign, ok := errors.AsType[*merge.ForeignChangeError](err)
	if !ok || foreign.Version != 1 || foreign.Operation != "DELETE" {
		t.Fatalf("got %v, want a foreign change of version 1", err)
	}
}

// deleteAll commits the removal of every row, as another engine does it, and gives its version.
func deleteAll(t *testing.T, table delta.Table) int64 {
	t.Helper()
	snap, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := delta.Commit{ID: uuid.NewString(), Operation: "DELETE"}
	for _, add := range snap.Files() {
		c.Removes = append(c.Removes, delta.RemoveOf(add, clock(), true))
	}
	version, err := table.Commit(t.Context(), snap.Version(), c)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// TestRestoredTableIsGoneOnWith follows the advice of the refusal: the rows are those of the state again.
func TestRestoredTableIsGoneOnWith(t *testing.T) {
	t.Parallel()
	store, target := memstore.New(), target(shape{})
	mustApply(t, store, target, 1, one(target, 1, 1, "x"))
	table := delta.At(store, target.Root)
	before, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	deleted := deleteAll(t, table)
	_, err = prepare(t, store, target, 2, one(target, 2, 1, "y"))
	if err == nil || !strings.Contains(err.Error(), "restore version 0") {
		t.Fatalf("got %v, want the version to restore", err)
	}
	restore := delta.Commit{ID: uuid.NewString(), Operation: "RESTORE", Adds: before.Files()}
	restored, err := table.Commit(t.Context(), deleted, restore)
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, store, target, 2, one(target, 2, 1, "y"))

	// what comes after a restored version is looked at like anything else
	again := deleteAll(t, table)
	_, err = prepare(t, store, target, 3, one(target, 3, 1, "z"))
	foreign, ok := errors.AsType[*merge.ForeignChangeError](err)
	if !ok || foreign.Version != again || foreign.Ours != restored+1 {
		t.Fatalf("got %v, want a foreign change of version %d", err, again)
	}
}

// TestCommitsThatAreCleanedUpAreJudgedByTheRows takes the commits away that came after varve's own, as log cleanup does.
func TestCommitsThatAreCleanedUpAreJudgedByTheRows(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, delta.Table) int64{
		"no rows changed": func(t *testing.T, table delta.Table) int64 {
			t.Helper()
			version, err := table.Commit(t.Context(), 0, delta.Commit{ID: uuid.NewString(), Operation: "VACUUM START"})
			if err != nil {
				t.Fatal(err)
			}
			return version
		},
		"rows deleted": deleteAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, target := memstore.New(), target(shape{})
			mustApply(t, store, target, 1, one(target, 1, 1, "x"))
			table := delta.At(store, target.Root)
			version := change(t, table)
			if err := table.Checkpoint(t.Context(), version); err != nil {
				t.Fatal(err)
			}
			for v := range version + 1 {
				if err := store.Delete(t.Context(), fmt.Sprintf("%s/_delta_log/%020d.json", target.Root, v)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := prepare(t, store, target, 2, one(target, 2, 1, "y"))
			if _, foreign := errors.AsType[*merge.ForeignChangeError](err); foreign != (name == "rows deleted") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestTablesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	store, target := memstore.New(), target(shape{})
	metadata, protocol := delta.NewMetadata(target.Schema, nil, nil), delta.MinProtocol(target.Schema)
	c := delta.Commit{ID: uuid.NewString(), Operation: "CREATE TABLE", Metadata: &metadata, Protocol: &protocol}
	if _, err := delta.At(store, target.Root).Commit(t.Context(), -1, c); err != nil {
		t.Fatal(err)
	}
	_, err := prepare(t, store, target, 1, one(target, 1, 1, "x"))
	if _, ok := errors.AsType[*merge.NotOursError](err); !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
}

func TestFilesWithoutSequencesAreRefused(t *testing.T) {
	t.Parallel()
	store, target := memstore.New(), target(shape{})
	mustApply(t, store, target, 1, one(target, 1, 1, "x"))
	table := delta.At(store, target.Root)
	snap, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	add, err := table.WriteFile(t.Context(), delta.FileOptions{Schema: target.Schema}, snap.Scan(t.Context(), nil))
	if err != nil {
		t.Fatal(err)
	}
	add.DataChange = false
	c := delta.Commit{ID: uuid.NewString(), Operation: "OPTIMIZE", Adds: []delta.Add{add}, Removes: []delta.Remove{delta.RemoveOf(snap.Files()[0], clock(), false)}}
	if _, err := table.Commit(t.Context(), 0, c); err != nil {
		t.Fatal(err)
	}
	_, err = prepare(t, store, target, 2, one(target, 1, 2, "y"))
	if _, ok := errors.AsType[*merge.SequenceError](err); !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
}

func TestNewColumnsComeAndOthersAreRefused(t *testing.T) {
	t.Parallel()
	store, base := memstore.New(), target(shape{})
	mustApply(t, store, base, 1, one(base, 1, 1, "x"))
	column := value.Field{Name: "c", Type: value.Type{Kind: value.Long}, Nullable: true}
	wider := target(shape{})
	wider.Schema = append(wider.Schema, column)
	wider.State.Columns = append(wider.State.Columns, column)
	wider.Spec.Columns = append(wider.Spec.Columns, scd.Column{Name: "c", Tracked: true})
	event := []merge.Event{{Key: value.Row{int64(2)}, Event: scd.Event{Seq: int64(1), Authored: wider.Spec.Author(map[string]value.Value{"c": int64(7)})}}}
	mustApply(t, store, wider, 2, event)
	snap, err := delta.At(store, base.Root).Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for row, err := range snap.Scan(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, value.KeyText(row))
	}
	slices.Sort(got)
	if want := []string{`[1,"x",null,null]`, `[2,null,null,7]`}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	// a column that came later is absent from the events before it, not null: an older event's value is inherited
	late := []merge.Event{{Key: value.Row{int64(1)}, Event: scd.Event{Seq: int64(0), Authored: wider.Spec.Author(map[string]value.Value{"c": int64(9)})}}}
	mustApply(t, store, wider, 3, late)
	if snap, err = delta.At(store, base.Root).Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	for row, err := range snap.Scan(t.Context(), nil) {
		if err != nil || value.Equal(row[0], int64(1)) && !value.Equal(row[3], int64(9)) {
			t.Fatalf("got %v (%v), want 9 in the last column of key 1", row, err)
		}
	}
	_, narrower := prepare(t, store, base, 4, one(base, 1, 2, "y"))
	other := target(shape{})
	other.Schema[1].Type = value.Type{Kind: value.Long}
	_, retyped := prepare(t, store, other, 4, nil)
	for i, err := range []error{narrower, retyped} {
		if _, ok := errors.AsType[*merge.DriftError](err); !ok {
			t.Errorf("case %d: got %v, want a refusal", i, err)
		}
	}
}

// number is a single upsert where column a is a number.
func number(target merge.Target, id, seq, n int64) []merge.Event {
	return []merge.Event{{Key: value.Row{id}, Event: scd.Event{
		Seq: seq, Authored: target.Spec.Author(map[string]value.Value{"a": n, "b": nil}),
	}}}
}

func TestWiderColumnRewritesEveryFileOnce(t *testing.T) {
	t.Parallel()
	store, base := memstore.New(), target(shape{})
	base.Schema[1].Type, base.State.Columns[0].Type = value.Type{Kind: value.Integer}, value.Type{Kind: value.Integer}
	mustApply(t, store, base, 1, number(base, 1, 1, 1))
	mustApply(t, store, base, 2, number(base, 2, 1, 2))
	wider := target(shape{})
	wider.Schema[1].Type, wider.State.Columns[0].Type = value.Type{Kind: value.Long}, value.Type{Kind: value.Long}
	mustApply(t, store, wider, 3, number(wider, 3, 1, 1<<40))
	snap, err := delta.At(store, base.Root).Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !snap.Schema()[1].Type.Equal(wider.Schema[1].Type) {
		t.Fatalf("column a is %s", snap.Schema()[1].Type)
	}
	var got []string
	for row, err := range snap.Scan(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, value.KeyText(row))
	}
	slices.Sort(got)
	if want := []string{`[1,1,null]`, `[2,2,null]`, `[3,1099511627776,null]`}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if n := len(snap.Files()); n != 1 {
		t.Fatalf("%d files, want all of them written anew as one", n)
	}
}

func TestRangesHoldWhatWasAdded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOf(rapid.Int64Range(1, 20)).Draw(t, "numbers")
		var r state.Ranges
		for _, n := range numbers {
			r = r.With(n)
		}
		for n := range int64(22) {
			if r.Has(n) != slices.Contains(numbers, n) {
				t.Fatalf("%v has %d: %t", r, n, r.Has(n))
			}
		}
		for i := 1; i < len(r); i++ {
			if r[i][0] <= r[i-1][1]+1 {
				t.Fatal(fmt.Sprint(r, " is not merged"))
			}
		}
	})
}
