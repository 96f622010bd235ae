package s3store_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"varve/internal/object"
	"varve/internal/object/objecttest"
	"varve/internal/object/s3store"
)

// inParts is a body of two parts that says whose it is.
func inParts(whose string) []byte {
	return bytes.Repeat([]byte(whose+";"), leastPart/len(whose)+1)
}

// requests tells the requests that a proxy saw, as method and what is done in parts.
type requests struct {
	mu   sync.Mutex
	seen []string
}

func (q *requests) note(r *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seen = append(q.seen, action(r))
}

func (q *requests) count(name string) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.seen {
		if s == name {
			n++
		}
	}
	return n
}

// action names a request of the S3 protocol.
func action(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && query.Has("uploads"):
		return "create"
	case r.Method == http.MethodPost && query.Has("uploadId"):
		return "complete"
	case r.Method == http.MethodPut && query.Has("partNumber"):
		return "part"
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		return "abort"
	}
	return r.Method
}

// through gives a store that reaches a real server through a proxy that hands every request to meddle first, which tells
// whether it answered itself.
func through(t *testing.T, meddle func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool) *s3store.Store {
	t.Helper()
	s, on := disturbed(t, meddle, func(c *s3store.Config) { c.PartBytes = leastPart })
	on.Store(true)
	return s
}

func TestLargeObjectIsWrittenInPartsAndReadInParts(t *testing.T) {
	t.Parallel()
	var q requests
	s := through(t, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		q.note(r)
		return false
	})
	require.NoError(t, s.PutIfAbsent(t.Context(), "a", make([]byte, leastPart)))
	require.Zero(t, q.count("create"), "what fits in a part goes in one request")
	want := inParts("mine")
	require.NoError(t, s.PutIfAbsent(t.Context(), "b", want))
	require.Equal(t, 2+2, q.count("part"), "two of the probe, two of the object")
	require.Equal(t, 3, q.count("complete"))
	require.NoError(t, s.Put(t.Context(), "b", want))
	require.Equal(t, 2+2+2, q.count("part"), "the probe is made once")
	before := q.count(http.MethodGet)
	got, err := s.Read(t.Context(), "b", 0, -1)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
	require.Equal(t, 2, q.count(http.MethodGet)-before)
	for info, err := range s.List(t.Context(), "", "b") {
		require.NoError(t, err)
		t.Fatalf("the probe left %q", info.Key)
	}
}

func TestWritersInPartsHaveOneWinner(t *testing.T) {
	t.Parallel()
	server := objecttest.StartS3(t)
	c := server.Config()
	c.Bucket, c.PartBytes = server.NewBucket(t), leastPart
	s := open(t, c)
	errs := make([]error, 6)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = s.PutIfAbsent(t.Context(), "a/b", inParts(fmt.Sprintf("writer %d", i))) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, winner, "two winners")
			winner = i
			continue
		}
		require.ErrorIs(t, err, object.ErrExists)
	}
	require.NotEqual(t, -1, winner)
	body, err := s.Read(t.Context(), "a/b", 0, -1)
	require.NoError(t, err)
	require.True(t, bytes.Equal(inParts(fmt.Sprintf("writer %d", winner)), body))
}

// ofUpload lets meddle act on the first n requests of a name for the key a.
func ofUpload(n int64, name string, meddle func(w http.ResponseWriter, r *http.Request, forward http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if action(r) != name || !strings.HasSuffix(r.URL.Path, "/a") || seen.Add(1) > n {
			return false
		}
		meddle(w, r, forward)
		return true
	}
}

func TestCompletionWhoseAnswerIsLostIsOnesOwn(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*s3store.Store, context.Context, string, []byte) error{
		"PutIfAbsent": (*s3store.Store).PutIfAbsent, "Put": (*s3store.Store).Put,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := through(t, ofUpload(1, "complete", loseAnswer))
			require.NoError(t, write(s, t.Context(), "a", inParts("mine")))
			require.ErrorIs(t, s.PutIfAbsent(t.Context(), "a", inParts("theirs")), object.ErrExists)
			body, err := s.Read(t.Context(), "a", 0, -1)
			require.NoError(t, err)
			require.True(t, bytes.Equal(inParts("mine"), body))
		})
	}
}

func TestTroubleOfAnUploadIsRiddenOut(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(http.ResponseWriter, *http.Request, http.Handler) bool{
		"409 undoes the upload": ofUpload(2, "complete", refuse(http.StatusConflict, "ConditionalRequestConflict")),
		"503 of a part":         ofUpload(3, "part", refuse(http.StatusServiceUnavailable, "SlowDown")),
		"lost part":             ofUpload(2, "part", loseAnswer),
		"somebody removed it":   ofUpload(1, "complete", refuse(http.StatusNotFound, "NoSuchUpload")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := through(t, trouble)
			require.NoError(t, s.PutIfAbsent(t.Context(), "a", inParts("mine")))
			body, err := s.Read(t.Context(), "a", 0, -1)
			require.NoError(t, err)
			require.True(t, bytes.Equal(inParts("mine"), body))
		})
	}
}

func TestUploadThatFailsLeavesNoParts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"part": object.ErrDenied, "complete": object.ErrDenied, "cancelled": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			trouble := ofUpload(100, name, refuse(http.StatusForbidden, "AccessDenied"))
			if name == "cancelled" {
				trouble = ofUpload(1, "part", func(http.ResponseWriter, *http.Request, http.Handler) {
					cancel()
					panic(http.ErrAbortHandler)
				})
			}
			var created, aborted atomic.Int64
			s := through(t, func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
				if !strings.HasSuffix(r.URL.Path, "/a") {
					return false
				}
				switch action(r) {
				case "create":
					created.Add(1)
				case "abort":
					answer := httptest.NewRecorder()
					forward.ServeHTTP(answer, r)
					if answer.Code == http.StatusNoContent {
						aborted.Add(1)
					}
					w.WriteHeader(answer.Code)
					return true
				}
				return trouble(w, r, forward)
			})
			require.ErrorIs(t, s.PutIfAbsent(ctx, "a", inParts("mine")), want)
			require.Equal(t, int64(1), created.Load())
			require.Equal(t, int64(1), aborted.Load())
			_, err := s.Read(t.Context(), "a", 0, 0)
			require.ErrorIs(t, err, object.ErrNotFound)
		})
	}
}

// partial is a server that heeds the condition of a put, but not that of an upload in parts, or knows no parts at all.
type partial struct {
	forgetful
	noParts bool
	uploads map[string][]byte
}

func (p *partial) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := action(r)
	if (name == "create" || name == "part" || name == "complete") && p.noParts {
		refuse(http.StatusNotImplemented, "NotImplemented")(w, r, nil)
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.mu.Lock()
	_, there := p.objects[r.URL.Path]
	handled := true
	switch {
	case name == "create":
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			UploadId string
		}{UploadId: "one"})
	case name == "part":
		p.uploads[r.URL.Path] = append(p.uploads[r.URL.Path], body...)
		w.Header().Set("ETag", `"part"`)
	case name == "complete":
		p.objects[r.URL.Path] = p.uploads[r.URL.Path]
		delete(p.uploads, r.URL.Path)
		_, _ = io.WriteString(w, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
	case name == http.MethodPut && there && r.Header.Get("If-None-Match") == "*":
		refuse(http.StatusPreconditionFailed, "PreconditionFailed")(w, r, nil)
	default:
		handled = false
	}
	p.mu.Unlock()
	if !handled {
		p.forgetful.ServeHTTP(w, r)
	}
}

func TestServerThatForgetsTheConditionOfPartsIsGivenOneRequest(t *testing.T) {
	t.Parallel()
	for name, noParts := range map[string]bool{"forgets": false, "knows no parts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &partial{forgetful: forgetful{objects: map[string][]byte{}}, noParts: noParts, uploads: map[string][]byte{}}
			server := httptest.NewServer(p)
			t.Cleanup(server.Close)
			s := open(t, s3store.Config{
				Bucket: "b", Endpoint: server.URL, Region: "x", AccessKey: "A", SecretKey: "S", PathStyle: true, Attempts: 1,
				PartBytes: 8,
			})
			require.NoError(t, s.PutIfAbsent(t.Context(), "a", []byte("the first, in more than a part")))
			require.ErrorIs(t, s.PutIfAbsent(t.Context(), "a", []byte("the second, as large")), object.ErrExists)
			body, err := s.Read(t.Context(), "a", 0, -1)
			require.NoError(t, err)
			require.Equal(t, "the first, in more than a part", string(body))
			p.mu.Lock()
			defer p.mu.Unlock()
			require.Equal(t, []string{"/b/a"}, paths(p.objects), "the probes are removed")
		})
	}
}

func TestObjectReplacedBetweenItsPartsIsReadAnew(t *testing.T) {
	t.Parallel()
	old, fresh := inParts("old"), inParts("fresh")
	var s *s3store.Store
	var once sync.Once
	s = through(t, func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if r.Method != http.MethodGet || r.Header.Get("If-Match") == "" {
			return false
		}
		once.Do(func() {
			if err := s.Put(context.WithoutCancel(r.Context()), "a", fresh); err != nil {
				refuse(http.StatusBadRequest, err.Error())(w, r, forward)
			}
		})
		return false
	})
	require.NoError(t, s.Put(t.Context(), "a", old))
	got, err := s.Read(t.Context(), "a", 0, -1)
	require.NoError(t, err)
	require.True(t, bytes.Equal(fresh, got), "%d bytes", len(got))
}

func TestPartOfAnotherObjectIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]http.Header{
		"another etag": {"Etag": {`"other"`}}, "another size": {"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", leastPart, leastPart+2, leastPart+9)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := through(t, func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
				if r.Method != http.MethodGet || r.Header.Get("If-Match") == "" {
					return false
				}
				answer := httptest.NewRecorder()
				forward.ServeHTTP(answer, r)
				for _, name := range []string{"Etag", "Content-Range"} {
					w.Header().Set(name, answer.Header().Get(name))
				}
				for name := range header {
					w.Header().Set(name, header.Get(name))
				}
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(answer.Body.Bytes())
				return true
			})
			require.NoError(t, s.Put(t.Context(), "a", make([]byte, leastPart+3)))
			_, err := s.Read(t.Context(), "a", 0, -1)
			require.ErrorIs(t, err, object.ErrUnavailable)
			require.ErrorContains(t, err, "replaced while it was read")
		})
	}
}

func TestSoManyRequestsRunAtOnceAndNoMore(t *testing.T) {
	t.Parallel()
	const limit = 3
	var running, most atomic.Int64
	var once sync.Once
	full := make(chan struct{})
	s, on := disturbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == limit {
			once.Do(func() { close(full) })
		}
		select {
		case <-full:
		case <-r.Context().Done():
		}
		_, _ = w.Write(make([]byte, 100))
		return true
	}, func(c *s3store.Config) { c.Requests = limit })
	on.Store(true)
	var g errgroup.Group
	for range 12 * limit {
		g.Go(func() error {
			_, err := s.Read(t.Context(), "a", 0, 100)
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, int64(limit), most.Load())
}

func TestWaitForARequestsTurnHeedsTheContext(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	s, on := disturbed(t, times(1, http.MethodGet, func(http.ResponseWriter, *http.Request, http.Handler) {
		close(began)
		<-end
		panic(http.ErrAbortHandler)
	}), func(c *s3store.Config) { c.Requests = 1 })
	on.Store(true)
	held := make(chan error)
	go func() {
		_, err := s.Read(t.Context(), "a", 0, -1)
		held <- err
	}()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Read(ctx, "b", 0, -1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(end)
	require.ErrorIs(t, <-held, object.ErrNotFound, "asked again, when the turn is free")
}

func TestBodyThatStallsIsReadAgain(t *testing.T) {
	t.Parallel()
	stall := func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "01234")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	quick := func(c *s3store.Config) { c.AnswerTimeout = 100 * time.Millisecond }
	s, on := disturbed(t, times(1, http.MethodGet, stall), quick)
	require.NoError(t, s.Put(t.Context(), "a", []byte("0123456789")))
	on.Store(true)
	body, err := s.Read(t.Context(), "a", 0, -1)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(body))

	s, on = disturbed(t, times(100, http.MethodGet, stall), quick)
	on.Store(true)
	_, err = s.Read(t.Context(), "a", 0, -1)
	require.ErrorIs(t, err, object.ErrUnavailable)
	require.NotErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "sends no more")
}

// A body that comes slowly but comes is no trouble.
func TestSlowBodyIsWaitedFor(t *testing.T) {
	t.Parallel()
	const size = 20
	s, on := disturbed(t, times(1, http.MethodGet, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range size {
			<-tick.C
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
	}), func(c *s3store.Config) { c.AnswerTimeout = 150 * time.Millisecond })
	on.Store(true)
	body, err := s.Read(t.Context(), "a", 0, -1)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("x", size), string(body))
}
