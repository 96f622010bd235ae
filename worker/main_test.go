package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"
	"go.uber.org/goleak"

	"varve/worker/embedded"
	"varve/workflows"
)

// server is the one Temporal server that the package's tests share.
var server = sync.OnceValues(func() (shared, error) {
	dir, err := os.MkdirTemp("", "varve-worker-")
	if err != nil {
		return shared{}, err
	}
	s, err := embedded.Start(context.Background(), embedded.Options{File: filepath.Join(dir, "temporal.db"), Attributes: workflows.AttributeNames()})
	return shared{Server: s, dir: dir}, err
})

// shared is a server with the folder of its state.
type shared struct {
	*embedded.Server
	dir string
}

// TestMain ends the server, and fails where a goroutine of the engine or of this package outlives it. Temporal's own server
// and client leave some behind, workflows that were under way among them.
func TestMain(m *testing.M) {
	s, err := server()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	err = errors.Join(s.Stop(), os.RemoveAll(s.dir))
	if leak := goleak.Find(); leak != nil {
		for _, ours := range []string{"varve/worker", "varve/activities", "varve/internal"} {
			if strings.Contains(leak.Error(), ours) {
				err = errors.Join(err, leak)
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// patience is how long a test waits for what Temporal does on its own.
const patience = 30 * time.Second

// eventually asks until the answer is yes.
func eventually(t *testing.T, yes func() bool) {
	t.Helper()
	require.Eventually(t, yes, patience, 20*time.Millisecond)
}

// silent is a client's log that nobody reads.
func silent() sdklog.Logger { return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
