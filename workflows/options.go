package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// The bounds of waiting and of trying again that are not an activity's.
const (
	// maxConflicts is how often a target is prepared anew in one run because another writer changed it.
	maxConflicts = 10
	// laneIdle is how long a lane with nothing to do stays.
	laneIdle = time.Minute
	// laneQueue is how many requests a lane holds; its queue travels as one payload.
	laneQueue = 2000
	// laneTries is how many ids a lane tries for a day that somebody started by hand under its id.
	laneTries = 10
	// askAgain is how long someone waits for a day before asking anew, should the lane have lost the request.
	askAgain = 5 * time.Minute
	// backfillAhead is how many days a backfill has in the lane at once: others may come in between.
	backfillAhead = 2
	// backfillRun is how many days one run of a backfill does.
	backfillRun = 50
	// maxFailures is how many failed days a result names.
	maxFailures = 20
)

// work is a kind of activity, as far as its timeouts go.
type work int

const (
	// quick reads or writes a few small objects, with heartbeats.
	quick work = iota
	// question asks the Temporal service, without heartbeats.
	question
	// heavy works on a day's data, with heartbeats.
	heavy
)

// timeouts are an activity's bounds: attempt for one try, total for all of them, silence for how long a try may go without
// a heartbeat before another worker takes over.
type timeouts struct{ attempt, total, silence time.Duration }

// table has the timeouts of each kind of work.
func table(w work) timeouts {
	switch w {
	case heavy:
		return timeouts{attempt: 12 * time.Hour, total: 48 * time.Hour, silence: 5 * time.Second}
	case question:
		return timeouts{attempt: 15 * time.Second, total: 48 * time.Hour}
	default:
		return timeouts{attempt: 5 * time.Minute, total: 48 * time.Hour, silence: 5 * time.Second}
	}
}

// retries has one policy: failures of the data are not retryable by their type, those of the world are retried for as long
// as the total allows.
func retries() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second}
}

// under gives a context for an activity of a kind of work; about is what the UI shows beside its name.
func under(ctx workflow.Context, w work, about string) workflow.Context {
	t := table(w)
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: t.attempt, ScheduleToCloseTimeout: t.total, HeartbeatTimeout: t.silence,
		RetryPolicy: retries(), WaitForCancellation: true, Summary: about,
	})
}
