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

// modelAppID is the application id of the transaction by which a model's table names the text it was made by.
const modelAppID = "varve.model"

// Publish makes every model anew that reads a table of the run, or a model that it made anew, at the run's versions. A
// model whose rows stay the same gets no new version.
func (e *Engine) Publish(ctx context.Context, in PublishRequest) (Published, error) {
	e.progress(ctx, in.Run, "publish")
	all, err := models(ctx, e.Warehouse)
	if err != nil {
		return Published{}, err
	}
	order, err := e.order(ctx, all)
	if err != nil {
		return Published{}, err
	}
	versions := maps.Clone(in.Versions)
	if versions == nil {
		versions = map[string]int64{}
	}
	out := Published{Versions: map[string]int64{}}
	for _, m := range order {
		if !slices.ContainsFunc(m.reads, func(t string) bool { _, ok := versions[t]; return ok }) {
			continue
		}
		version, err := e.publish(ctx, m.Model, versions)
		if _, missing := errors.AsType[*NoTableError](err); missing {
			continue // a table it reads is not made yet: the run that makes it publishes the model
		}
		if err != nil {
			return Published{}, fmt.Errorf("publish %s: %w", m.Table, err)
		}
		versions[m.Table] = version
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

// order puts every model behind the models that it reads.
func (e *Engine) order(ctx context.Context, all []Model) ([]placed, error) {
	db, err := e.database()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	var rest, out []placed
	for _, m := range all {
		reads, err := db.Tables(ctx, m.SQL)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Table, err)
		}
		rest = append(rest, placed{Model: m, reads: reads})
	}
	for len(rest) > 0 {
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

// publish makes one model's table what its query gives, and tells the table's version.
func (e *Engine) publish(ctx context.Context, m Model, versions map[string]int64) (int64, error) {
	for range attempts {
		result, err := e.Query(ctx, m.SQL, versions)
		if err != nil {
			return 0, err
		}
		version, err := e.replace(ctx, m, result)
		if _, conflict := errors.AsType[*delta.ConflictError](err); !conflict {
			return version, err
		}
	}
	return 0, fmt.Errorf("other writers kept committing first, %d times: publish it again", attempts)
}

// replace commits rows as the whole content of a model's table, unless they are its content already.
func (e *Engine) replace(ctx context.Context, m Model, result *sql.Result) (int64, error) {
	t := delta.At(e.Warehouse, Root(m.Table))
	c := delta.Commit{
		ID: uuid.NewString(), Operation: "WRITE",
		Parameters: map[string]any{"mode": "Overwrite", "model": m.Number, "modelHash": m.Hash},
		Metrics:    map[string]string{"numOutputRows": strconv.Itoa(len(result.Rows))},
		ReadTxns:   []string{modelAppID},
	}
	read, number := int64(-1), int64(0)
	snap, err := t.Latest(ctx)
	switch {
	case errors.Is(err, delta.ErrNoTable):
		metadata := delta.NewMetadata(result.Schema, nil, nil)
		protocol := delta.MinProtocol(result.Schema)
		c.Metadata, c.Protocol = &metadata, &protocol
	case err != nil:
		return 0, err
	default:
		var ours bool
		if number, ours = snap.Txn(modelAppID); !ours {
			return 0, &merge.NotOursError{Table: m.Table}
		}
		read = snap.Version()
		same, err := sameContent(ctx, snap, result)
		if err != nil || same {
			return read, err
		}
		if !slices.EqualFunc(snap.Schema(), result.Schema, func(a, b value.Field) bool { return a.Name == b.Name && a.Type.Equal(b.Type) }) {
			metadata := snap.Metadata()
			metadata.Schema = result.Schema
			c.Metadata = &metadata
		}
		for _, add := range snap.Files() {
			c.Removes = append(c.Removes, delta.RemoveOf(add, e.Now(), true))
		}
	}
	c.Txns = []delta.Txn{{AppID: modelAppID, Version: number + 1, LastUpdated: e.Now().UnixMilli()}}
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

// sameContent says whether a table has exactly these columns and rows, in any order.
func sameContent(ctx context.Context, snap *delta.Snapshot, result *sql.Result) (bool, error) {
	same := slices.EqualFunc(snap.Schema(), result.Schema, func(a, b value.Field) bool { return a.Name == b.Name && a.Type.Equal(b.Type) })
	if !same {
		return false, nil
	}
	left := map[string]int{}
	for _, row := range result.Rows {
		left[value.KeyText(row)]++
	}
	for row, err := range snap.Scan(ctx, nil) {
		if err != nil {
			return false, err
		}
		left[value.KeyText(row)]--
	}
	for _, n := range left {
		if n != 0 {
			return false, nil
		}
	}
	return true, nil
}
