package merge

import (
	"github.com/duckdb/duckdb-go/v2"
	"go.temporal.io/sdk/activity"
	"varve/internal/quality"
)

var (
	_ duckdb.Conn
	_ activity.Info
	_ quality.Figures
)
