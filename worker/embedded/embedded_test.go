package embedded_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"varve/worker/embedded"
)

// patience is how long a port's holder is waited for.
const patience = 10 * time.Second

// start starts a server that ends with the test.
func start(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

func state(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "temporal.db")
}

// occupy listens on a port until the test ends, unless another program does so already and does not give way, as another
// test's server does when that ends.
func occupy(t *testing.T, number int) int {
	t.Helper()
	var c net.ListenConfig
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := c.Listen(t.Context(), "tcp", net.JoinHostPort(embedded.Host, strconv.Itoa(number)))
	for tick := time.NewTicker(10 * time.Millisecond); err != nil && ctx.Err() == nil; <-tick.C {
		l, err = c.Listen(t.Context(), "tcp", net.JoinHostPort(embedded.Host, strconv.Itoa(number)))
	}
	if err != nil && number != 0 {
		return number
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	at, ok := l.Addr().(*net.TCPAddr)
	require.True(t, ok)
	return at.Port
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	require.NoError(t, err)
	number, err := strconv.Atoi(text)
	require.NoError(t, err)
	return number
}

// requireAnswer checks that a service with its namespace answers.
func requireAnswer(ctx context.Context, t *testing.T, s *embedded.Server) {
	t.Helper()
	c, err := client.DialContext(ctx, client.Options{HostPort: s.Address})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.CheckHealth(ctx, &client.CheckHealthRequest{})
	require.NoError(t, err)
}

func TestPortThatWasAskedForAndIsInUseIsRefused(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(o *embedded.Options, port int){
		"service": func(o *embedded.Options, port int) { o.Port = port },
		"UI":      func(o *embedded.Options, port int) { o.UIPort = port },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, taken := state(t), occupy(t, 0)
			o := embedded.Options{File: file}
			ask(&o, taken)
			_, err := embedded.Start(t.Context(), o)
			var port *embedded.PortError
			require.ErrorAs(t, err, &port)
			require.Equal(t, taken, port.Port)
			require.ErrorContains(t, err, "choose another port")
			require.NoFileExists(t, file)
			start(t, embedded.Options{File: file}) // the refusal let go of the state
		})
	}
}

func TestFreePortsAreTakenWhereTheUsualOnesAreInUse(t *testing.T) {
	t.Parallel()
	occupy(t, embedded.UsualPort)
	occupy(t, embedded.UsualUIPort)
	s := start(t, embedded.Options{File: state(t)})
	require.NotEqual(t, embedded.UsualPort, portOf(t, s.Address))
	require.NotEqual(t, embedded.UsualUIPort, portOf(t, s.UI[len("http://"):]))
	requireAnswer(t.Context(), t, s)
}

// TestUIShowsTheService asks for the page and, by the page's way, for the service's namespace.
func TestUIShowsTheService(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{File: state(t), Namespace: "crm"})
	for path, want := range map[string]string{"/": "<html", "/api/v1/namespaces/crm": `"crm"`} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.UI+path, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, errors.Join(err, answer.Body.Close()))
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		require.Contains(t, string(body), want, path)
	}
}

func TestSecondServerOnTheSameStateIsRefused(t *testing.T) {
	t.Parallel()
	file := state(t)
	first := start(t, embedded.Options{File: file})
	_, err := embedded.Start(t.Context(), embedded.Options{File: file})
	var used *embedded.InUseError
	require.ErrorAs(t, err, &used)
	require.Equal(t, file, used.File)
	requireAnswer(t.Context(), t, first)
}

func TestStateOutlivesTheServer(t *testing.T) {
	t.Parallel()
	file := state(t)
	first, err := embedded.Start(t.Context(), embedded.Options{File: file, Namespace: "shop"})
	require.NoError(t, err)
	c, err := client.DialContext(t.Context(), client.Options{HostPort: first.Address, Namespace: "shop"})
	require.NoError(t, err)
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "kept", TaskQueue: "nobody"}, "Any")
	require.NoError(t, err)
	c.Close()
	require.NoError(t, first.Stop())

	second := start(t, embedded.Options{File: file, Namespace: "shop"})
	require.Empty(t, second.SetAside)
	c, err = client.DialContext(t.Context(), client.Options{HostPort: second.Address, Namespace: "shop"})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.DescribeWorkflow(t.Context(), "kept", "")
	require.NoError(t, err)
}

func TestStampDoesNotOutliveItsState(t *testing.T) {
	t.Parallel()
	file := state(t)
	first, err := embedded.Start(t.Context(), embedded.Options{File: file})
	require.NoError(t, err)
	require.NoError(t, first.Stop())
	for _, end := range []string{"", "-wal", "-shm"} {
		require.NoError(t, os.RemoveAll(file+end))
	}
	require.NoError(t, os.Mkdir(file+"-journal", 0o700)) // the schema cannot be made
	_, err = embedded.Start(t.Context(), embedded.Options{File: file})
	require.ErrorContains(t, err, "make the schema")
	require.NoFileExists(t, file+".version")
}

func TestStateOfAnotherVersionOrUnfinishedIsSetAside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stamp, aside string }{
		"another version": {"0.9.1\n", ".of-0.9.1"},
		"unfinished":      {"", ".unfinished"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := state(t)
			files := map[string]string{"": "what another server wrote", "-wal": "and had not yet moved"}
			for end, text := range files {
				require.NoError(t, os.WriteFile(file+end, []byte(text), 0o600))
			}
			if c.stamp != "" {
				require.NoError(t, os.WriteFile(file+".version", []byte(c.stamp), 0o600))
			}
			s := start(t, embedded.Options{File: file})
			require.Equal(t, file+c.aside, s.SetAside)
			for end, text := range files {
				kept, err := os.ReadFile(s.SetAside + end)
				require.NoError(t, err)
				require.Equal(t, text, string(kept))
			}
			requireAnswer(t.Context(), t, s)
		})
	}
}
