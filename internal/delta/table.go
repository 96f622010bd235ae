// Package delta is the Delta Lake protocol: the versions of a table in an object store, the rows of a version, and
// commits that make a new version of it. It does not know what tables mean, and it runs no queries.
package delta

import (
	"context"
	"time"

	"varve/internal/object"
)

// Table is a place in a store where a table is, or may come to be.
type Table struct {
	Store object.Store
	// Root is the table's folder; it may be empty.
	Root string
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// At is the table in a folder of a store.
func At(store object.Store, root string) Table {
	return Table{Store: store, Root: root}
}

// now asks the clock.
func (t Table) now() time.Time {
	if t.Now == nil {
		return time.Now() //nolint:forbidigo // the one default clock of this package
	}
	return t.Now()
}

// Latest reads the newest version.
func (t Table) Latest(ctx context.Context) (*Snapshot, error) {
	return t.snapshot(ctx, noVersion)
}

// Version reads one version.
func (t Table) Version(ctx context.Context, v int64) (*Snapshot, error) {
	if v < 0 {
		return nil, t.noVersion(v)
	}
	return t.snapshot(ctx, v)
}

// snapshot reads a version, or the newest one.
func (t Table) snapshot(ctx context.Context, version int64) (*Snapshot, error) {
	s, err := t.segment(ctx, version)
	if err != nil {
		return nil, err
	}
	return t.replay(ctx, s)
}
