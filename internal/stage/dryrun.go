package stage

import (
	"context"
	"fmt"

	"varve/internal/merge"
	"varve/internal/object/overlay"
	"varve/internal/value"
	"varve/schemas"
)

// sampleRows is how many changed rows a dry run shows of a target.
const sampleRows = 10

// Forecast tells what a day would do to one target.
type Forecast struct {
	Target  string
	Schema  value.Schema
	Counts  map[string]int64
	Changes []merge.Change
}

// DryRun tells what a day would do, with these contracts published. Everything it writes goes to memory: the warehouse
// stays as it is.
func (e *Engine) DryRun(ctx context.Context, in DayRequest, contracts []schemas.Contract) (DayResult, []Forecast, error) {
	dry := e.On(overlay.New(e.Warehouse))
	out := DayResult{Counts: map[string]int64{}}
	for _, c := range contracts {
		if _, err := PublishContract(ctx, dry.Warehouse, c); err != nil {
			return out, nil, err
		}
	}
	pinned, err := dry.Pin(ctx, PinRequest{Dataset: in.Dataset, Contract: in.Contract})
	if err != nil {
		return out, nil, err
	}
	out.Run = Run{ID: in.Run, Dataset: in.Dataset, Day: in.Day, Contract: pinned.Contract}
	if out.Landed, err = dry.Land(ctx, LandRequest{Run: out.Run, Reopen: in.Reopen}); err != nil {
		return out, nil, err
	}
	out.Normalized, err = dry.Normalize(ctx, NormalizeRequest{Run: out.Run, Batches: out.Landed.Batches})
	if err != nil || out.Normalized.ChangeSet == "" {
		return out, nil, err
	}
	var forecasts []Forecast
	for _, name := range pinned.Targets {
		plan, err := dry.plan(ctx, PrepareRequest{Run: out.Run, ChangeSet: out.Normalized.ChangeSet, Target: name}, sampleRows)
		if err != nil {
			return out, nil, fmt.Errorf("prepare %s: %w", name, err)
		}
		f := Forecast{Target: name}
		if plan != nil {
			f.Schema, f.Counts, f.Changes = plan.Schema, plan.Counts, plan.Changes
		}
		forecasts = append(forecasts, f)
	}
	return out, forecasts, nil
}
