package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// serviceError is an error of Temporal's client with its family.
type serviceError struct {
	kind string
	err  error
}

func (e *serviceError) Error() string { return e.err.Error() }

func (e *serviceError) Unwrap() error { return e.err }

// temporalError gives an error of Temporal's client its family: it heals by itself where the service was away, slow or busy;
// what the service refuses it refuses again. The rest may be a lane that ends just now, so it is tried a few times.
func temporalError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return &serviceError{kind: serviceFamily(err), err: err}
}

func serviceFamily(err error) string {
	switch {
	case is[*serviceerror.Unavailable](err), is[*serviceerror.DeadlineExceeded](err), is[*serviceerror.ResourceExhausted](err),
		is[*serviceerror.Aborted](err), is[*serviceerror.Canceled](err), is[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return TemporalUnavailable
	case is[*serviceerror.PermissionDenied](err):
		return PermissionDenied
	case is[*serviceerror.InvalidArgument](err):
		return InvalidInput
	case is[*serviceerror.NamespaceNotFound](err), is[*serviceerror.Unimplemented](err), is[*serviceerror.FailedPrecondition](err):
		return Refused
	default:
		return Internal
	}
}
