package s3store

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// client is an HTTP client of a function.
type client func(*http.Request) (*http.Response, error)

func (c client) Do(r *http.Request) (*http.Response, error) { return c(r) }

func TestRequestHasItsSlotUntilItsBodyIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slots, all = 3, 10
		var mu sync.Mutex
		begun := 0
		l := newLimited(client(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			begun++
			return &http.Response{Body: io.NopCloser(strings.NewReader("body"))}, nil
		}), slots)
		goOn := make(chan struct{})
		var wg sync.WaitGroup
		for range all {
			wg.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://s3", nil)
				if err != nil {
					t.Error(err)
					return
				}
				answer, err := l.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				<-goOn
				if err := answer.Body.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		for closed := range all {
			synctest.Wait()
			require.Equal(t, min(slots+closed, all), begun)
			goOn <- struct{}{}
		}
		wg.Wait()
	})
}
