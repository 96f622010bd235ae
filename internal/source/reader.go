package source

import (
	"context"
	"io"

	"varve/internal/object"
)

const readSize = 4 << 20 // bytes

// reader reads an object in order. It holds a context because io.Reader has no place for one.
type reader struct {
	ctx    context.Context //nolint:containedctx // an adapter to io.Reader
	store  object.Store
	key    string
	offset int64
	buffer []byte
	ended  bool
}

func newReader(ctx context.Context, s object.Store, key string) *reader {
	return &reader{ctx: ctx, store: s, key: key}
}

// Read gives the next bytes.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.buffer) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		body, err := r.store.Read(r.ctx, r.key, r.offset, readSize)
		if err != nil {
			return 0, err
		}
		r.buffer, r.offset, r.ended = body, r.offset+int64(len(body)), len(body) < readSize
	}
	n := copy(p, r.buffer)
	r.buffer = r.buffer[n:]
	return n, nil
}
