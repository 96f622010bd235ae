package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"varve/internal/columnar"
	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/sql"
	"varve/internal/value"
)

// Tables names every Delta table of the warehouse that has a name of the form layer.name, in order.
func Tables(ctx context.Context, store object.Store) ([]string, error) {
	const mark = "/_delta_log/"
	var names []string
	for info, err := range store.List(ctx, "", "") {
		if err != nil {
			return nil, fmt.Errorf("list tables: %w", err)
		}
		root, _, ok := strings.Cut(info.Key, mark)
		if layer, name, two := strings.Cut(root, "/"); ok && two && !strings.Contains(name, "/") && !strings.HasPrefix(layer, "_") {
			names = append(names, layer+"."+name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Maintainable names the tables that contracts and models maintain: all but evidence, quarantine and the ledger.
func Maintainable(ctx context.Context, store object.Store) ([]string, error) {
	names, err := Tables(ctx, store)
	return slices.DeleteFunc(names, func(name string) bool {
		layer, _, _ := strings.Cut(name, ".")
		return layer == "bronze" || layer == "quarantine" || layer == "ops"
	}), err
}

// Query answers a SQL query over the warehouse's tables, each by its name. versions pins tables to Delta versions; others
// are read at their newest. A table that does not exist is a *NoTableError.
func (e *Engine) Query(ctx context.Context, query string, versions map[string]int64) (*sql.Result, error) {
	db, err := e.database()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	names, err := db.Tables(ctx, query)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(e.Dir, "varve-query-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(dir)
	for _, name := range names {
		version, pinned := versions[name]
		if !pinned {
			version = -1
		}
		snap, err := e.Snapshot(ctx, name, version)
		if err != nil {
			return nil, err
		}
		parts, err := e.parts(ctx, Root(name), snap, dir)
		if err != nil {
			return nil, err
		}
		if err := db.View(ctx, name, parts, snap.Schema()); err != nil {
			return nil, fmt.Errorf("open table %s: %w", name, err)
		}
	}
	return db.Query(ctx, query)
}

// NoTableError says that the warehouse has no table of a name.
type NoTableError struct {
	Table string
	Known []string
}

func (e *NoTableError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no table %q; the warehouse has none yet: run a day first", e.Table)
	}
	return fmt.Sprintf("there is no table %q; there are %s", e.Table, strings.Join(e.Known, ", "))
}

// Snapshot opens a table by name; version < 0 means the newest.
func (e *Engine) Snapshot(ctx context.Context, table string, version int64) (*delta.Snapshot, error) {
	t := delta.At(e.Warehouse, Root(table))
	open := t.Latest
	if version >= 0 {
		open = func(ctx context.Context) (*delta.Snapshot, error) { return t.Version(ctx, version) }
	}
	snap, err := open(ctx)
	if errors.Is(err, delta.ErrNoTable) {
		known, listErr := Tables(ctx, e.Warehouse)
		return nil, errors.Join(&NoTableError{Table: table, Known: known}, listErr)
	}
	if err != nil {
		return nil, fmt.Errorf("open table %s: %w", table, err)
	}
	return snap, nil
}

// parts gives local Parquet files that hold the snapshot's rows. A file that is a plain part of an unpartitioned table is
// taken as it is, any other is read through Delta and written anew into dir.
func (e *Engine) parts(ctx context.Context, root string, snap *delta.Snapshot, dir string) ([]sql.Part, error) {
	plain := len(snap.Metadata().PartitionColumns) == 0 && snap.Metadata().Configuration["delta.columnMapping.mode"] == ""
	var parts []sql.Part
	for _, add := range snap.Files() {
		if plain && add.DeletionVector == nil {
			local, err := object.Local(ctx, e.Warehouse, path.Join(root, add.Path), dir)
			if err != nil {
				return nil, fmt.Errorf("fetch %q: %w", add.Path, err)
			}
			parts = append(parts, sql.Part{Path: local})
			continue
		}
		var body bytes.Buffer
		if _, err := columnar.Write(&body, nullable(snap.Schema()), snap.ReadFile(ctx, add, nil), columnar.WriteOptions{}); err != nil {
			return nil, fmt.Errorf("read %q: %w", add.Path, err)
		}
		local := filepath.Join(dir, uuid.NewString()+".parquet")
		if err := os.WriteFile(local, body.Bytes(), 0o600); err != nil {
			return nil, fmt.Errorf("fetch %q: %w", add.Path, err)
		}
		parts = append(parts, sql.Part{Path: local})
	}
	return parts, nil
}

func nullable(s value.Schema) value.Schema {
	out := slices.Clone(s)
	for i := range out {
		out[i].Nullable = true
	}
	return out
}
