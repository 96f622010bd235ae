package objecttest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"varve/internal/object/s3store"
)

// startTimeout is how long the server may take until it listens.
const startTimeout = 30 * time.Second

// S3 is an S3 server on this machine, made by StartS3.
type S3 struct {
	// Endpoint is the server's URL.
	Endpoint string

	dir     string
	buckets *atomic.Int64
}

// StartS3 starts versitygw, found by VARVE_VERSITYGW or else in PATH, on a free port of the loopback interface, and ends it
// with the test. Where there is none the test is skipped, but fails if CI is true.
func StartS3(tb testing.TB) S3 {
	tb.Helper()
	binary, err := exec.LookPath(cmp.Or(os.Getenv("VARVE_VERSITYGW"), "versitygw"))
	if err != nil {
		const advice = "no S3 server: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0, or set VARVE_VERSITYGW to its path"
		if os.Getenv("CI") == "true" {
			tb.Fatalf("%s: %v", advice, err)
		}
		tb.Skipf("%s: %v", advice, err)
	}
	dir := tb.TempDir()
	s := S3{dir: filepath.Join(dir, "buckets"), buckets: &atomic.Int64{}}
	sidecar := filepath.Join(dir, "sidecar") // needs no extended attributes of the file system
	require.NoError(tb, os.Mkdir(s.dir, 0o700))
	require.NoError(tb, os.Mkdir(sidecar, 0o700))
	const tries = 5 // another process may take the free port first
	for range tries {
		address := freeAddress(tb)
		s.Endpoint = "http://" + address
		if err = start(tb, address, binary, s.dir, sidecar); err == nil {
			return s
		}
	}
	tb.Fatalf("start %s: %v", binary, err)
	return S3{}
}

// Config is how to reach the server; the bucket is the caller's to set.
func (s S3) Config() s3store.Config {
	return s3store.Config{Endpoint: s.Endpoint, Region: "us-east-1", AccessKey: "A", SecretKey: "S", PathStyle: true}
}

// NewBucket makes an empty bucket and gives its name.
func (s S3) NewBucket(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	require.NoError(tb, os.Mkdir(filepath.Join(s.dir, name), 0o700)) // the server's buckets are folders
	return name
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer func() { require.NoError(tb, l.Close()) }()
	return l.Addr().String()
}

// start starts the server and waits until it listens. What ends it is the cleanup, when the test's context is gone already.
func start(tb testing.TB, address, binary, dir, sidecar string) error {
	tb.Helper()
	var log bytes.Buffer
	//nolint:gosec // the binary is the developer's choice
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), binary,
		"--access", "A", "--secret", "S", "--port", address, "--quiet", "--keep-alive", "posix", "--sidecar", sidecar, dir)
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // killed, or the address was taken: the log tells
	}()
	stop := func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		<-ended
	}
	if err := listening(tb.Context(), address, ended); err != nil {
		stop()
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(log.String()))
	}
	tb.Cleanup(stop)
	return nil
}

// environment is this process's, without what would set the server up in another way.
func environment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "VGW_") && !strings.HasPrefix(v, "ROOT_") {
			out = append(out, v)
		}
	}
	return out
}

func listening(ctx context.Context, address string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ended:
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("it does not listen: %w", err)
		case <-again.C:
		}
	}
}
