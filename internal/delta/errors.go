package delta

import (
	"errors"
	"fmt"
)

// The conditions that callers test for with errors.Is.
var (
	// ErrNoTable says that there is no table: no log, or an empty one.
	ErrNoTable = errors.New("delta: no table")
	// ErrNoVersion says that the table does not have the version, or no longer.
	ErrNoVersion = errors.New("delta: no such version")
	// ErrAppendOnly says that the table's property delta.appendOnly forbids the removal of rows.
	ErrAppendOnly = errors.New("delta: table is append-only")
)

// CorruptError says that a file of a table breaks the protocol. Version is -1 where it is not known.
type CorruptError struct {
	Table   string
	Version int64
	File    string
	Err     error
}

// Error names the table, the version, the file and the reason.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("delta table %q, version %d: corrupt %q: %v", e.Table, e.Version, e.File, e.Err)
}

// Unwrap gives the reason.
func (e *CorruptError) Unwrap() error { return e.Err }

// UnsupportedError says that a table needs what this package does not do.
type UnsupportedError struct {
	Table string
	// Feature is the table feature, or names what else is needed.
	Feature string
	// Write says that only writing needs it.
	Write bool
}

// Error names the table and the feature.
func (e *UnsupportedError) Error() string {
	verb := "read"
	if e.Write {
		verb = "written"
	}
	return fmt.Sprintf("delta table %q: cannot be %s: %s is not supported", e.Table, verb, e.Feature)
}

// ConflictError says that a commit lost against another one that it cannot be placed after.
type ConflictError struct {
	Table string
	// Version is the winner's.
	Version int64
	// Reason says what the two have in common.
	Reason string
	// Operation is the winner's, as its commitInfo has it.
	Operation string
}

// Error names the table, the winner and the reason.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("delta table %q: conflict with version %d (%s): %s", e.Table, e.Version, e.Operation, e.Reason)
}

// NoChangeFeedError says that a table had no change data feed at a version.
type NoChangeFeedError struct {
	Table   string
	Version int64
}

// Error names the table and the version.
func (e *NoChangeFeedError) Error() string {
	return fmt.Sprintf("delta table %q: version %d has no change data feed: %s is not true there", e.Table, e.Version, propertyChangeFeed)
}
