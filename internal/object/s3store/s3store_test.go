package s3store_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
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

// leastPart is the least that S3 takes as a part of an object.
const leastPart = 5 << 20

func TestObeysTheLawOfStores(t *testing.T) {
	t.Parallel()
	server := objecttest.StartS3(t)
	for name, change := range map[string]s3store.Config{
		"Bucket": {}, "PrefixInPartsOneRequestAtATime": {Prefix: "some/where", PartBytes: leastPart, Requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objecttest.Run(t, func(t *testing.T) object.Store {
				t.Helper()
				c := server.Config()
				c.Bucket, c.Prefix, c.PartBytes, c.Requests = server.NewBucket(t), change.Prefix, change.PartBytes, change.Requests
				return open(t, c)
			})
		})
	}
}

func open(t *testing.T, c s3store.Config) *s3store.Store {
	t.Helper()
	s, err := s3store.Open(t.Context(), c)
	require.NoError(t, err)
	return s
}

func TestListGoesOnAfterTheFirstPage(t *testing.T) {
	t.Parallel()
	server := objecttest.StartS3(t)
	c := server.Config()
	c.Bucket = server.NewBucket(t)
	s := open(t, c)
	const n = 1010
	var g errgroup.Group
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error { return s.Put(t.Context(), fmt.Sprintf("log/%06d.json", i), nil) })
	}
	require.NoError(t, g.Wait())
	count := func(after string) (count int) {
		for info, err := range s.List(t.Context(), "log/", after) {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("log/%06d.json", count+n-1010), info.Key[:15])
			count++
			if after != "" {
				break
			}
		}
		return count
	}
	require.Equal(t, n, count(""))
}

// disturbed gives a store that reaches a real server through a proxy, and the switch that makes the proxy do as meddle
// says; meddle tells whether it answered itself.
func disturbed(
	t *testing.T, meddle func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool, change ...func(*s3store.Config),
) (*s3store.Store, *atomic.Bool) {
	t.Helper()
	server := objecttest.StartS3(t)
	target, err := url.Parse(server.Endpoint)
	require.NoError(t, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // the signature covers it
	}}
	on := &atomic.Bool{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !on.Load() || !meddle(w, r, forward) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	c := server.Config()
	c.Endpoint, c.Bucket, c.Attempts = proxy.URL, server.NewBucket(t), 4
	for _, f := range change {
		f(&c)
	}
	return open(t, c), on
}

// times lets meddle act on the first n requests of a method.
func times(n int64, method string, meddle func(w http.ResponseWriter, r *http.Request, forward http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if r.Method != method || seen.Add(1) > n {
			return false
		}
		meddle(w, r, forward)
		return true
	}
}

func refuse(status int, code string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `<Error><Code>%s</Code><Message>so it is</Message></Error>`, code)
	}
}

func loseAnswer(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
	forward.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

func TestPutWhoseAnswerIsLostIsOnesOwn(t *testing.T) {
	t.Parallel()
	s, on := disturbed(t, times(1, http.MethodPut, loseAnswer))
	on.Store(true)
	require.NoError(t, s.PutIfAbsent(t.Context(), "a", []byte("mine")))
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "a", []byte("theirs")), object.ErrExists)
	body, err := s.Read(t.Context(), "a", 0, -1)
	require.NoError(t, err)
	require.Equal(t, "mine", string(body))
}

// TestKeyThatIsTakenBeforeItsObjectIsSeenIsWaitedFor has a server say that a key is taken while it does not show the object
// yet, as versitygw does between its writing of an object's metadata and of the object.
func TestKeyThatIsTakenBeforeItsObjectIsSeenIsWaitedFor(t *testing.T) {
	t.Parallel()
	hidden := refuse(http.StatusNotFound, "NoSuchKey")
	var asked atomic.Int64
	s, on := disturbed(t, times(5, http.MethodGet, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		asked.Add(1)
		hidden(w, r, forward)
	}), func(c *s3store.Config) { c.Attempts = 7 })
	require.NoError(t, s.PutIfAbsent(t.Context(), "a", []byte("theirs")))
	on.Store(true)
	start := time.Now()
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "a", []byte("mine")), object.ErrExists)
	require.EqualValues(t, 5, asked.Load())
	require.Greater(t, time.Since(start), 500*time.Millisecond, "it was asked again at once")
}

func TestPassingTroubleIsRiddenOut(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(http.ResponseWriter, *http.Request, http.Handler){
		"409": refuse(http.StatusConflict, "ConditionalRequestConflict"),
		"500": refuse(http.StatusInternalServerError, "InternalError"),
		"503": refuse(http.StatusServiceUnavailable, "SlowDown"),
		"cut": func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, on := disturbed(t, times(3, http.MethodPut, trouble))
			on.Store(true)
			require.NoError(t, s.PutIfAbsent(t.Context(), "a", []byte("x")))
			require.ErrorIs(t, s.PutIfAbsent(t.Context(), "a", []byte("y")), object.ErrExists)
		})
	}
}

func TestBodyCutShortIsReadAgain(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		panic(http.ErrAbortHandler)
	}
	want := bytes.Repeat([]byte("0123456789"), 1000)
	s, on := disturbed(t, times(2, http.MethodGet, cut))
	require.NoError(t, s.Put(t.Context(), "a", want))
	on.Store(true)
	got, err := s.Read(t.Context(), "a", 0, -1)
	require.NoError(t, err)
	require.Equal(t, want, got)

	s, on = disturbed(t, times(100, http.MethodGet, cut))
	require.NoError(t, s.Put(t.Context(), "a", want))
	on.Store(true)
	_, err = s.Read(t.Context(), "a", 0, -1)
	require.ErrorIs(t, err, object.ErrUnavailable)
}

func TestRangeThatTheServerLeavesUnheededIsCut(t *testing.T) {
	t.Parallel()
	s, on := disturbed(t, times(9, http.MethodGet, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		_, _ = io.WriteString(w, "0123456789")
	}))
	on.Store(true)
	body, err := s.Read(t.Context(), "a", 2, 3)
	require.NoError(t, err)
	require.Equal(t, "234", string(body))
	body, err = s.Read(t.Context(), "a", 20, -1)
	require.NoError(t, err)
	require.Empty(t, body)
}

func TestErrorsOfTheServerBecomeConditions(t *testing.T) {
	t.Parallel()
	for code, c := range map[string]struct {
		status int
		want   error
	}{
		"AccessDenied":        {http.StatusForbidden, object.ErrDenied},
		"InsufficientStorage": {http.StatusInsufficientStorage, object.ErrFull},
		"QuotaExceeded":       {http.StatusForbidden, object.ErrFull},
		"TooManyRequests":     {http.StatusTooManyRequests, object.ErrUnavailable},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s, on := disturbed(t, times(100, http.MethodPut, refuse(c.status, code)))
			on.Store(true)
			err := s.PutIfAbsent(t.Context(), "a/b", []byte("x"))
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, `put "a/b": object: `)
		})
	}
}

func TestSlowServerIsGivenUpAtTheDeadline(t *testing.T) {
	t.Parallel()
	s, on := disturbed(t, times(100, http.MethodGet, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		<-r.Context().Done()
	}))
	on.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Read(ctx, "a", 0, -1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestServerThatListsOutOfOrderIsNotBelieved(t *testing.T) {
	t.Parallel()
	const page = `<ListBucketResult><IsTruncated>false</IsTruncated>
<Contents><Key>b</Key><Size>1</Size></Contents><Contents><Key>a</Key><Size>1</Size></Contents></ListBucketResult>`
	s, on := disturbed(t, times(9, http.MethodGet, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		_, _ = io.WriteString(w, page)
	}))
	on.Store(true)
	var last error
	for _, err := range s.List(t.Context(), "", "") {
		last = err
	}
	require.ErrorContains(t, last, `out of order: "a" after "b"`)
}

func TestBucketWhereTheCallerMayNotWriteIsOpenedToBeRead(t *testing.T) {
	t.Parallel()
	server := objecttest.StartS3(t)
	target, err := url.Parse(server.Endpoint)
	require.NoError(t, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			refuse(http.StatusForbidden, "AccessDenied")(w, r, nil)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	c := server.Config()
	c.Bucket = server.NewBucket(t)
	require.NoError(t, open(t, c).Put(t.Context(), "a", []byte("x")))
	c.Endpoint = proxy.URL
	s := open(t, c)
	body, err := s.Read(t.Context(), "a", 0, -1)
	require.NoError(t, err)
	require.Equal(t, "x", string(body))
	require.ErrorIs(t, s.Put(t.Context(), "b", nil), object.ErrDenied)
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "b", nil), object.ErrDenied)
}

// watched gives the configuration of a new bucket behind a proxy that refuses what allow says no to, and the requests that
// came through, as method and path.
func watched(t *testing.T, allow func(r *http.Request) bool) (s3store.Config, func() []string) {
	t.Helper()
	server := objecttest.StartS3(t)
	target, err := url.Parse(server.Endpoint)
	require.NoError(t, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	var mu sync.Mutex
	var seen []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Method+" "+r.URL.Path)
		mu.Unlock()
		if !allow(r) {
			refuse(http.StatusForbidden, "AccessDenied")(w, r, nil)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	c := server.Config()
	c.Endpoint, c.Bucket = proxy.URL, server.NewBucket(t)
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

func TestCallerWhoMayOnlyTouchThePrefixCanWriteThere(t *testing.T) {
	t.Parallel()
	below := func(r *http.Request) bool {
		_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		return strings.HasPrefix(key, "some/where/") || strings.HasPrefix(r.URL.Query().Get("prefix"), "some/where/")
	}
	c, _ := watched(t, below)
	c.Prefix = "some/where"
	s := open(t, c)
	require.NoError(t, s.PutIfAbsent(t.Context(), "a", []byte("x")))
	body, err := s.Read(t.Context(), "a", 0, -1)
	require.NoError(t, err)
	require.Equal(t, "x", string(body))
}

func TestReadOnlyStoreIsNeverWritten(t *testing.T) {
	t.Parallel()
	c, seen := watched(t, func(*http.Request) bool { return true })
	c.ReadOnly = true
	s := open(t, c)
	require.ErrorIs(t, s.Put(t.Context(), "b", nil), object.ErrDenied)
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "b", nil), object.ErrDenied)
	require.ErrorIs(t, s.Delete(t.Context(), "b"), object.ErrDenied)
	require.Equal(t, []string{"GET /" + c.Bucket}, seen())
	c.Bucket = "nowhere"
	_, err := s3store.Open(t.Context(), c)
	require.ErrorContains(t, err, "NoSuchBucket")
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	server := objecttest.StartS3(t)
	good := server.Config()
	good.Bucket, good.Attempts = server.NewBucket(t), 2
	for name, c := range map[string]struct {
		spoil func(*s3store.Config)
		want  error
		text  string
	}{
		"wrong secret":  {func(c *s3store.Config) { c.SecretKey = "wrong" }, object.ErrDenied, "SignatureDoesNotMatch"},
		"unknown key":   {func(c *s3store.Config) { c.AccessKey = "nobody" }, object.ErrDenied, ""},
		"no server":     {func(c *s3store.Config) { c.Endpoint = "http://127.0.0.1:1" }, object.ErrUnavailable, "connection refused"},
		"no bucket":     {func(c *s3store.Config) { c.Bucket = "nowhere" }, nil, "NoSuchBucket"},
		"empty bucket":  {func(c *s3store.Config) { c.Bucket = "" }, nil, "bucket: empty"},
		"hostile start": {func(c *s3store.Config) { c.Prefix = "a/../.." }, object.ErrBadKey, "prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := good
			c.spoil(&bad)
			_, err := s3store.Open(t.Context(), bad)
			require.ErrorContains(t, err, c.text)
			require.NotErrorIs(t, err, object.ErrNotFound)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
		})
	}
}

// forgetful is a server that replaces what is there whatever the condition says, or refuses all conditions.
type forgetful struct {
	mu      sync.Mutex
	objects map[string][]byte
	status  int // of a put
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, ok := f.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodPut && f.status == http.StatusNotImplemented:
		refuse(f.status, "NotImplemented")(w, r, nil)
	case r.Method == http.MethodPut:
		body, _ = io.ReadAll(r.Body)
		f.objects[r.URL.Path] = body
		if ok && f.status != 0 {
			refuse(f.status, "PreconditionFailed")(w, r, nil)
		}
	case r.Method == http.MethodDelete:
		delete(f.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case !ok:
		refuse(http.StatusNotFound, "NoSuchKey")(w, r, nil)
	default:
		_, _ = w.Write(body)
	}
}

func TestStoreThatForgetsConditionalPutsIsRefused(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{
		"forgets": 0, "refuses and writes": http.StatusPreconditionFailed, "knows no conditions": http.StatusNotImplemented,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &forgetful{objects: map[string][]byte{}, status: status}
			server := httptest.NewServer(f)
			t.Cleanup(server.Close)
			_, err := s3store.Open(t.Context(), s3store.Config{
				Bucket: "b", Endpoint: server.URL, Region: "x", AccessKey: "A", SecretKey: "S", PathStyle: true, Attempts: 1,
			})
			require.ErrorIs(t, err, object.ErrNoPutIfAbsent)
			f.mu.Lock()
			defer f.mu.Unlock()
			require.Empty(t, strings.Join(paths(f.objects), " "), "the probe is removed")
		})
	}
}

func paths(objects map[string][]byte) (out []string) {
	for p := range objects {
		out = append(out, p)
	}
	return out
}
