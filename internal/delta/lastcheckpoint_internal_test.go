package delta

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChecksumIsTheProtocols takes an object with every kind of value; its checksum is the one that PROTOCOL.md gives.
func TestChecksumIsTheProtocols(t *testing.T) {
	t.Parallel()
	body := []byte(`{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}`)
	canonical, err := canonicalJSON(body)
	require.NoError(t, err)
	require.Equal(t, `"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4",`+
		`"k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"`, canonical)
	sum, err := checksumOf(body)
	require.NoError(t, err)
	require.Equal(t, "6a92d155a59bf2eecbd4b4ec7fd1f875", sum)
	for _, bad := range []string{"", "[1]", "{", `{"a":1} x`, `"a"`} {
		_, err := checksumOf([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestChecksumKeepsNumbersAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	canonical, err := canonicalJSON([]byte(`{"b":1.50,"a":true,"é":null,"c":9007199254740993,"d":{},"e":[]}`))
	require.NoError(t, err)
	require.Equal(t, `"%C3%A9"=null,"a"=true,"b"=1.50,"c"=9007199254740993`, canonical)
}

func TestChecksumsOfTheCorpusAreRight(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("../../../shared/delta-corpus/*/delta/_delta_log/_last_checkpoint")
	require.NoError(t, err)
	if len(found) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("the conformance corpus is not there")
		}
		t.Skip("the conformance corpus is not there")
	}
	checked := 0
	for _, name := range found {
		body, err := os.ReadFile(name)
		require.NoError(t, err)
		var hint lastCheckpointJSON
		if json.Unmarshal(body, &hint) != nil || hint.Checksum == "" {
			continue
		}
		sum, err := checksumOf(body)
		require.NoError(t, err)
		require.Equal(t, hint.Checksum, sum, name)
		other, err := checksumOf(bytes.Replace(body, []byte(`"size":`), []byte(`"size":1`), 1))
		require.NoError(t, err)
		require.NotEqual(t, hint.Checksum, other, name)
		checked++
	}
	require.Greater(t, checked, 5)
}

func TestIntervalsAreReadAsSparkWritesThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"interval 7 days": "168h0m0s", "7 days": "168h0m0s", "INTERVAL 1 WEEK 2 DAYS": "216h0m0s", "interval 0 hours": "0s",
		"interval 1 day 12 hours 30 minutes 5 seconds": "36h30m5s", "1 millisecond 2 microseconds": "1.002ms",
	} {
		d, err := parseInterval(text)
		require.NoError(t, err, text)
		require.Equal(t, want, d.String(), text)
	}
	for _, bad := range []string{"", "interval", "7", "7 moons", "-7 days", "1 month", "1.5 days", "9223372036854775807 weeks", "15000 weeks 15000 weeks", "days 7"} {
		_, err := parseInterval(bad)
		require.Error(t, err, bad)
	}
}
