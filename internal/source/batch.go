// Package source brings what came into bronze: it claims files as batches, keeps the decisions about batches and lands
// records whole, good or bad. It understands no record: internal/normalize does.
package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"varve/internal/format"
	"varve/internal/object"
)

// Format is the number of the format of batches and decisions. Newer ones are refused by name.
const Format = 1

// Batch is a claimed set of files. What a number means never changes.
type Batch struct {
	Format  int    `json:"format"`
	Number  int64  `json:"number"`
	Dataset string `json:"dataset"`
	// Day is the logical day, as 2026-09-14.
	Day string `json:"day"`
	// Attempt is random, so that two claims are never equal bytes.
	Attempt   string    `json:"attempt"`
	Files     []File    `json:"files"`
	ClaimedAt time.Time `json:"claimed_at"`
}

// File is one file of a batch.
type File struct {
	// Path is below the landing location, slash separated.
	Path string `json:"path"`
	Size int64  `json:"size"` // bytes
	// SHA256 is of the whole content, in lower-case hex.
	SHA256   string    `json:"sha256"`
	Modified time.Time `json:"modified"`
}

// Kind is what a decision says about its batch.
type Kind string

// The kinds of decisions.
const (
	SetAsideDecision   Kind = "set_aside"
	RejectedDecision   Kind = "rejected"
	Reopened           Kind = "reopened"
	SupersededDecision Kind = "superseded"
)

// Decision is one line of a batch's fate. The last one counts.
type Decision struct {
	Format int   `json:"format"`
	Batch  int64 `json:"batch"`
	// Number counts the decisions of a batch from 1.
	Number int    `json:"number"`
	Kind   Kind   `json:"kind"`
	Reason string `json:"reason"`
	// By names the run or the person that decided.
	By      string    `json:"by"`
	Attempt string    `json:"attempt"`
	At      time.Time `json:"at"`
}

// State is where a batch stands by its decisions.
type State string

// The states of a batch. Rejected and superseded are final.
const (
	Open       State = "open"
	SetAside   State = "set_aside"
	Rejected   State = "rejected"
	Superseded State = "superseded"
)

// Status is a batch with its decisions.
type Status struct {
	Batch     Batch
	State     State
	Decisions []Decision
}

// DecisionError refuses a decision about a batch whose fate is final, or that does not exist.
type DecisionError struct {
	Dataset string
	Batch   int64
	Kind    Kind
	State   State // empty where there is no such batch
}

// Error names the batch and why it cannot be decided about.
func (e *DecisionError) Error() string {
	if e.State == "" {
		return fmt.Sprintf("%s has no batch %d", e.Dataset, e.Batch)
	}
	return fmt.Sprintf("batch %d of %s is %s for ever: it cannot be %s", e.Batch, e.Dataset, e.State, e.Kind)
}

// Batches gives every batch of a dataset, in order of their numbers.
func Batches(ctx context.Context, warehouse object.Store, dataset string) ([]Status, error) {
	all := map[int64]*Status{}
	prefix := batchPrefix(dataset)
	decisions := map[int64][]Decision{}
	for info, err := range warehouse.List(ctx, prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("list batches of %s: %w", dataset, err)
		}
		number, decision, ok := parseName(strings.TrimPrefix(info.Key, prefix))
		if !ok {
			continue
		}
		if decision == 0 {
			var b Batch
			if err := load(ctx, warehouse, info.Key, &b); err != nil {
				return nil, err
			}
			all[number] = &Status{Batch: b}
			continue
		}
		var d Decision
		if err := load(ctx, warehouse, info.Key, &d); err != nil {
			return nil, err
		}
		decisions[number] = append(decisions[number], d)
	}
	out := make([]Status, 0, len(all))
	for _, number := range slices.Sorted(maps.Keys(all)) {
		s := all[number]
		s.Decisions = decisions[number]
		slices.SortFunc(s.Decisions, func(a, b Decision) int { return a.Number - b.Number })
		s.State = stateOf(s.Decisions)
		out = append(out, *s)
	}
	return out, nil
}

// Find reads one batch; object.ErrNotFound where there is none of that number.
func Find(ctx context.Context, warehouse object.Store, dataset string, number int64) (Batch, error) {
	var b Batch
	err := load(ctx, warehouse, batchKey(dataset, number), &b)
	return b, err
}

func stateOf(decisions []Decision) State {
	state := Open
	for _, d := range decisions {
		switch d.Kind {
		case SetAsideDecision:
			state = SetAside
		case RejectedDecision:
			state = Rejected
		case SupersededDecision:
			state = Superseded
		case Reopened:
			state = Open
		}
	}
	return state
}

func (k Kind) state() State {
	return stateOf([]Decision{{Kind: k}})
}

// Decide adds a decision to a batch. What the batch is already is not decided again.
func Decide(ctx context.Context, warehouse object.Store, dataset string, batch int64, kind Kind, reason, by string, now func() time.Time) error {
	d := Decision{Format: Format, Batch: batch, Kind: kind, Reason: reason, By: by, Attempt: uuid.NewString(), At: now().UTC()}
	for {
		made, err := decisionsOf(ctx, warehouse, dataset, batch)
		if err != nil {
			return err
		}
		state := stateOf(made)
		if state == kind.state() {
			return nil
		}
		if state == Rejected || state == Superseded {
			return &DecisionError{Dataset: dataset, Batch: batch, Kind: kind, State: state}
		}
		d.Number = len(made) + 1
		key := batchPrefix(dataset) + strconv.FormatInt(batch, 10) + ".decision." + strconv.Itoa(d.Number) + ".json"
		switch err := store(ctx, warehouse, key, d); {
		case errors.Is(err, object.ErrExists): // another decision was first: look again
		case err != nil:
			return fmt.Errorf("decide about batch %d of %s: %w", batch, dataset, err)
		default:
			return nil
		}
	}
}

func decisionsOf(ctx context.Context, warehouse object.Store, dataset string, batch int64) ([]Decision, error) {
	all, err := Batches(ctx, warehouse, dataset)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Batch.Number == batch {
			return s.Decisions, nil
		}
	}
	return nil, &DecisionError{Dataset: dataset, Batch: batch}
}

// Root is where the bronze table of a dataset lies in the warehouse.
func Root(dataset string) string { return "bronze/" + dataset }

func batchPrefix(dataset string) string { return Root(dataset) + "/_batches/" }

func batchKey(dataset string, number int64) string {
	return batchPrefix(dataset) + strconv.FormatInt(number, 10) + ".json"
}

// parseName understands 7.json (decision 0) and 7.decision.2.json.
func parseName(name string) (batch int64, decision int, ok bool) {
	name, ok = strings.CutSuffix(name, ".json")
	if !ok {
		return 0, 0, false
	}
	head, tail, isDecision := strings.Cut(name, ".decision.")
	batch, err := strconv.ParseInt(head, 10, 64)
	if err != nil || batch < 1 {
		return 0, 0, false
	}
	if isDecision {
		decision, err = strconv.Atoi(tail)
		return batch, decision, err == nil && decision > 0
	}
	return batch, 0, true
}

func load(ctx context.Context, s object.Store, key string, into any) error {
	body, err := s.Read(ctx, key, 0, -1)
	if err != nil {
		return fmt.Errorf("read %q: %w", key, err)
	}
	return format.Decode(key, body, Format, into)
}

func store(ctx context.Context, s object.Store, key string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %q: %w", key, err)
	}
	return s.PutIfAbsent(ctx, key, body)
}
