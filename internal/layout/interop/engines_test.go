package interop_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// script answers for the engines. Its doc tells what it can be asked.
var script = filepath.Join("..", "..", "..", ".ci", "interop_server.py")

// The engines, by the script's names.
const (
	spark     = "spark"
	deltalake = "deltalake"
	pyarrow   = "pyarrow" // deltalake's Arrow dataset, which knows no deletion vectors
	duckdb    = "duckdb"
	polars    = "polars"
)

// readers are all of them.
func readers() []string { return []string{spark, deltalake, pyarrow, duckdb, polars} }

// others is the process of the engines. The first question starts it, the end of the tests ends it.
var others = &process{}

// process is a running script.
type process struct {
	start sync.Once
	err   error
	in    io.WriteCloser
	// ended is closed when the process has ended; then failure says how.
	ended   chan struct{}
	failure error

	mu      sync.Mutex
	asked   int
	waiting map[int]chan json.RawMessage
}

// run starts the process.
func (p *process) run(python, jars string) {
	p.ended, p.waiting = make(chan struct{}), map[int]chan json.RawMessage{}
	cmd := exec.Command(python, script, jars)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		p.in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.err = err
		return
	}
	go func() {
		defer close(p.ended)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			p.deliver(line)
		}
		if err := cmd.Wait(); err != nil {
			p.failure = fmt.Errorf("%w: %s", err, said.Bytes()[max(0, said.Len()-4000):])
		}
	}()
}

// deliver gives an answer to whom it is for.
func (p *process) deliver(line []byte) {
	var reply struct {
		ID int `json:"id"`
	}
	if json.Unmarshal(line, &reply) != nil {
		return // nobody can be told; who waits for it is told when the process ends
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[reply.ID] <- line
	delete(p.waiting, reply.ID)
}

// ask sends a request and waits for its answer.
func (p *process) ask(request map[string]any) (json.RawMessage, error) {
	answer := make(chan json.RawMessage, 1)
	p.mu.Lock()
	p.asked++
	request["id"] = p.asked
	p.waiting[p.asked] = answer
	line, err := json.Marshal(request)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case line := <-answer:
		return line, nil
	case <-p.ended:
		return nil, errors.Join(errors.New("the engines ended"), p.failure)
	}
}

// stop ends the process, if it runs.
func (p *process) stop() error {
	if p.in == nil {
		return nil
	}
	if err := p.in.Close(); err != nil {
		return err
	}
	<-p.ended
	return p.failure
}

// engines makes sure that the engines run. Without them a test is skipped, in CI it fails.
func engines(t *testing.T) {
	t.Helper()
	python, jars := os.Getenv("VARVE_PYTHON"), os.Getenv("VARVE_SPARK_JARS")
	if python == "" || jars == "" {
		const say = "VARVE_PYTHON must name a Python with the engines, VARVE_SPARK_JARS the folder of Delta's jars; .ci/run makes both"
		if os.Getenv("CI") == "true" {
			t.Fatal(say)
		}
		t.Skip(say)
	}
	others.start.Do(func() { others.run(python, jars) })
	require.NoError(t, others.err)
}

// ask asks the engines, and decodes what they answer.
func ask[R any](t *testing.T, request map[string]any) R {
	t.Helper()
	reply, err := tryAsk[R](t, request)
	require.NoError(t, err, "%v", request)
	return reply
}

// tryAsk is ask with the error that the engine gave.
func tryAsk[R any](t *testing.T, request map[string]any) (R, error) {
	t.Helper()
	engines(t)
	var reply struct {
		Error string `json:"error"`
	}
	var out R
	line, err := others.ask(request)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &reply), string(line))
	require.NoError(t, json.Unmarshal(line, &out), string(line))
	if reply.Error != "" {
		return out, errors.New(reply.Error)
	}
	return out, nil
}

// The answers.
type (
	rowsReply  struct{ Rows []string }
	foundReply struct {
		Rows  []string
		Files int
	}
	historyReply struct {
		Versions []struct {
			Version    int64
			Timestamp  int64
			Operation  string
			Parameters map[string]any
			Metrics    map[string]any
		}
	}
	nothing struct{}
)
