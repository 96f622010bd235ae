package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// build makes the binary once for all tests of the package.
var build = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // built once, never changed
	dir, err := os.MkdirTemp("", "varve-test-")
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "varve")
	out, err := exec.Command("go", "build", "-o", to, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return to, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if to, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(to))
	}
	os.Exit(code)
}

// command is a run of varve that has not started.
func command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	to, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(ctx, to, args...)
}

// outcome is what a run of varve said and how it ended.
type outcome struct {
	stdout, stderr string
	code           int
}

// varve runs it to its end.
func varve(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := command(ctx, t, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
		t.Fatal(err)
	}
	return outcome{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

// must runs it and fails the test where it does not exit 0.
func must(t *testing.T, args ...string) string {
	t.Helper()
	o := varve(t, args...)
	if o.code != 0 {
		t.Fatalf("varve %s: exit %d\n%s%s", strings.Join(args, " "), o.code, o.stdout, o.stderr)
	}
	return o.stdout
}

// shell runs one line of a page from the clone's root, with the built binary where the page says go run.
func shell(t *testing.T, line string) {
	t.Helper()
	to, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "go run ./cmd/varve", to))
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}
