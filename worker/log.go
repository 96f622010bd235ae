package worker

import (
	"context"
	"log/slog"
)

// quiet lets through what Temporal's client warns of; what it tells besides is its own business.
type quiet struct{ slog.Handler }

// Enabled says whether a level is worth a line.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the bound.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup keeps the bound.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
