// Package interop_test holds tables that varve and other engines write against each other: whatever one wrote, all the
// others read the same rows, changes, history and statistics of it, and go on with it. It stands here, since its tests lay
// files out too. The engines are Spark, deltalake (by its query engine and by its Arrow dataset), DuckDB and polars; they run
// in one process that answers all tests.
package interop_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{m}) }

// suite is the tests of the package, with the end of the engines after them.
type suite struct{ tests *testing.M }

// Run runs the tests, then ends the engines, if one of the tests asked them anything.
func (s suite) Run() int {
	code := s.tests.Run()
	if err := others.stop(); err != nil && code == 0 {
		println("the engines did not end well:", err.Error())
		return 1
	}
	return code
}
