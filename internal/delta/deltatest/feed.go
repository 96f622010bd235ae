// Package deltatest holds what tests of several packages claim of Delta tables.
package deltatest

import (
	"context"
	"maps"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"varve/internal/delta"
	"varve/internal/value"
)

// T is a test, or one of the many of a property.
type T interface {
	rapid.TB
	Context() context.Context
}

// TurnOnFeed turns a table's change data feed on, as other engines do, and gives the version from which it is.
func TurnOnFeed(t T, table delta.Table) int64 {
	t.Helper()
	snap, err := table.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	metadata := snap.Metadata()
	metadata.Configuration = maps.Clone(metadata.Configuration)
	metadata.Configuration["delta.enableChangeDataFeed"] = "true"
	protocol := snap.Protocol()
	if protocol.MinWriterVersion < 7 {
		protocol.MinWriterVersion, protocol.WriterFeatures = 7, []string{"appendOnly", "invariants"}
	}
	protocol.WriterFeatures = append(protocol.WriterFeatures, "changeDataFeed")
	version, err := table.Commit(t.Context(), snap.Version(), delta.Commit{
		ID: uuid.NewString(), Operation: "SET TBLPROPERTIES", Metadata: &metadata, Protocol: &protocol,
	})
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// RequireFeed claims that the changes of each version lead from the rows before it to those after it, and that no row is in
// them that stays as it is. It gives how many changes of each type there are.
func RequireFeed(t T, table delta.Table, from int64) map[delta.ChangeType]int {
	t.Helper()
	feed, err := table.Changes(t.Context(), from, -1)
	if err != nil {
		t.Fatal(err)
	}
	_, to := feed.Range()
	gone, come := map[int64]map[string]int{}, map[int64]map[string]int{}
	types := map[delta.ChangeType]int{}
	for c, err := range feed.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		types[c.Type]++
		side := come
		if c.Type == delta.RowDeleted || c.Type == delta.RowBefore {
			side = gone
		}
		if side[c.Version] == nil {
			side[c.Version] = map[string]int{}
		}
		side[c.Version][value.KeyText(c.Row)]++
	}
	if types[delta.RowBefore] != types[delta.RowAfter] {
		t.Fatalf("%s: updates have two rows each: %v", table.Root, types)
	}
	for v := from; v <= to; v++ {
		rows := rowsAt(t, table, v-1, len(feed.Schema()))
		for text, n := range gone[v] {
			if come[v][text] > 0 {
				t.Fatalf("%s, version %d: an unchanged row is in the feed", table.Root, v)
			}
			rows[text] -= n
		}
		for text, n := range come[v] {
			rows[text] += n
		}
		maps.DeleteFunc(rows, func(_ string, n int) bool { return n == 0 })
		if want := rowsAt(t, table, v, len(feed.Schema())); !maps.Equal(rows, want) {
			t.Fatalf("%s, version %d: the changes lead to\n%v, the rows are\n%v", table.Root, v, rows, want)
		}
	}
	return types
}

// rowsAt counts the rows of a version by their text. Columns that the version lacks are null.
func rowsAt(t T, table delta.Table, version int64, columns int) map[string]int {
	t.Helper()
	snap, err := table.Version(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for row, err := range snap.Scan(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		full := make(value.Row, columns)
		copy(full, row)
		out[value.KeyText(full)]++
	}
	return out
}
