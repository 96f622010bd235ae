package s3store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"varve/internal/object"
)

// probeFolder holds the keys of probes, which live for a few requests.
const probeFolder = ".varve-probe/"

// probe puts two bodies to one key, each if absent: the second must be refused, and the first must be there after.
func (s *Store) probe(ctx context.Context) error {
	return s.try(ctx, false)
}

// parts is what is known of writing in parts.
type parts struct {
	turn  chan struct{} // has room for one: who finds out, and who reads the rest
	known bool
	heeds bool
}

func newParts() *parts {
	return &parts{turn: make(chan struct{}, 1)}
}

// inParts says whether the server can write in parts, and heeds the condition of a put when they become an object. It is
// found out by the first object that is large enough. A server that does not is given every object in one request: it has
// shown that it heeds the condition there.
func (s *Store) inParts(ctx context.Context) (bool, error) {
	select {
	case s.parts.turn <- struct{}{}:
		defer func() { <-s.parts.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if s.parts.known {
		return s.parts.heeds, nil
	}
	err := s.try(ctx, true)
	// A caller who may put and not in parts is denied here, and no more.
	if err != nil && !errors.Is(err, object.ErrNoPutIfAbsent) && !errors.Is(err, object.ErrDenied) {
		return false, fmt.Errorf("try an upload in parts: %w", err)
	}
	s.parts.known, s.parts.heeds = true, err == nil
	return s.parts.heeds, nil
}

// try puts two bodies to one key, each if absent, in one request or in parts.
func (s *Store) try(ctx context.Context, inParts bool) (err error) {
	key := probeFolder + rand.Text()
	err = s.settle(ctx, key, []byte("first"), true, inParts)
	switch status(err) {
	case http.StatusNotImplemented, http.StatusBadRequest, http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: it refuses the condition: %w", object.ErrNoPutIfAbsent, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.Delete(context.WithoutCancel(ctx), key))
	}()
	err = s.settle(ctx, key, []byte("second"), true, inParts)
	if err == nil {
		return fmt.Errorf("%w: it forgets the condition of a put and replaces what is there", object.ErrNoPutIfAbsent)
	}
	if !errors.Is(err, object.ErrExists) {
		return err
	}
	have, err := s.Read(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	if string(have) != "first" {
		return fmt.Errorf("%w: it refuses the second put, and keeps it", object.ErrNoPutIfAbsent)
	}
	return nil
}
