package delta

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// logDir is the folder of the log, below a table's root.
const logDir = "_delta_log"

// logKind is what a file of the log is.
type logKind uint8

const (
	commitFile logKind = iota
	compactedFile
	classicCheckpoint
	partCheckpoint
	uuidCheckpoint
)

// logName is the parsed name of a file of the log. Only exact names are parsed: whatever else lies around is none.
type logName struct {
	kind    logKind
	version int64
	end     int64 // of a compacted file: its last version
	part    int   // of a part of a checkpoint: which, from 1
	parts   int
	id      string // of a uuid-named checkpoint
	json    bool   // of a uuid-named checkpoint
}

// parseLogName parses a name without its folder.
func parseLogName(name string) (logName, bool) {
	fields := strings.Split(name, ".")
	version, ok := digits(fields[0], 20)
	if !ok {
		return logName{}, false
	}
	n := logName{version: version, end: version}
	switch rest := fields[1:]; {
	case len(rest) == 1 && rest[0] == "json":
		return n, true
	case len(rest) == 3 && rest[1] == "compacted" && rest[2] == "json":
		n.kind = compactedFile
		n.end, ok = digits(rest[0], 20)
		return n, ok && n.end >= version
	case len(rest) == 2 && rest[0] == "checkpoint" && rest[1] == "parquet":
		n.kind = classicCheckpoint
		return n, true
	case len(rest) == 3 && rest[0] == "checkpoint" && (rest[2] == "parquet" || rest[2] == "json"):
		n.kind, n.id, n.json = uuidCheckpoint, rest[1], rest[2] == "json"
		_, err := uuid.Parse(n.id)
		return n, err == nil && len(n.id) == 36
	case len(rest) == 4 && rest[0] == "checkpoint" && rest[3] == "parquet":
		n.kind = partCheckpoint
		part, ok1 := digits(rest[1], 10)
		parts, ok2 := digits(rest[2], 10)
		n.part, n.parts = int(part), int(parts)
		return n, ok1 && ok2 && part >= 1 && part <= parts
	}
	return logName{}, false
}

// digits parses exactly width decimal digits.
func digits(s string, width int) (int64, bool) {
	if len(s) != width || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// String gives the name back.
func (n logName) String() string {
	switch n.kind {
	case compactedFile:
		return fmt.Sprintf("%020d.%020d.compacted.json", n.version, n.end)
	case classicCheckpoint:
		return fmt.Sprintf("%020d.checkpoint.parquet", n.version)
	case partCheckpoint:
		return fmt.Sprintf("%020d.checkpoint.%010d.%010d.parquet", n.version, n.part, n.parts)
	case uuidCheckpoint:
		return fmt.Sprintf("%020d.checkpoint.%s.%s", n.version, n.id, map[bool]string{true: "json", false: "parquet"}[n.json])
	default:
		return fmt.Sprintf("%020d.json", n.version)
	}
}

// compare orders names by version, then by kind, then by part.
func (n logName) compare(m logName) int {
	return cmp.Or(cmp.Compare(n.version, m.version), cmp.Compare(n.kind, m.kind), cmp.Compare(n.part, m.part))
}
