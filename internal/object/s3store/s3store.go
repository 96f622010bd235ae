// Package s3store is a store in a bucket of Amazon S3, or of a server that speaks its protocol and puts if absent.
package s3store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"varve/internal/object"
)

const (
	// maxTries bounds how often a body cut short is asked for again, and a read begins anew of an object that was replaced
	// meanwhile.
	maxTries = 4
	// partsAtOnce is how many parts of one object are on their way at once, and so in memory.
	partsAtOnce = 4
)

// Store is a bucket, or the keys of it below a prefix. Make one with Open.
type Store struct {
	client        *s3.Client
	bucket        string
	prefix        string // "" or ending in a slash
	partBytes     int64
	attempts      int
	answerTimeout time.Duration
	readOnly      bool // puts and deletes are refused
	parts         *parts
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
	if err := c.Validate(); err != nil {
		return nil, err
	}
	prefix := strings.Trim(c.Prefix, "/")
	if prefix != "" {
		if err := object.CheckKey(prefix); err != nil {
			return nil, fmt.Errorf("prefix: %w", err)
		}
		prefix += "/"
	}
	c = c.WithDefaults()
	client, err := newClient(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Store{
		client: client, bucket: c.Bucket, prefix: prefix, partBytes: c.PartBytes, attempts: c.Attempts,
		answerTimeout: c.AnswerTimeout, parts: newParts(), readOnly: c.ReadOnly,
	}
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
