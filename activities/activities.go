// Package activities makes each stage a retryable activity: a request goes to the engine, heartbeats carry its progress,
// and its error comes back with the name of its family. It decides neither what happens in which order nor how often
// something is tried again; workflows does.
package activities

import (
	"context"

	"go.temporal.io/sdk/client"

	"varve/internal/stage"
)

// Engine is what the activities do their work with: the stages as plain functions. Every call is safe to run twice, late
// and beside itself.
type Engine interface {
	reader
	changer
	keeper
}

type reader interface {
	Pin(ctx context.Context, in stage.PinRequest) (stage.Pinned, error)
	Land(ctx context.Context, in stage.LandRequest) (stage.Landed, error)
	Normalize(ctx context.Context, in stage.NormalizeRequest) (stage.Normalized, error)
}

type changer interface {
	Prepare(ctx context.Context, in stage.PrepareRequest) (stage.Prepared, error)
	Audit(ctx context.Context, in stage.AuditRequest) (stage.Audited, error)
	Commit(ctx context.Context, in stage.CommitRequest) (stage.Committed, error)
	Publish(ctx context.Context, in stage.PublishRequest) (stage.Published, error)
}

type keeper interface {
	Record(ctx context.Context, in stage.RecordRequest) (stage.Recorded, error)
	Maintain(ctx context.Context, in stage.MaintainRequest) (stage.Maintained, error)
	Pending(ctx context.Context, in stage.PendingRequest) (stage.Pending, error)
}

// Activities are the activities of a worker, one a method; a method's name is the activity's.
type Activities struct {
	engine Engine
	client client.Client
}

// New gives the activities that work with engine and reach lanes and schedules through c.
func New(engine Engine, c client.Client) *Activities {
	return &Activities{engine: engine, client: c}
}

// Pin finds the contract that a run uses from its first stage to its last.
func (a *Activities) Pin(ctx context.Context, in stage.PinRequest) (stage.Pinned, error) {
	return run(ctx, in, a.engine.Pin)
}

// Land claims the new files of a day and brings every claimed batch into bronze.
func (a *Activities) Land(ctx context.Context, in stage.LandRequest) (stage.Landed, error) {
	return run(ctx, in, a.engine.Land)
}

// Normalize makes the change set of open batches.
func (a *Activities) Normalize(ctx context.Context, in stage.NormalizeRequest) (stage.Normalized, error) {
	return run(ctx, in, a.engine.Normalize)
}

// Prepare writes the new files of one target; nobody sees them yet.
func (a *Activities) Prepare(ctx context.Context, in stage.PrepareRequest) (stage.Prepared, error) {
	return run(ctx, in, a.engine.Prepare)
}

// Audit says whether prepared commits may become visible.
func (a *Activities) Audit(ctx context.Context, in stage.AuditRequest) (stage.Audited, error) {
	return run(ctx, in, a.engine.Audit)
}

// Commit makes one prepared commit visible.
func (a *Activities) Commit(ctx context.Context, in stage.CommitRequest) (stage.Committed, error) {
	return run(ctx, in, a.engine.Commit)
}

// Publish runs the models over the versions that a run made.
func (a *Activities) Publish(ctx context.Context, in stage.PublishRequest) (stage.Published, error) {
	return run(ctx, in, a.engine.Publish)
}

// Record writes a run's row of the ledger.
func (a *Activities) Record(ctx context.Context, in stage.RecordRequest) (stage.Recorded, error) {
	return run(ctx, in, a.engine.Record)
}

// Maintain does the upkeep of a dataset's tables.
func (a *Activities) Maintain(ctx context.Context, in stage.MaintainRequest) (stage.Maintained, error) {
	return run(ctx, in, a.engine.Maintain)
}

// Pending lists the days that should be done and are not.
func (a *Activities) Pending(ctx context.Context, in stage.PendingRequest) (stage.Pending, error) {
	return run(ctx, in, a.engine.Pending)
}
