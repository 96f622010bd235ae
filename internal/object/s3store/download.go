package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"varve/internal/object"
)

// errReplaced says that a part is of another object than the first part was.
var errReplaced = errors.New("the object was replaced while it was read")

// Read gets the object, or a range of it, again where a body is cut short. What is larger than a part is read in parts at
// once, all of the same object.
func (s *Store) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := object.CheckKey(key); err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("read %q: negative offset %d", key, offset)
	}
	if length >= 0 && length <= s.partBytes {
		p, err := s.get(ctx, key, offset, length, "")
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", key, err)
		}
		return p.body, nil
	}
	var to memory
	if _, err := s.download(ctx, key, offset, length, &to); err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	return to.body, nil
}

// Download gets the whole object in parts at once, all of the same object.
func (s *Store) Download(ctx context.Context, key string, to object.Sink) (int64, error) {
	if err := object.CheckKey(key); err != nil {
		return 0, fmt.Errorf("read %q: %w", key, err)
	}
	n, err := s.download(ctx, key, 0, -1, to)
	if err != nil {
		return 0, fmt.Errorf("read %q: %w", key, err)
	}
	return n, nil
}

// memory is a sink that keeps what it takes.
type memory struct{ body []byte }

// Truncate makes room.
func (m *memory) Truncate(size int64) error {
	m.body = make([]byte, size)
	return nil
}

// WriteAt writes into the room made.
func (m *memory) WriteAt(b []byte, offset int64) (int, error) {
	return copy(m.body[offset:], b), nil
}

// download writes a range of the object, at the place 0 of the sink, and gives how many bytes it has.
func (s *Store) download(ctx context.Context, key string, offset, length int64, to object.Sink) (int64, error) {
	var n int64
	err := errReplaced
	for range maxTries {
		if n, err = s.downloadOnce(ctx, key, offset, length, to); !errors.Is(err, errReplaced) {
			return n, err
		}
	}
	return 0, fmt.Errorf("%w: %w, again and again", object.ErrUnavailable, err)
}

func (s *Store) downloadOnce(ctx context.Context, key string, offset, length int64, to object.Sink) (int64, error) {
	first, err := s.get(ctx, key, offset, s.partBytes, "")
	if err != nil {
		return 0, err
	}
	have, size := int64(len(first.body)), int64(len(first.body))
	if have == s.partBytes && first.total < 0 || first.total > offset+have && first.etag == "" {
		// Nothing tells whether other parts would be of the same object: one request is.
		if first, err = s.get(ctx, key, offset, length, ""); err != nil {
			return 0, err
		}
		have, size = int64(len(first.body)), int64(len(first.body))
	} else if first.total > offset+have {
		size = first.total - offset
		if length >= 0 {
			size = min(size, length)
		}
	}
	if err := to.Truncate(size); err != nil {
		return 0, err
	}
	if _, err := to.WriteAt(first.body, 0); err != nil {
		return 0, err
	}
	return size, s.rest(ctx, key, first, offset, have, size, to)
}

// rest writes what follows the first part: the bytes from have up to size of the range that begins at offset.
func (s *Store) rest(ctx context.Context, key string, first piece, offset, have, size int64, to object.Sink) error {
	first.body = nil
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	at := have
	for ; at < size && inner.Err() == nil; at += s.partBytes {
		at := at
		group.Go(func() error {
			want := min(s.partBytes, size-at)
			p, err := s.get(inner, key, offset+at, want, first.etag)
			if status(err) == http.StatusPreconditionFailed || errors.Is(err, object.ErrNotFound) {
				return errReplaced
			}
			if err != nil {
				return err
			}
			// A server may leave the condition unheeded: what it says of its answer must agree.
			if p.etag != first.etag || p.total != first.total || int64(len(p.body)) != want {
				return errReplaced
			}
			_, err = to.WriteAt(p.body, at)
			return err
		})
	}
	if err := group.Wait(); err != nil || at >= size {
		return err
	}
	return ctx.Err()
}

// piece is a range of an object, cut at the object's end.
type piece struct {
	body  []byte
	total int64  // bytes of the whole object, below 0 where the server does not say
	etag  string // "" where the server does not say
}

// get asks for a range, or up to the end with length < 0, again where the answer breaks off; match is the etag that the
// object must have, "" for any.
func (s *Store) get(ctx context.Context, key string, offset, length int64, match string) (p piece, err error) {
	for range maxTries {
		var cut bool
		if p, cut, err = s.getOnce(ctx, key, offset, length, match); !cut || ctx.Err() != nil {
			break
		}
	}
	return p, err
}

// getOnce makes one request; cut says that its answer broke off.
func (s *Store) getOnce(ctx context.Context, key string, offset, length int64, match string) (p piece, cut bool, err error) {
	if length == 0 { // no such range exists; and the answer to a HEAD does not say what it is that was not found
		p, cut, err = s.getOnce(ctx, key, 0, 1, match)
		p.body = []byte{}
		return p, cut, err
	}
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: s.key(key)}
	if offset > 0 || length > 0 {
		in.Range = aws.String(byteRange(offset, length))
	}
	if match != "" {
		in.IfMatch = &match
	}
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, err := s.client.GetObject(watched, in)
	if status(err) == http.StatusRequestedRangeNotSatisfiable {
		return piece{body: []byte{}, total: -1}, false, nil // the object ends before the range begins
	}
	if err != nil {
		return piece{}, false, mapped(err)
	}
	p = piece{total: -1, etag: aws.ToString(out.ETag)}
	p.body, err = readAll(out, newWatch(out.Body, s.answerTimeout, cancel))
	if stalled := context.Cause(watched); errors.Is(stalled, errStalled) {
		err = stalled
	}
	if err != nil {
		return piece{}, true, fmt.Errorf("%w: body cut short: %w", object.ErrUnavailable, err)
	}
	if in.Range == nil || out.ContentRange == nil { // a server may leave the range unheeded
		p.total = int64(len(p.body))
		p.body = p.body[min(offset, p.total):]
		if length >= 0 && length < int64(len(p.body)) {
			p.body = p.body[:length]
		}
		return p, false, nil
	}
	from, total := parseRange(*out.ContentRange)
	if from != offset {
		return piece{}, false, fmt.Errorf("the server answers %q to %q", *out.ContentRange, *in.Range)
	}
	p.total = total
	return p, false, nil
}

func byteRange(offset, length int64) string {
	r := "bytes=" + strconv.FormatInt(offset, 10) + "-"
	if last := offset + length - 1; length > 0 && last >= offset { // else it goes beyond every object
		r += strconv.FormatInt(last, 10)
	}
	return r
}

// parseRange reads "bytes 5-9/100": where the range begins, and the object's size; each -1 where it is not said. RFC 9110,
// Content-Range.
func parseRange(text string) (from, total int64) {
	text, _ = strings.CutPrefix(text, "bytes ")
	bounds, size, _ := strings.Cut(text, "/")
	first, _, _ := strings.Cut(bounds, "-")
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return -1 // "*"
		}
		return n
	}
	return number(first), number(size)
}

// errStalled says that the server began to answer, and then sent nothing for as long as it may take to begin.
var errStalled = errors.New("the server sends no more")

// watch is a body that ends its request when nothing comes for too long.
type watch struct {
	io.Reader
	limit time.Duration
	timer *time.Timer
}

func newWatch(body io.Reader, limit time.Duration, cancel context.CancelCauseFunc) *watch {
	return &watch{Reader: body, limit: limit, timer: time.AfterFunc(limit, func() { cancel(errStalled) })}
}

// Read reads from the body.
func (w *watch) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	w.timer.Reset(w.limit)
	return n, err
}

func readAll(out *s3.GetObjectOutput, from *watch) (body []byte, err error) {
	defer func() { err = errors.Join(err, out.Body.Close()) }()
	defer from.timer.Stop()
	if out.ContentLength == nil || *out.ContentLength < 0 {
		return io.ReadAll(from)
	}
	body = make([]byte, *out.ContentLength)
	_, err = io.ReadFull(from, body)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, from) // the end of the body is where its checksum is verified
	return body, err
}
