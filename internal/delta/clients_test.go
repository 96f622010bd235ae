package delta_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
)

// abilities is a letter for each client: w writes, a appends, r reads, - none.
func abilities(p delta.Protocol) string {
	var out []byte
	for _, c := range delta.Clients(p) {
		switch {
		case c.CannotRead != "":
			out = append(out, '-')
		case c.CannotWrite != "":
			out = append(out, 'r')
		case c.AppendOnly:
			out = append(out, 'a')
		default:
			out = append(out, 'w')
		}
	}
	return string(out)
}

func TestClientsAreToldByTheFeaturesOfATable(t *testing.T) {
	t.Parallel()
	named := func(readers []string, more ...string) delta.Protocol {
		return delta.Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: readers, WriterFeatures: append(more, readers...)}
	}
	for name, c := range map[string]struct {
		protocol delta.Protocol
		want     string // Spark, Databricks, delta-rs, DuckDB, polars, Trino
	}{
		"plain":                {delta.Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, "wwwaww"},
		"deletion vectors":     {named([]string{"deletionVectors"}, "appendOnly", "invariants", "changeDataFeed"), "wwwaww"},
		"legacy change feed":   {delta.Protocol{MinReaderVersion: 1, MinWriterVersion: 4}, "wwwrwr"},
		"legacy mapping":       {delta.Protocol{MinReaderVersion: 2, MinWriterVersion: 5}, "wwwr-r"},
		"legacy identity":      {delta.Protocol{MinReaderVersion: 1, MinWriterVersion: 6}, "wwrrrr"},
		"widening":             {named([]string{"typeWidening"}), "ww-r-r"},
		"clustering":           {named(nil, "clustering", "domainMetadata"), "wwrarr"},
		"v2 checkpoints":       {named([]string{"v2Checkpoint"}), "wwwr-r"},
		"vacuum check":         {named([]string{"vacuumProtocolCheck"}), "ww-r-w"},
		"a catalog's":          {named([]string{"catalogManaged"}), "------"},
		"unknown for readers":  {named([]string{"fromTheFuture"}), "------"},
		"unknown for writers":  {named(nil, "fromTheFuture"), "rrrrrr"},
		"reader of the future": {delta.Protocol{MinReaderVersion: 4, MinWriterVersion: 8}, "------"},
	} {
		require.Equal(t, c.want, abilities(c.protocol), name)
	}
	for _, c := range delta.Clients(named([]string{"typeWidening", "deletionVectors"}, "rowTracking")) {
		if c.Name == "delta-rs 1.6" {
			require.Equal(t, "does not support typeWidening", c.CannotRead)
			require.Equal(t, "does not support rowTracking, typeWidening", c.CannotWrite)
		}
	}
}

// TestClientsReadWhatTheyAreSaidTo lets the engines at hand open every table of the corpus that is one.
func TestClientsReadWhatTheyAreSaidTo(t *testing.T) {
	t.Parallel()
	args := []string{filepath.Join("testdata", "whoreads.py")}
	want := map[string][]string{}
	for _, folder := range corpusTables(t) {
		e := expected(t, folder)
		if e.Tier == "negative" || e.Name == "void-column" || e.Name == "table-with-geo" {
			continue // the latter two have types, not features, that engines differ on
		}
		at := filepath.Join(folder, "delta")
		s, err := delta.At(load(t, at), "").Latest(t.Context())
		if err != nil {
			continue
		}
		args, want[at] = append(args, at), []string{}
		for _, c := range delta.Clients(s.Protocol()) {
			if c.CannotRead == "" && slices.Contains([]string{"delta-rs 1.6", "DuckDB delta", "polars"}, c.Name) {
				want[at] = append(want[at], c.Name)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), python(t), args...).Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(want))
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		require.Equal(t, want[fields[0]], fields[1:], fields[0])
	}
}
