package stage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"varve/internal/delta"
	"varve/internal/merge"
	"varve/internal/sql"
	"varve/internal/value"
)

// modelAppID is the application id of the transaction by which a model's table names the number of the text it was made by.
const modelAppID = "varve.model"

// Publish makes every model anew that reads a table of the run, or a model that it made anew, from the newest versions of
// what it reads: a late call gives what an early one gave. A model whose rows stay the same gets no new version.
func (e *Engine) Publish(ctx context.Context, in PublishRequest) (Published, error) {
	e.progress(ctx, in.Run, "publish")
	all, err := models(ctx, e.Warehouse)
	if err != nil {
		return Published{}, err
	}
	placed, err := e.place(ctx, all)
	if err != nil {
		return Published{}, err
	}
	order, err := order(reached(placed, slices.Collect(maps.Keys(in.Versions))))
	if err != nil {
		return Published{}, err
	}
	out := Published{Versions: map[string]int64{}}
	for _, m := range order {
		version, err := e.publish(ctx, m)
		if missing, ok := errors.AsType[*NoTableError](err); ok { // the run that makes it publishes the model
			out.Waiting = append(out.Waiting, fmt.Sprintf("%s waits for %s", m.Table, missing.Table))
			continue
		}
		if err != nil {
			return Published{}, fmt.Errorf("publish %s: %w", m.Table, err)
		}
		out.Versions[m.Table] = version
	}
	return out, nil
}

// placed is a model with the tables it reads.
type placed struct {
	Model
	reads []string
}

// CycleError says that models read each other.
type CycleError struct{ Tables []string }

func (e *CycleError) Error() string {
	return fmt.Sprintf("models read each other in a circle: %q; take one of them out of it", e.Tables)
}

// place finds out which tables models read.
func (e *Engine) place(ctx context.Context, all []Model) ([]placed, error) {
	db, err := e.database()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	out := make([]placed, len(all))
	for i, m := range all {
		reads, err := db.Tables(ctx, m.SQL)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Table, err)
		}
		out[i] = placed{Model: m, reads: reads}
	}
	return out, nil
}

// reached gives the models that read one of the tables, or a model that does.
func reached(all []placed, tables []string) []placed {
	var out []placed
	for rest := all; ; {
		var next []placed
		for _, m := range rest {
			if slices.ContainsFunc(m.reads, func(t string) bool { return slices.Contains(tables, t) }) {
				out = append(out, m)
				tables = append(tables, m.Table)
			} else {
				next = append(next, m)
			}
		}
		if len(next) == len(rest) {
			return out
		}
		rest = next
	}
}

// order puts every model behind the models that it reads.
func order(rest []placed) ([]placed, error) {
	var out []placed
	for rest = slices.Clone(rest); len(rest) > 0; {
		i := slices.IndexFunc(rest, func(m placed) bool {
			return !slices.ContainsFunc(rest, func(o placed) bool { return slices.Contains(m.reads, o.Table) })
		})
		if i < 0 {
			e := &CycleError{}
			for _, m := range rest {
				e.Tables = append(e.Tables, m.Table)
			}
			return nil, e
		}
		out = append(out, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return out, nil
}

// publish makes one model's table what its query gives, and tells the table's version. It looks again afterwards: what it
// read may have moved on while it worked, and whoever moved it may have found nothing to do.
func (e *Engine) publish(ctx context.Context, m placed) (int64, error) {
	for range attempts {
		inputs, err := e.versions(ctx, m.reads)
		if err != nil {
			return 0, err
		}
		result, err := e.Query(ctx, m.SQL, inputs)
		if err != nil {
			return 0, err
		}
		version, err := e.replace(ctx, m.Model, inputs, result)
		if _, conflict := errors.AsType[*delta.ConflictError](err); conflict {
			continue
		}
		if err != nil {
			return 0, err
		}
		now, err := e.versions(ctx, m.reads)
		if err != nil || maps.Equal(inputs, now) {
			return version, err
		}
	}
	return 0, fmt.Errorf("other writers kept committing first, %d times: publish it again", attempts)
}

// versions gives the newest versions of tables.
func (e *Engine) versions(ctx context.Context, tables []string) (map[string]int64, error) {
	out := make(map[string]int64, len(tables))
	for _, t := range tables {
		snap, err := e.Snapshot(ctx, t, -1)
		if err != nil {
			return nil, err
		}
		out[t] = snap.Version()
	}
	return out, nil
}

// replace commits rows as the whole content of a model's table, unless they are its content already.
func (e *Engine) replace(ctx context.Context, m Model, inputs map[string]int64, result *sql.Result) (int64, error) {
	t := delta.At(e.Warehouse, Root(m.Table))
	c := delta.Commit{
		ID: uuid.NewString(), Operation: "WRITE",
		Parameters: map[string]any{"mode": "Overwrite", "model": m.Number, "modelHash": m.Hash, "inputs": inputs},
		Metrics:    map[string]string{"numOutputRows": strconv.Itoa(len(result.Rows))},
		ReadTxns:   []string{modelAppID},
	}
	read := int64(-1)
	snap, err := t.Latest(ctx)
	switch {
	case errors.Is(err, delta.ErrNoTable):
		metadata := delta.NewMetadata(result.Schema, nil, nil)
		protocol := delta.MinProtocol(result.Schema)
		c.Metadata, c.Protocol = &metadata, &protocol
	case err != nil:
		return 0, err
	default:
		number, ours := snap.Txn(modelAppID)
		if !ours {
			return 0, &merge.NotOursError{Table: m.Table}
		}
		read = snap.Version()
		if number > m.Number {
			return read, nil // made by a newer text: this call is late
		}
		changes, err := difference(ctx, snap, result)
		if err != nil || changes == nil {
			return read, err
		}
		if !sameColumns(snap.Schema(), result.Schema) {
			metadata := snap.Metadata()
			metadata.Schema = result.Schema
			c.Metadata = &metadata
		}
		for _, add := range snap.Files() {
			c.Removes = append(c.Removes, delta.RemoveOf(add, e.Now(), true))
		}
		if snap.Metadata().HasChangeFeed() {
			if c.Changes, err = tellChanges(ctx, t, snap, result.Schema, changes); err != nil {
				return 0, err
			}
		}
	}
	c.Txns = []delta.Txn{{AppID: modelAppID, Version: m.Number, LastUpdated: e.Now().UnixMilli()}}
	if len(result.Rows) > 0 {
		add, err := t.WriteFile(ctx, delta.FileOptions{Schema: result.Schema}, func(yield func(value.Row, error) bool) {
			for _, row := range result.Rows {
				if !yield(row, nil) {
					return
				}
			}
		})
		if err != nil {
			return 0, err
		}
		c.Adds = append(c.Adds, add)
	}
	return t.Commit(ctx, read, c)
}

func sameColumns(a, b value.Schema) bool {
	return slices.EqualFunc(a, b, func(a, b value.Field) bool { return a.Name == b.Name && a.Type.Equal(b.Type) })
}

// difference gives the rows that a table has to lose and to gain to have exactly the result's, nil where it has them. Of a table
// with other columns it gives all rows of the result.
func difference(ctx context.Context, snap *delta.Snapshot, result *sql.Result) ([]delta.Change, error) {
	want := map[string]int{}
	for _, row := range result.Rows {
		want[value.KeyText(row)]++
	}
	var changes []delta.Change
	if sameColumns(snap.Schema(), result.Schema) {
		for row, err := range snap.Scan(ctx, nil) {
			if err != nil {
				return nil, err
			}
			text := value.KeyText(row)
			if want[text] == 0 {
				changes = append(changes, delta.Change{Type: delta.RowDeleted, Row: slices.Clone(row)})
				continue
			}
			want[text]--
		}
	} else {
		changes = []delta.Change{}
	}
	for _, row := range result.Rows {
		if text := value.KeyText(row); want[text] > 0 {
			want[text]--
			changes = append(changes, delta.Change{Type: delta.RowInserted, Row: row})
		}
	}
	return changes, nil
}

// tellChanges writes a change file for a model's table, which is written anew as a whole. Rows of other columns have no place
// in it.
func tellChanges(ctx context.Context, t delta.Table, snap *delta.Snapshot, schema value.Schema, changes []delta.Change) ([]delta.ChangeFile, error) {
	if !sameColumns(snap.Schema(), schema) {
		return nil, &delta.UnsupportedError{Table: t.Root, Feature: "other columns of a model whose table has a change data feed", Write: true}
	}
	file, err := t.WriteChanges(ctx, delta.FileOptions{Schema: schema}, func(yield func(delta.Change, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	})
	return []delta.ChangeFile{file}, err
}
