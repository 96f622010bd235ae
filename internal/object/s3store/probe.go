package s3store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"varve/internal/object"
)

// probeFolder holds the keys of probes, which live for two requests.
const probeFolder = ".varve-probe/"

// probe puts two bodies to one key, each if absent: the second must be refused, and the first must be there after.
func (s *Store) probe(ctx context.Context) (err error) {
	key := probeFolder + rand.Text()
	err = s.putIfAbsent(ctx, key, []byte("first"))
	if code := status(err); code == http.StatusNotImplemented || code == http.StatusBadRequest {
		return fmt.Errorf("%w: it refuses the condition: %w", object.ErrNoPutIfAbsent, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.Delete(context.WithoutCancel(ctx), key))
	}()
	err = s.putIfAbsent(ctx, key, []byte("second"))
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
