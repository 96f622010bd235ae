package delta_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/value"
)

// daily makes a table with a commit at noon of each day, versions 1 to n, without checkpoints.
func daily(t *testing.T, n int64, config map[string]string) (delta.Table, *hands) {
	t.Helper()
	all := map[string]string{"delta.checkpointInterval": "1000"}
	maps.Copy(all, config)
	table, hands := ticking(t, all)
	hands.move(12*time.Hour - hands.at.Sub(hands.at.Truncate(24*time.Hour)))
	for i := range n {
		hands.move(days(1))
		appendRow(t, table, i, value.Row{i, "x"})
	}
	return table, hands
}

// oldest tells the smallest version of which the log has the commit.
func oldest(t *testing.T, table delta.Table) int64 {
	t.Helper()
	for v := range int64(100) {
		if slices.Contains(names(t, table.Store, logKey("")), fmt.Sprintf("%020d.json", v)) {
			return v
		}
	}
	return -1
}

func TestExpiredLogGoesUpToTheCheckpointThatIsOldEnough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		checkpoints []int64
		config      map[string]string
		after       time.Duration // since version 12
		want        int64
	}{
		"no checkpoint":                {nil, nil, days(60), 0},
		"a checkpoint too young":       {[]int64{6}, nil, days(24), 0},
		"midnight rounds down":         {[]int64{6}, nil, days(24) + 11*time.Hour, 0},
		"just old enough":              {[]int64{6}, nil, days(24) + 12*time.Hour, 6},
		"the newest one counts":        {[]int64{3, 6, 9}, nil, days(28), 9},
		"of which one is too young":    {[]int64{3, 6, 11}, nil, days(28), 6},
		"the checkpoint is the newest": {[]int64{12}, nil, days(31), 12},
		"a retention of its own":       {[]int64{6}, map[string]string{"delta.logRetentionDuration": "interval 2 days"}, 0, 6},
		"switched off":                 {[]int64{6}, map[string]string{"delta.enableExpiredLogCleanup": "false"}, days(60), 0},
		"a retention that is forever":  {[]int64{6}, map[string]string{"delta.logRetentionDuration": "interval 10000 weeks"}, days(60), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, hands := daily(t, 12, c.config)
			for _, v := range c.checkpoints {
				require.NoError(t, table.Checkpoint(t.Context(), v))
			}
			plant(t, table, "_delta_log/00000000000000000000.00000000000000000003.compacted.json", "_delta_log/00000000000000000006.00000000000000000009.compacted.json",
				"_delta_log/_staged_commits/00000000000000000003.d2c639aa-8816-431a-aaf6-d3fe2512ff61.json", "_delta_log/00000000000000000003.json.tmp", "_delta_log/note.txt")
			require.NoError(t, table.Store.Delete(t.Context(), logKey("00000000000000000000.00000000000000000003.compacted.json")))
			require.NoError(t, table.Store.Delete(t.Context(), logKey("00000000000000000006.00000000000000000009.compacted.json")))
			hands.move(c.after)
			before, err := table.Latest(t.Context())
			require.NoError(t, err)
			cleaned, err := table.CleanLog(t.Context())
			require.NoError(t, err)
			after, err := table.Latest(t.Context())
			require.NoError(t, err)
			require.Equal(t, paths(before.Files()), paths(after.Files()))
			require.Equal(t, c.want, oldest(t, table))
			log := names(t, table.Store, logKey(""))
			require.Contains(t, log, "note.txt")
			require.Contains(t, log, "00000000000000000003.json.tmp")
			if c.want == 0 {
				require.Empty(t, cleaned.Deleted)
				require.EqualValues(t, -1, cleaned.Through)
				return
			}
			require.Equal(t, c.want, cleaned.Through)
			require.NotContains(t, log, fmt.Sprintf("%020d.crc", c.want-1))
			require.Contains(t, log, fmt.Sprintf("%020d.crc", c.want))
			for v := range int64(13) {
				_, err := table.Version(t.Context(), v)
				if v < c.want {
					require.ErrorIs(t, err, delta.ErrNoVersion, "version %d", v)
				} else {
					require.NoError(t, err, "version %d", v)
				}
			}
			if slices.Equal(c.checkpoints, []int64{3, 6, 9}) {
				require.NotContains(t, log, "00000000000000000006.checkpoint.parquet")
				require.NotContains(t, log, "_staged_commits/00000000000000000003.d2c639aa-8816-431a-aaf6-d3fe2512ff61.json")
			}
		})
	}
}

func TestCompactionsThatBeginBeforeTheCheckpointGo(t *testing.T) {
	t.Parallel()
	table, hands := daily(t, 8, nil)
	require.NoError(t, table.Checkpoint(t.Context(), 6))
	for _, name := range []string{"00000000000000000001.00000000000000000003", "00000000000000000006.00000000000000000008", "00000000000000000007.00000000000000000008"} {
		body, err := table.Store.Read(t.Context(), logKey("00000000000000000007.json"), 0, -1)
		require.NoError(t, err)
		require.NoError(t, table.Store.Put(t.Context(), logKey(name+".compacted.json"), body))
	}
	hands.move(days(60))
	_, err := table.CleanLog(t.Context())
	require.NoError(t, err)
	log := names(t, table.Store, logKey(""))
	require.Contains(t, log, "00000000000000000007.00000000000000000008.compacted.json")
	require.NotContains(t, log, "00000000000000000006.00000000000000000008.compacted.json")
	require.NotContains(t, log, "00000000000000000001.00000000000000000003.compacted.json")
}

func TestLogIsNotCleanedOntoACheckpointThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, plantIt := range map[string]func(t *testing.T, table delta.Table){
		"damaged": func(t *testing.T, table delta.Table) {
			t.Helper()
			plant(t, table, "_delta_log/00000000000000000006.checkpoint.parquet")
		},
		"incomplete": func(t *testing.T, table delta.Table) {
			t.Helper()
			plant(t, table, "_delta_log/00000000000000000006.checkpoint.0000000001.0000000002.parquet")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, hands := daily(t, 8, nil)
			require.NoError(t, table.Checkpoint(t.Context(), 7))
			hands.move(days(29)) // version 6 is old enough, 7 is not
			plantIt(t, table)
			before := len(names(t, table.Store, ""))
			cleaned, err := table.CleanLog(t.Context())
			if name == "damaged" {
				var corrupt *delta.CorruptError
				require.ErrorAs(t, err, &corrupt)
			} else {
				require.NoError(t, err)
			}
			require.Empty(t, cleaned.Deleted)
			require.Len(t, names(t, table.Store, ""), before)
		})
	}
}

// TestProtectedCheckpointsGoAllAtOnceOrNotAtAll is the feature checkpointProtection.
func TestProtectedCheckpointsGoAllAtOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]int64{"9": 6, "6": 6, "7": 0, "2": 6, "x": 0, "10": 0} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			table, hands := daily(t, 8, nil)
			s, err := table.Latest(t.Context())
			require.NoError(t, err)
			m := s.Metadata()
			m.Configuration = maps.Clone(m.Configuration)
			m.Configuration["delta.requireCheckpointProtectionBeforeVersion"] = before
			features := []string{"checkpointProtection"}
			if before == "9" {
				features = nil // without the feature the property says nothing
			}
			_, err = table.Commit(t.Context(), 8, delta.Commit{ID: "p", Operation: "SET TBLPROPERTIES", Metadata: &m, Protocol: &delta.Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: features}})
			require.NoError(t, err)
			require.NoError(t, table.Checkpoint(t.Context(), 6))
			hands.move(days(60))
			_, err = table.CleanLog(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, oldest(t, table))
		})
	}
}

func TestCleanupFollowsACheckpointOfItself(t *testing.T) {
	t.Parallel()
	table, hands := ticking(t, map[string]string{"delta.checkpointInterval": "5"})
	for i := range int64(15) {
		hands.move(days(4))
		appendRow(t, table, i, value.Row{i, "x"})
	}
	require.EqualValues(t, 5, oldest(t, table))
}

func TestOnlyStraySidecarsGo(t *testing.T) {
	t.Parallel()
	corpusTables(t) // skips where there is no corpus
	table := delta.At(load(t, filepath.Join(corpus, "v2-checkpoint-json", "delta")), "")
	s, err := table.Latest(t.Context())
	require.NoError(t, err)
	now := s.Timestamp().Add(days(40))
	table.Now = func() time.Time { return now }
	had := names(t, table.Store, "_delta_log/_sidecars/")
	require.NotEmpty(t, had)
	require.NoError(t, table.Store.Put(t.Context(), "_delta_log/_sidecars/stray.parquet", []byte("x")))
	_, err = table.CleanLog(t.Context())
	require.NoError(t, err)
	require.Equal(t, had, names(t, table.Store, "_delta_log/_sidecars/"))
	after, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.Equal(t, paths(s.Files()), paths(after.Files()))

	now = s.Timestamp().Add(time.Hour)
	require.NoError(t, table.Store.Put(t.Context(), "_delta_log/_sidecars/young.parquet", []byte("x")))
	_, err = table.CleanLog(t.Context())
	require.NoError(t, err)
	require.Contains(t, names(t, table.Store, "_delta_log/_sidecars/"), "young.parquet")
}
