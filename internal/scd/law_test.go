package scd_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/scd"
	"varve/internal/value"
)

func TestEveryVectorHoldsInAnyGrouping(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"cases.json", "law_cases.json"} {
		raw, err := os.ReadFile(filepath.Join("testdata", file))
		require.NoError(t, err)
		vectors, err := readVectors(raw)
		require.NoError(t, err)
		require.NotEmpty(t, vectors)
		for _, v := range vectors {
			t.Run(v.Name, func(t *testing.T) {
				t.Parallel()
				if v.Kind == "config" {
					t.Skip("a case of contracts, not of folding")
				}
				hold(t, v)
			})
		}
	}
}

func TestFreshCasesOfTheLawHold(t *testing.T) {
	t.Parallel()
	law := filepath.Join("..", "..", "..", "shared", "law", "law.py")
	python, err := exec.LookPath("python3")
	if _, missing := os.Stat(law); err != nil || missing != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the law needs python3 and law.py of the specification beside the repository")
		}
		t.Skip("there is no python3, or no law.py of the specification beside the repository")
	}
	seed := rand.Uint32()
	raw, err := exec.CommandContext(t.Context(), python, law, "make", "600", strconv.FormatUint(uint64(seed), 10)).Output()
	require.NoError(t, err)
	vectors, err := readVectors(raw)
	require.NoError(t, err)
	t.Logf("seed %d", seed)
	for _, v := range vectors {
		hold(t, v)
	}
}

// hold checks a case in one batch, as given, and event by event.
func hold(t *testing.T, v vector) {
	t.Helper()
	spec, err := v.spec()
	require.NoError(t, err)
	all := slices.Concat(v.Batches...)
	groupings := map[string][][]record{"as given": v.Batches}
	if v.Kind != "gc" && (v.Varve == nil || !v.Varve.Refused) {
		groupings["in one batch"] = [][]record{all}
		groupings["event by event"] = slices.Collect(slices.Chunk(all, 1))
	}
	for name, batches := range groupings {
		for _, kind := range []scd.Type{scd.Type1, scd.Type2} {
			check(t, v, spec, kind, fmt.Sprintf("%s, SCD%d, %s", v.Name, kind, name), batches)
		}
	}
}

func check(t *testing.T, v vector, spec scd.Spec, kind scd.Type, name string, batches [][]record) {
	t.Helper()
	table, quarantined, parts := newTable(spec, kind), 0, map[string]value.Row{}
	refused := false
	for _, batch := range batches {
		k, err := v.understand(spec, batch)
		if errors.Is(err, errRefused) {
			refused = true
			break
		}
		require.NoError(t, err)
		quarantined += k.quarantined
		for key, p := range k.parts {
			parts[key] = p
		}
		table.apply(k.events, k.barriers)
	}
	want, mine := v.expected, v.Varve
	if mine == nil {
		mine = &expected{}
	}
	require.Equal(t, mine.Refused, refused, name)
	if refused {
		return
	}
	if mine.Quarantined != nil {
		require.Equal(t, *mine.Quarantined, quarantined, name)
	}
	rows := want.SCD1
	if mine.SCD1 != nil {
		rows = mine.SCD1
	}
	if kind == scd.Type2 {
		if rows = want.SCD2; mine.SCD2 != nil {
			rows = mine.SCD2
		}
	}
	if rows != nil {
		require.Equal(t, wanted(*rows), table.shown(v, parts), name)
	}
}

// wanted is expected rows as sorted texts.
func wanted(rows []map[string]any) []string {
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, value.Canonical(fromJSON(r)))
	}
	slices.Sort(out)
	return out
}

// shown is the table's rows as sorted texts.
func (t *table) shown(v vector, parts map[string]value.Row) []string {
	out := []string{}
	for key, rows := range t.rows {
		for _, r := range rows {
			s := value.Struct{}
			put := func(name string, v value.Value) { s = append(s, value.Member{Name: name, Value: v}) }
			for i, name := range v.Keys {
				put(name, parts[key][i])
			}
			for i, c := range t.spec.Columns {
				put(c.Name, r.Values[i])
			}
			switch {
			case t.kind == scd.Type2:
				put("start", r.Start)
				put("end", r.End)
			case t.spec.Logical:
				put("is_deleted", r.Deleted)
			}
			out = append(out, value.Canonical(s))
		}
	}
	slices.Sort(out)
	return out
}
