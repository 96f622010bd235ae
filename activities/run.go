package activities

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"varve/internal/stage"
)

// beats is how many heartbeats fit into the time after which the server gives an attempt up.
const beats = 5

// run is an activity: it sends heartbeats with the progress of the stage and classifies its error.
func run[In, Out any](ctx context.Context, in In, do func(context.Context, In) (Out, error)) (out Out, err error) {
	tried := tallyOf(ctx)
	defer func() { err = classify(tried, err) }()
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: debug.Stack()}
		}
	}()
	ctx, stop := heartbeats(ctx, tried)
	defer stop()
	return do(ctx, in)
}

// heartbeats tells the server that this attempt lives, with the last progress of the stage, until stop is called.
func heartbeats(ctx context.Context, t *tally) (context.Context, func()) {
	every := activity.GetInfo(ctx).HeartbeatTimeout / beats
	if every <= 0 {
		return ctx, func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				t.beat()
			}
		}
	})
	return stage.WithProgress(ctx, t.is), func() {
		close(done)
		wg.Wait()
	}
}

// panicError is a bug of a stage, kept from taking the worker down.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }
