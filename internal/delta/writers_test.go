package delta_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/internal/object/filestore"
	"varve/internal/object/objecttest"
	"varve/internal/object/s3store"
	"varve/internal/value"
)

// writerTask is the variable by which a process of this test is told what to write.
const writerTask = "VARVE_TEST_WRITER"

// writerOrder is one process's part of a race: so many commits of one row each.
type writerOrder struct {
	Writer  int64           `json:"writer"`
	Commits int64           `json:"commits"`
	Folder  string          `json:"folder,omitempty"`
	S3      s3store.Config  `json:"s3"`
	Options json.RawMessage `json:"options,omitempty"` // the outside reader's way to the store
}

func (o writerOrder) open(ctx context.Context) (object.Store, error) {
	if o.Folder != "" {
		return filestore.Open(o.Folder)
	}
	return s3store.Open(ctx, o.S3)
}

func raced() value.Schema {
	return value.Schema{{Name: "writer", Type: kind(value.Long)}, {Name: "n", Type: kind(value.Long)}}
}

// writer is the whole of a writing process.
func writer(task string) int {
	if err := append1by1(context.Background(), task); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func append1by1(ctx context.Context, task string) error {
	var o writerOrder
	if err := json.Unmarshal([]byte(task), &o); err != nil {
		return err
	}
	store, err := o.open(ctx)
	if err != nil {
		return err
	}
	table := delta.At(store, "raced")
	version := int64(0)
	for n := range o.Commits {
		add, err := table.WriteFile(ctx, delta.FileOptions{Schema: raced()}, rowsOf(value.Row{o.Writer, n}))
		if err != nil {
			return err
		}
		c := delta.Commit{ID: uuid.NewString(), Operation: "WRITE", Adds: []delta.Add{add}, BlindAppend: true}
		if version, err = table.Commit(ctx, version, c); err != nil {
			return err
		}
	}
	return nil
}

// readRaced is an outside engine's view: rows, different rows, and the version.
const readRaced = `
import json, os, sys
import deltalake
order = json.loads(sys.argv[1])
t = deltalake.DeltaTable(sys.argv[2], storage_options=order.get("options"))
rows = t.to_pyarrow_table().to_pylist()
print(json.dumps([len(rows), len({(r["writer"], r["n"]) for r in rows}), t.version()]), flush=True)
os._exit(0)  # its threads abort an interpreter that ends while they run
`

// TestWritersOfManyProcessesLoseNothing has 16 processes append to one table at once. An outside engine finds the rows of
// all of them, each once, and the versions have no gap.
func TestWritersOfManyProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	const writers = 16
	python := os.Getenv("VARVE_PYTHON")
	if python == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("VARVE_PYTHON names no Python with deltalake")
		}
		t.Skip("set VARVE_PYTHON to a Python with deltalake; .ci/run does")
	}
	for name, c := range map[string]struct {
		commits int64
		place   func(t *testing.T) (order writerOrder, uri string)
	}{
		"disk": {200, func(t *testing.T) (writerOrder, string) {
			t.Helper()
			dir := t.TempDir()
			return writerOrder{Folder: dir}, dir + "/raced"
		}},
		"S3": {50, func(t *testing.T) (writerOrder, string) {
			t.Helper()
			server := objecttest.StartS3(t)
			config := server.Config()
			config.Bucket = server.NewBucket(t)
			options, err := json.Marshal(map[string]string{
				"AWS_ENDPOINT_URL": config.Endpoint, "AWS_REGION": config.Region, "AWS_ACCESS_KEY_ID": config.AccessKey,
				"AWS_SECRET_ACCESS_KEY": config.SecretKey, "AWS_ALLOW_HTTP": "true", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
			})
			require.NoError(t, err)
			return writerOrder{S3: config, Options: options}, "s3://" + config.Bucket + "/raced"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			order, uri := c.place(t)
			order.Commits = c.commits
			store, err := order.open(t.Context())
			require.NoError(t, err)
			table := delta.At(store, "raced")
			metadata := delta.NewMetadata(raced(), nil, nil)
			_, err = table.Commit(t.Context(), -1, delta.Commit{ID: uuid.NewString(), Operation: "CREATE TABLE", Metadata: &metadata})
			require.NoError(t, err)

			processes := make([]*exec.Cmd, writers)
			said := make([]bytes.Buffer, writers)
			for w := range writers {
				order.Writer = int64(w)
				task, err := json.Marshal(order)
				require.NoError(t, err)
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), writerTask+"="+string(task))
				cmd.Stderr = &said[w]
				require.NoError(t, cmd.Start())
				processes[w] = cmd
			}
			for w, cmd := range processes {
				if err := cmd.Wait(); err != nil {
					t.Errorf("writer %d: %v: %s", w, err, said[w].String())
				}
			}

			task, err := json.Marshal(order)
			require.NoError(t, err)
			out, err := exec.CommandContext(t.Context(), python, "-c", readRaced, string(task), uri).CombinedOutput()
			require.NoError(t, err, string(out))
			rows := writers * c.commits
			require.JSONEq(t, fmt.Sprintf("[%d, %d, %d]", rows, rows, rows), strings.TrimSpace(string(out)))
			for v := range rows + 1 { // no gap: each version is there
				_, err := store.Read(t.Context(), fmt.Sprintf("raced/_delta_log/%020d.json", v), 0, 0)
				require.NoError(t, err)
			}
		})
	}
}
