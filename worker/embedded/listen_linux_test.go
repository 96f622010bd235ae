package embedded_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/worker/embedded"
)

// listening is the state of a listening socket in the kernel's tables.
const listening = "0A"

// loopback is 127.0.0.1 as the kernel's tables write it on little-endian machines.
const loopback = "0100007F"

// sockets are the inodes of the sockets that this process has open.
func sockets(t *testing.T) map[string]bool {
	t.Helper()
	names, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	out := map[string]bool{}
	for _, name := range names {
		target, err := os.Readlink(name)
		if err != nil {
			continue // closed since it was listed
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out
}

// listeners are the addresses of this process's listening sockets in one of the kernel's tables, as address:port in hex.
func listeners(t *testing.T, table string, own map[string]bool) []string {
	t.Helper()
	f, err := os.Open(table)
	if os.IsNotExist(err) {
		return nil // a kernel without that protocol
	}
	require.NoError(t, err)
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if cells := strings.Fields(lines.Text()); len(cells) > 9 && cells[3] == listening && own[cells[9]] {
			out = append(out, cells[1])
		}
	}
	require.NoError(t, lines.Err())
	return out
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{File: state(t)})
	own := sockets(t)
	require.Empty(t, listeners(t, "/proc/self/net/tcp6", own))
	got := listeners(t, "/proc/self/net/tcp", own)
	for _, address := range got {
		require.True(t, strings.HasPrefix(address, loopback+":"), "listens on %s", address)
	}
	for _, address := range []string{s.Address, strings.TrimPrefix(s.UI, "http://")} {
		require.Contains(t, got, fmt.Sprintf("%s:%04X", loopback, portOf(t, address)))
	}
}
