package activities

import (
	"context"
	"maps"
	"sync"

	"go.temporal.io/sdk/activity"
)

// progress is what a heartbeat carries: the server shows it, keeps the last one, and gives it to the next attempt.
type progress struct {
	// At is how far the stage is, in words.
	At string `json:"at"`
	// Failed counts the failed attempts before, by family.
	Failed map[string]int `json:"failed,omitempty"`
}

// tally counts the failures of an activity by family over its attempts, so that one kind of trouble does not use up the
// patience for another. An attempt that ends without a word, as with its worker, counts for none.
type tally struct {
	mu     sync.Mutex
	ctx    context.Context //nolint:containedctx // the activity's, for its heartbeats
	at     string
	failed map[string]int
}

// tallyOf takes up the count where the attempt before left it.
func tallyOf(ctx context.Context) *tally {
	t := &tally{ctx: ctx, at: "started", failed: map[string]int{}}
	if activity.HasHeartbeatDetails(ctx) {
		var before progress
		if activity.GetHeartbeatDetails(ctx, &before) == nil { // what another version of varve left counts for nothing
			maps.Copy(t.failed, before.Failed)
		}
	}
	return t
}

// is notes how far the stage is.
func (t *tally) is(words string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = words
}

// beat sends a heartbeat.
func (t *tally) beat() {
	t.mu.Lock()
	now := progress{At: t.at, Failed: maps.Clone(t.failed)}
	t.mu.Unlock()
	activity.RecordHeartbeat(t.ctx, now)
}

// final counts a failure of a family and says whether it is the last that is met. Where it is not, the count goes out as a
// heartbeat, since that is all that an attempt can leave to the next.
func (t *tally) final(kind string) bool {
	most := attempts(kind)
	if most == 1 || most == always {
		return most == 1
	}
	t.mu.Lock()
	t.failed[kind]++
	last := t.failed[kind] >= most
	t.mu.Unlock()
	if !last {
		t.beat()
	}
	return last
}
