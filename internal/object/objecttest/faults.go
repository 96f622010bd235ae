package objecttest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"varve/internal/object"
)

// ErrDead is what every operation gives after the one at which DieAt let the process die.
var ErrDead = errors.New("objecttest: the process is dead")

// Faults is a store that counts the operations on another and lets one of them fail. A crash test runs a job once to
// count, then again for each operation and moment, and once more without faults:
//
//	for n := 1; n <= count; n++ { faults.DieAt(n, after); job(faults); faults.Reset(); job(faults) }
//
// It never shows the local paths of the store inside, so that no read passes it by.
type Faults struct {
	inner object.Store

	mu    sync.Mutex
	trace []string
	at    int // the operation that fails, counted from 1; 0 for none
	after bool
	err   error
	dies  bool
}

// NewFaults gives a store that does what inner does until it is told to fail.
func NewFaults(inner object.Store) *Faults {
	return &Faults{inner: inner}
}

// FailAt lets the n-th operation, counted from 1 since the start or Reset, fail with object.ErrUnavailable: before it took
// effect, or after.
func (f *Faults) FailAt(n int, after bool) {
	f.FailWith(n, after, object.ErrUnavailable)
}

// FailWith is FailAt with an error of one's choice.
func (f *Faults) FailWith(n int, after bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.after, f.err, f.dies = n, after, err, false
}

// DieAt lets the n-th operation and all that follow fail with ErrDead, the n-th before it took effect or after, the others
// without effect.
func (f *Faults) DieAt(n int, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.after, f.err, f.dies = n, after, ErrDead, true
}

// Reset forgets all faults, and begins to count and trace anew.
func (f *Faults) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace, f.at, f.after, f.err, f.dies = nil, 0, false, nil, false
}

// Count is the number of operations so far. A listing is one, made when its first object is asked for.
func (f *Faults) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.trace)
}

// Trace gives the operations so far, each as name and key, such as `PutIfAbsent "_batches/7.json"`.
func (f *Faults) Trace() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.trace)
}

// step counts an operation and gives the errors that it shall fail with before and after its effect.
func (f *Faults) step(name, key string) (before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := fmt.Sprintf("%s %q", name, key)
	f.trace = append(f.trace, op)
	n := len(f.trace)
	if f.at == 0 || n < f.at || n > f.at && !f.dies {
		return nil, nil
	}
	err := fmt.Errorf("%s: fault: %w", op, f.err)
	if n == f.at && f.after {
		return nil, err
	}
	return err, nil
}

// Read reads, unless it is its turn to fail.
func (f *Faults) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	before, after := f.step("Read", key)
	if before != nil {
		return nil, before
	}
	body, err := f.inner.Read(ctx, key, offset, length)
	if after != nil {
		return nil, after
	}
	return body, err
}

// Put puts, unless it is its turn to fail.
func (f *Faults) Put(ctx context.Context, key string, body []byte) error {
	return f.do("Put", key, func() error { return f.inner.Put(ctx, key, body) })
}

// PutIfAbsent puts if absent, unless it is its turn to fail.
func (f *Faults) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	return f.do("PutIfAbsent", key, func() error { return f.inner.PutIfAbsent(ctx, key, body) })
}

// Delete deletes, unless it is its turn to fail.
func (f *Faults) Delete(ctx context.Context, key string) error {
	return f.do("Delete", key, func() error { return f.inner.Delete(ctx, key) })
}

func (f *Faults) do(name, key string, effect func() error) error {
	before, after := f.step(name, key)
	if before != nil {
		return before
	}
	err := effect()
	if after != nil {
		return after
	}
	return err
}

// List lists. Its turn to fail is before its first object, or after its last.
func (f *Faults) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		first, last := f.step("List", prefix)
		if first != nil {
			yield(object.Info{}, first)
			return
		}
		for info, err := range f.inner.List(ctx, prefix, after) {
			if !yield(info, err) || err != nil {
				return
			}
		}
		if last != nil {
			yield(object.Info{}, last)
		}
	}
}
