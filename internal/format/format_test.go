package format_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/format"
)

func TestOnlyKnownFormatsAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, words string }{
		"newer":      {`{"format": 3, "n": {"deep": true}}`, `"a/1.json" has format 3, this varve reads up to 2`},
		"none":       {`{"n": 1}`, `"a/1.json" has no format number`},
		"null":       {`null`, `"a/1.json" has no format number`},
		"truncated":  {`{"format": 1, "n"`, `"a/1.json" is damaged`},
		"empty":      {``, `"a/1.json" is damaged`},
		"other type": {`{"format": 1, "n": "text"}`, `"a/1.json" is damaged`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var into struct{ N int }
			err := format.Decode("a/1.json", []byte(c.body), 2, &into)
			require.ErrorAs(t, err, new(*format.Error))
			require.ErrorContains(t, err, c.words)
			require.Zero(t, into.N)
		})
	}
	for _, body := range []string{`{"format": 1, "n": 7}`, `{"format": 2, "n": 7}`} {
		var into struct{ N int }
		require.NoError(t, format.Decode("a/1.json", []byte(body), 2, &into))
		require.Equal(t, 7, into.N)
	}
}
