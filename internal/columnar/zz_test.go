package columnar_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"varve/internal/columnar"
)

func TestZZ(t *testing.T) {
	_, _, file := sample(t)
	files := [][]byte{file}
	small, _ := filepath.Glob(filepath.Join(corpus, "*", "delta", "*.parquet"))
	for _, path := range small {
		if b, err := os.ReadFile(path); err == nil && len(b) < 9000 {
			files = append(files, b)
		}
	}
	sch, rows, _ := sample(t)
	for _, c := range []string{"none", "snappy", "gzip", "lz4_raw"} {
		f, _ := write(t, sch, rows, columnar.WriteOptions{Codec: c})
		files = append(files, f)
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	end := time.Now().Add(100 * time.Second)
	n, ok := 0, 0
	for time.Now().Before(end) {
		f := bytes.Clone(files[r.IntN(len(files))])
		for range 1 + r.IntN(3) {
			at := r.IntN(len(f))
			if r.IntN(2) == 0 {
				at = len(f) - 1 - r.IntN(len(f)/2)
			}
			f[at] = byte(r.IntN(256))
		}
		os.WriteFile("/tmp/varve-columnar/last", f, 0o600)
		s := time.Now()
		_, err := attempt(t, f, columnar.ReadOptions{})
		if d := time.Since(s); d > time.Second {
			os.WriteFile("/tmp/varve-columnar/slow", f, 0o600)
			t.Log("slow", d, err)
		}
		n++
		if err == nil {
			ok++
		}
	}
	t.Log(n, ok, len(files))
}
