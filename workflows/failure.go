package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"varve/activities"
	"varve/internal/stage"
)

// What a failure is called that no activity named.
const (
	// Canceled is a run that a person ended.
	Canceled = "Canceled"
	// Terminated is a run that a person ended at once.
	Terminated = "Terminated"
	// TimedOut is a run whose time was up before it succeeded.
	TimedOut = "TimedOut"
)

// kindOf is the family of a failure, empty where there is none.
func kindOf(err error) string {
	if err == nil {
		return ""
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return app.Type()
	}
	if temporal.IsCanceledError(err) {
		return Canceled
	}
	if temporal.IsTerminatedError(err) {
		return Terminated
	}
	if temporal.IsTimeoutError(err) {
		return TimedOut
	}
	return activities.Internal
}

// reasonOf is a failure in words for a person, empty where there is none.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return app.Message()
	}
	if temporal.IsCanceledError(err) {
		return "canceled"
	}
	return err.Error()
}

// failureOf tells the status that the failure of a stage means, and turns it into the workflow's own, with the same type.
func failureOf(err error) (status string, failure error) {
	switch kind := kindOf(err); kind {
	case "":
		return stage.Succeeded, nil
	case Canceled:
		return stage.Failed, err
	case activities.ApprovalNeeded, activities.InvalidShare:
		return stage.SetAside, typed(kind, "%s", reasonOf(err))
	default:
		return stage.Failed, typed(kind, "%s", reasonOf(err))
	}
}

// short cuts a reason that stands beside others.
func short(reason string) string {
	const enough = 300
	if runes := []rune(reason); len(runes) > enough {
		return string(runes[:enough]) + " …"
	}
	return reason
}

func typed(kind, format string, args ...any) error {
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf(format, args...), kind, temporal.ApplicationErrorOptions{NonRetryable: true})
}
