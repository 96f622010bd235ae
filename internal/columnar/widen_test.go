package columnar_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/columnar"
	"varve/internal/value"
)

// TestWhatATypeWidensToIsRead holds files to the rule by which tables widen: a column that may be widened is read so.
func TestWhatATypeWidensToIsRead(t *testing.T) {
	t.Parallel()
	samples := map[string]value.Value{
		"tinyint": int64(-7), "smallint": int64(-300), "int": int64(70000), "bigint": int64(1) << 40, "float": float32(0.5),
		"double": 0.25, "decimal(5,0)": nil, "decimal(9,2)": nil, "decimal(10,0)": nil, "decimal(18,2)": nil,
		"decimal(19,0)": nil, "decimal(20,0)": nil, "decimal(38,10)": nil,
	}
	pairs := 0
	for name, sample := range samples {
		from, err := value.ParseType(name)
		require.NoError(t, err)
		if sample == nil {
			sample, err = value.Parse(from, "123")
			require.NoError(t, err)
		}
		file, _ := write(t, value.Schema{nullable("c", from)}, []value.Row{{sample}, {nil}}, columnar.WriteOptions{})
		for wider := range samples {
			to, err := value.ParseType(wider)
			require.NoError(t, err)
			if !value.Widens(from, to) {
				continue
			}
			pairs++
			rows := read(t, file, columnar.ReadOptions{Columns: value.Schema{nullable("c", to)}})
			require.Equal(t, []value.Row{{value.Widen(sample, to)}, {nil}}, rows, "%s as %s", from, to)
		}
	}
	require.Greater(t, pairs, len(samples), "more than each type as itself")
}
