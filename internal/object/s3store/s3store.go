// Package s3store is a store in a bucket of Amazon S3, or of a server that speaks its protocol and puts if absent.
package s3store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"varve/internal/object"
)

// maxTries bounds how often a body cut short is asked for again, and a put that lost to an object which then went away.
const maxTries = 4

// Store is a bucket, or the keys of it below a prefix. Make one with Open.
type Store struct {
	client   *s3.Client
	bucket   string
	prefix   string // "" or ending in a slash
	readOnly bool   // puts and deletes are refused
}

// Open gives the store in a bucket, which must exist. It tries two conditional puts on a key of its own below the prefix,
// and refuses with object.ErrNoPutIfAbsent a server that forgets the condition. Where the caller may list but not write, the
// store is opened to be read. A ReadOnly store is only listed.
func Open(ctx context.Context, c Config) (*Store, error) {
	s, err := open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open bucket %q: %w", c.Bucket, err)
	}
	return s, nil
}

func open(ctx context.Context, c Config) (*Store, error) {
	if c.Bucket == "" {
		return nil, errors.New("bucket: empty")
	}
	prefix := strings.Trim(c.Prefix, "/")
	if prefix != "" {
		if err := object.CheckKey(prefix); err != nil {
			return nil, fmt.Errorf("prefix: %w", err)
		}
		prefix += "/"
	}
	client, err := newClient(ctx, c.WithDefaults())
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, bucket: c.Bucket, prefix: prefix, readOnly: c.ReadOnly}
	if s.readOnly {
		if err := s.lists(ctx); err != nil {
			return nil, err
		}
		return s, nil
	}
	err = s.probe(ctx)
	if errors.Is(err, object.ErrDenied) {
		// Only told apart by another call: may the caller not write here, or is it nobody at all?
		if s.lists(ctx) != nil {
			return nil, err
		}
		s.readOnly, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// lists says whether the caller may list the store.
func (s *Store) lists(ctx context.Context) error {
	for _, err := range s.list(ctx, "", "", 1) {
		return err
	}
	return nil
}

// writable says whether the store was opened to be written.
func (s *Store) writable() error {
	if s.readOnly {
		return fmt.Errorf("%w: the bucket was opened to be read", object.ErrDenied)
	}
	return nil
}

// Read gets the object, or a range of it, again where the body is cut short.
func (s *Store) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := object.CheckKey(key); err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("read %q: negative offset %d", key, offset)
	}
	var body []byte
	var err error
	for range maxTries {
		var cut bool
		if body, cut, err = s.get(ctx, key, offset, length); !cut || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	return body, nil
}

// get makes one request; cut says that its answer broke off.
func (s *Store) get(ctx context.Context, key string, offset, length int64) (body []byte, cut bool, err error) {
	if length == 0 { // no such range exists; and the answer to a HEAD does not say what it is that was not found
		_, cut, err = s.get(ctx, key, 0, 1)
		return []byte{}, cut, err
	}
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: s.key(key)}
	if offset > 0 || length > 0 {
		in.Range = aws.String(byteRange(offset, length))
	}
	out, err := s.client.GetObject(ctx, in)
	if status(err) == http.StatusRequestedRangeNotSatisfiable {
		return []byte{}, false, nil // the object ends before the range begins
	}
	if err != nil {
		return nil, false, mapped(err)
	}
	body, err = readAll(out)
	if err != nil {
		return nil, true, fmt.Errorf("%w: body cut short: %w", object.ErrUnavailable, err)
	}
	if in.Range != nil && out.ContentRange == nil { // a server may leave the range unheeded
		body = body[min(offset, int64(len(body))):]
		if length >= 0 && length < int64(len(body)) {
			body = body[:length]
		}
	}
	return body, false, nil
}

func byteRange(offset, length int64) string {
	r := "bytes=" + strconv.FormatInt(offset, 10) + "-"
	if last := offset + length - 1; length > 0 && last >= offset { // else it goes beyond every object
		r += strconv.FormatInt(last, 10)
	}
	return r
}

func readAll(out *s3.GetObjectOutput) (body []byte, err error) {
	defer func() { err = errors.Join(err, out.Body.Close()) }()
	if out.ContentLength == nil || *out.ContentLength < 0 {
		return io.ReadAll(out.Body)
	}
	body = make([]byte, *out.ContentLength)
	_, err = io.ReadFull(out.Body, body)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, out.Body) // the end of the body is where its checksum is verified
	return body, err
}

// Put writes the object in one request.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	if err := cmp.Or(object.CheckKey(key), s.writable()); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: s.key(key), Body: bytes.NewReader(body)})
	if err != nil {
		return fmt.Errorf("put %q: %w", key, mapped(err))
	}
	return nil
}

// PutIfAbsent puts under the condition that nothing has the key.
func (s *Store) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := cmp.Or(object.CheckKey(key), s.writable()); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	if err := s.putIfAbsent(ctx, key, body); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	return nil
}

func (s *Store) putIfAbsent(ctx context.Context, key string, body []byte) error {
	for range maxTries {
		_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.bucket, Key: s.key(key), Body: bytes.NewReader(body), IfNoneMatch: aws.String("*"),
		})
		if status(err) != http.StatusPreconditionFailed {
			return mapped(err)
		}
		// The client resends a put whose answer was lost, and then finds its own object there.
		have, err := s.Read(ctx, key, 0, -1)
		switch {
		case err == nil && bytes.Equal(have, body):
			return nil
		case err == nil:
			return object.ErrExists
		case !errors.Is(err, object.ErrNotFound):
			return err
		}
	}
	return fmt.Errorf("%w: it was there and gone, again and again", object.ErrUnavailable)
}

// List gives page after page.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		err := object.CheckPrefix(prefix)
		if err != nil {
			yield(object.Info{}, fmt.Errorf("list %q: %w", prefix, err))
			return
		}
		for info, err := range s.list(ctx, prefix, after, 0) {
			if err != nil {
				err = fmt.Errorf("list %q: %w", prefix, err)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// list asks for pages of a size, 0 for the server's own.
func (s *Store) list(ctx context.Context, prefix, after string, page int32) iter.Seq2[object.Info, error] {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.key(prefix)}
	if after != "" {
		in.StartAfter = s.key(after)
	}
	if page > 0 {
		in.MaxKeys = &page
	}
	return func(yield func(object.Info, error) bool) {
		last := after
		for pages := s3.NewListObjectsV2Paginator(s.client, in); pages.HasMorePages(); {
			out, err := pages.NextPage(ctx)
			if err != nil {
				yield(object.Info{}, mapped(err))
				return
			}
			for _, o := range out.Contents {
				key, ok := strings.CutPrefix(aws.ToString(o.Key), s.prefix)
				if !ok || key == "" || strings.HasSuffix(key, "/") {
					continue // what consoles make to show an empty folder
				}
				if key <= last { // deciding by such a listing what is the newest would lose data
					yield(object.Info{}, fmt.Errorf("the server lists out of order: %q after %q", key, last))
					return
				}
				last = key
				info := object.Info{Key: key, Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified)}
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

// Delete removes the object.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := cmp.Or(object.CheckKey(key), s.writable()); err != nil {
		return fmt.Errorf("delete %q: %w", key, err)
	}
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.key(key)})
	if err = mapped(err); err != nil && !errors.Is(err, object.ErrNotFound) {
		return fmt.Errorf("delete %q: %w", key, err)
	}
	return nil
}

// key is the key's name in the bucket.
func (s *Store) key(key string) *string {
	full := s.prefix + key
	return &full
}
