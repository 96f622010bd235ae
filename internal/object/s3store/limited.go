package s3store

import (
	"io"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// limited lets so many requests run at once as there are slots. A request has its slot until the body of its answer is
// closed, and none while the SDK waits before it sends it again. Nothing waits for a second slot while it has one.
type limited struct {
	inner aws.HTTPClient
	slots chan struct{}
}

func newLimited(inner aws.HTTPClient, n int) *limited {
	return &limited{inner: inner, slots: make(chan struct{}, n)}
}

// Do sends the request when there is a slot.
func (l *limited) Do(r *http.Request) (*http.Response, error) {
	select {
	case l.slots <- struct{}{}:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	free := sync.OnceFunc(func() { <-l.slots })
	answer, err := l.inner.Do(r)
	if err != nil || answer.Body == nil {
		free()
		return answer, err
	}
	answer.Body = &held{ReadCloser: answer.Body, free: free}
	return answer, nil
}

// held is a body that frees its request's slot when it is closed.
type held struct {
	io.ReadCloser
	free func()
}

// Close closes the body.
func (h *held) Close() error {
	defer h.free()
	return h.ReadCloser.Close()
}
