package ledger_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "25"); err != nil { // each writes several tables
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
