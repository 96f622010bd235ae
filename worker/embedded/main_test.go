package embedded_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails where a goroutine of this package outlives its server. Temporal's own leave some behind when they end.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil && strings.Contains(err.Error(), "varve/worker/") {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
