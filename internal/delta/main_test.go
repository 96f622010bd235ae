package delta_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if task := os.Getenv(writerTask); task != "" {
		os.Exit(writer(task))
	}
	goleak.VerifyTestMain(m)
}
