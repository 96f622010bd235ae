package activities

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"go.temporal.io/sdk/temporal"

	"varve/internal/columnar"
	"varve/internal/delta"
	"varve/internal/format"
	"varve/internal/merge"
	"varve/internal/normalize"
	"varve/internal/object"
	"varve/internal/quality"
	"varve/internal/source"
	"varve/internal/sql"
	"varve/internal/stage"
	"varve/internal/state"
	"varve/schemas"
)

// The families of failures. They are the types of the application errors that workflows, the UI and the CLI see; Go's
// types end here.
const (
	// InvalidInput is a workflow's or an activity's input that means nothing.
	InvalidInput = "InvalidInput"
	// Refused is something varve does not do, said by name.
	Refused = "Refused"
	// ApprovalNeeded is a batch set aside until a person decides.
	ApprovalNeeded = "ApprovalNeeded"
	// Conflict is a table that another writer changed since the commit was prepared.
	Conflict = "Conflict"
	// SourceMissing is a source that is not there.
	SourceMissing = "SourceMissing"
	// FileReplaced is a landed file that has other content now.
	FileReplaced = "FileReplaced"
	// ContractInvalid is a contract with problems.
	ContractInvalid = "ContractInvalid"
	// InvalidShare is a day with too large a share of records that do not convert.
	InvalidShare = "InvalidShare"
	// StoreUnavailable is a store that does not answer.
	StoreUnavailable = "StoreUnavailable"
	// DiskFull is a store or scratch directory without room.
	DiskFull = "DiskFull"
	// PermissionDenied is a store that refuses the caller.
	PermissionDenied = "PermissionDenied"
	// TemporalUnavailable is a Temporal service that does not answer.
	TemporalUnavailable = "TemporalUnavailable"
	// Interrupted is an attempt that its worker gave up, because it ends or the activity was canceled.
	Interrupted = "Interrupted"
	// Internal is everything else: a bug, or a failure nobody thought of.
	Internal = "Internal"
)

// always is more attempts than the retry policies of workflows allow the time for.
const always = 1 << 30

// attempts is how often a failure of a family is met before it is final, whatever else failed in between: once where the same
// data gives the same failure, a few times where a second try costs little, and as long as time is left where the world heals
// by itself.
func attempts(kind string) int {
	switch kind {
	case StoreUnavailable, TemporalUnavailable, Interrupted:
		return always
	case DiskFull, Internal:
		return 3
	default:
		return 1
	}
}

// advice is what a person can do about a family of failures whose errors come from below and do not say so.
func advice(kind string) string {
	switch kind {
	case DiskFull:
		return "; free some space, then run the day again"
	case PermissionDenied:
		return "; give the worker access to the store, then run the day again"
	default:
		return ""
	}
}

// familyOf finds the family of an error.
func familyOf(err error) string {
	if service, ok := errors.AsType[*serviceError](err); ok {
		return service.kind
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, object.ErrFull), errors.Is(err, syscall.ENOSPC):
		return DiskFull
	case errors.Is(err, object.ErrDenied), errors.Is(err, fs.ErrPermission):
		return PermissionDenied
	case errors.Is(err, object.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return StoreUnavailable
	case is[*delta.ConflictError](err):
		return Conflict
	case is[*quality.ApprovalNeededError](err), is[*stage.SetAsideError](err):
		return ApprovalNeeded
	case is[*normalize.InvalidShareError](err):
		return InvalidShare
	case is[*source.MissingError](err):
		return SourceMissing
	case is[*source.ReplacedError](err):
		return FileReplaced
	case is[*schemas.Problems](err), is[*stage.NoContractError](err), is[*sql.ExprError](err):
		return ContractInvalid
	case refused(err):
		return Refused
	default:
		return Internal
	}
}

// refused says whether the engine refuses something by name: a table, a format, a change that is not varve's to make.
func refused(err error) bool {
	table := is[*delta.UnsupportedError](err) || is[*delta.CorruptError](err) || is[*merge.ForeignChangeError](err) ||
		is[*merge.NotOursError](err) || is[*merge.DriftError](err) || is[*merge.SequenceError](err) || is[*quality.BrokenError](err)
	own := is[*format.Error](err) || is[*state.MissingError](err) || is[*source.LostError](err) || is[*columnar.TypeError](err)
	return table || own || is[*stage.CycleError](err) || is[*sql.QueryError](err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// classify turns an error of the engine into an application error of its family, final or not. tried remembers the failures
// of the attempts before.
func classify(tried *tally, err error) error {
	if err == nil {
		return nil
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return app
	}
	kind := familyOf(err)
	o := temporal.ApplicationErrorOptions{NonRetryable: tried.final(kind)}
	if kind == Interrupted {
		o.Cause = err // the SDK tells a canceled activity by it
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		o.Details = []any{string(p.stack)}
	}
	if attempts(kind) == 1 {
		o.Category = temporal.ApplicationErrorCategoryBenign
	}
	return temporal.NewApplicationErrorWithOptions(bounded(err.Error())+advice(kind), kind, o)
}

// bounded cuts a message to what a history may hold without harm.
func bounded(message string) string {
	const enough = 8 << 10
	if len(message) > enough {
		return strings.ToValidUTF8(message[:enough], "") + " …"
	}
	return message
}
