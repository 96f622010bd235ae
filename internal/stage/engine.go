// Package stage is what varve does to a day, one plain function a stage: land, normalize, prepare, audit, commit, publish,
// record, and maintain on its own. Each makes present downstream what is open upstream; running one twice is a no-op, two
// at once is one winner. It knows nothing of who calls it or in which order.
package stage

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"varve/internal/object"
	"varve/internal/sql"
)

// Options are what an Engine works on.
type Options struct {
	// Warehouse holds everything varve writes.
	Warehouse object.Store
	// Landing holds what sources send; it is only read.
	Landing object.Store
	// Dir is a local directory for scratch. Default the system's temporary directory.
	Dir string
	// MemoryMiB bounds what DuckDB takes in one stage. Default 1024.
	MemoryMiB int
	// Now is the clock.
	Now func() time.Time
	// Log takes progress. Default discarded.
	Log *slog.Logger
}

// Engine runs stages. It is safe for concurrent use.
type Engine struct {
	Options
}

// New makes an engine.
func New(o Options) *Engine {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Engine{Options: o}
}

// On gives an engine like this one on another warehouse.
func (e *Engine) On(warehouse object.Store) *Engine {
	o := e.Options
	o.Warehouse = warehouse
	return New(o)
}

// database opens a DuckDB of its own for one stage.
func (e *Engine) database() (*sql.DB, error) {
	db, err := sql.Open(sql.Options{Dir: e.Dir, MemoryMiB: e.MemoryMiB})
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	return db, nil
}

// attempt names one try of one run, so that no two tries write under one name and upkeep knows whose scratch it is.
func attempt(run string) string { return run + "/" + uuid.NewString() }

// progressKey carries the function that WithProgress sets.
type progressKey struct{}

// WithProgress gives a context whose stages tell f how far they are, in words.
func WithProgress(ctx context.Context, f func(string)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// progress tells the caller how far a stage is, and the log.
func (e *Engine) progress(ctx context.Context, r Run, words string) {
	e.Log.InfoContext(ctx, "stage", slog.String("dataset", r.Dataset), slog.String("day", r.Day), slog.String("run", r.ID), slog.String("at", words))
	if f, ok := ctx.Value(progressKey{}).(func(string)); ok {
		f(words)
	}
}
