package s3store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"varve/internal/object"
)

const (
	// maxParts is how many parts an object may be written in. Amazon S3, multipart upload limits.
	maxParts = 10_000
	// maxPut is how many bytes one request may put. Amazon S3, multipart upload limits.
	maxPut = 5 << 30
	// abortTimeout is how long the removal of parts that became no object may take.
	abortTimeout = 30 * time.Second
)

// Put writes the object in one request, or in parts if it is larger than a part.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	if err := cmp.Or(object.CheckKey(key), s.writable()); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	if err := s.put(ctx, key, body, false); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	return nil
}

// PutIfAbsent puts under the condition that nothing has the key. It writes in parts only where the server has been found
// to heed the condition when an upload in parts is completed, else in one request.
func (s *Store) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := cmp.Or(object.CheckKey(key), s.writable()); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	if err := s.put(ctx, key, body, true); err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	return nil
}

func (s *Store) put(ctx context.Context, key string, body []byte, ifAbsent bool) error {
	inParts := false
	if int64(len(body)) > s.partBytes && !s.readOnly {
		var err error
		if inParts, err = s.inParts(ctx); err != nil {
			return err
		}
	}
	if !inParts && int64(len(body)) > maxPut {
		return fmt.Errorf("%d bytes are more than one request may put, and the server does not put in parts as this store needs it", len(body))
	}
	return s.settle(ctx, key, body, ifAbsent, inParts)
}

// settle sends the body until it is known what became of it. It waits between its tries: a server may say that the key is
// taken some time before it shows by what.
func (s *Store) settle(ctx context.Context, key string, body []byte, ifAbsent, inParts bool) error {
	send := s.putOnce
	if inParts {
		send = s.upload
	}
	for try := range s.attempts {
		if try > 0 {
			if err := pause(ctx, try); err != nil {
				return err
			}
		}
		err := send(ctx, key, body, ifAbsent)
		switch {
		case inParts && status(err) == http.StatusConflict && ctx.Err() == nil:
			continue // S3 wants the whole upload again. CompleteMultipartUpload, ConditionalRequestConflict
		case inParts && codeOf(err) == "NoSuchUpload": // completed by a request whose answer was lost, or removed by somebody
		case ifAbsent && status(err) == http.StatusPreconditionFailed:
		default:
			return mapped(err)
		}
		// The client resends a put whose answer was lost, and then finds its own object there.
		have, err := s.Read(ctx, key, 0, -1)
		switch {
		case err == nil && bytes.Equal(have, body):
			return nil
		case err == nil && ifAbsent:
			return object.ErrExists
		case err != nil && !errors.Is(err, object.ErrNotFound):
			return err
		}
	}
	return fmt.Errorf("%w: the key is taken and nothing is there, or parts are lost, in %d tries", object.ErrUnavailable, s.attempts)
}

// pause waits as long as the client does before it sends a request again.
func pause(ctx context.Context, try int) error {
	timer := time.NewTimer(backoff(try))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// putOnce puts in one request.
func (s *Store) putOnce(ctx context.Context, key string, body []byte, ifAbsent bool) error {
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: s.key(key), Body: bytes.NewReader(body), IfNoneMatch: condition(ifAbsent),
	})
	return err
}

func condition(ifAbsent bool) *string {
	if ifAbsent {
		return aws.String("*")
	}
	return nil
}

// upload puts in parts: nobody sees the object before the last request, which has the condition. After an error the parts
// are removed. A process that dies leaves them to the bucket's rule for incomplete uploads.
func (s *Store) upload(ctx context.Context, key string, body []byte, ifAbsent bool) (err error) {
	begun, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: s.key(key)})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = s.abort(ctx, key, begun.UploadId, err)
		}
	}()
	done, err := s.uploadParts(ctx, key, begun.UploadId, body)
	if err != nil {
		return err
	}
	_, err = s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &s.bucket, Key: s.key(key), UploadId: begun.UploadId, IfNoneMatch: condition(ifAbsent),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: done},
	}, func(o *s3.Options) { o.Retryer = newRetryer(s.attempts) }) // not after 409, which undid the upload
	return err
}

func (s *Store) uploadParts(ctx context.Context, key string, id *string, body []byte) ([]types.CompletedPart, error) {
	size := max(s.partBytes, int64(len(body)+maxParts-1)/maxParts)
	done := make([]types.CompletedPart, (int64(len(body))+size-1)/size)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i := range done {
		number := int32(i + 1) // at most maxParts
		part := body[int64(i)*size : min(int64(i+1)*size, int64(len(body)))]
		group.Go(func() error {
			out, err := s.client.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: &s.bucket, Key: s.key(key), UploadId: id, PartNumber: &number, Body: bytes.NewReader(part),
			})
			if err != nil {
				return err
			}
			done[i] = types.CompletedPart{
				PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32, ChecksumCRC32C: out.ChecksumCRC32C,
				ChecksumCRC64NVME: out.ChecksumCRC64NVME, ChecksumSHA1: out.ChecksumSHA1, ChecksumSHA256: out.ChecksumSHA256,
			}
			return nil
		})
	}
	return done, group.Wait()
}

// abort removes the parts of an upload that failed with cause, and gives the cause. Parts that stay cost room until the
// bucket's rule for incomplete uploads removes them, and do no other harm: a failure to remove them is only told.
func (s *Store) abort(ctx context.Context, key string, id *string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: s.key(key), UploadId: id})
	if err == nil || codeOf(err) == "NoSuchUpload" {
		return cause
	}
	return &leftover{cause: cause, abort: err}
}

// leftover is why an upload failed, and why its parts stay. Only the cause decides what callers do.
type leftover struct{ cause, abort error }

func (e *leftover) Error() string {
	return e.cause.Error() + " (the parts sent so far stay: " + e.abort.Error() + ")"
}

func (e *leftover) Unwrap() error { return e.cause }
