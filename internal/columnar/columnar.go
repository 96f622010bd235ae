// Package columnar turns rows into Parquet files and Parquet files into rows, with exactly the types of Delta tables.
// It knows nothing of logs, versions or stores: one file goes in, or comes out.
package columnar

import (
	"fmt"

	"varve/internal/value"
)

// The keys of a field's metadata that say how it is named and numbered in data files (PROTOCOL.md, Column Mapping).
const (
	PhysicalName = "delta.columnMapping.physicalName"
	FieldID      = "delta.columnMapping.id"
)

// FormatError says that a file is not Parquet, is damaged, or contradicts itself.
type FormatError struct {
	// Reason says what is wrong, without any value of the file.
	Reason string
	// Err is the cause, nil where there is none.
	Err error
}

func (e *FormatError) Error() string {
	if e.Err == nil {
		return "parquet: " + e.Reason
	}
	return "parquet: " + e.Reason + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// TypeError says that a column of a file cannot be read as the type asked for, or that a type cannot be written.
type TypeError struct {
	// Column is the path of the column, its names joined by dots.
	Column string
	// Reason says what stands against it.
	Reason string
}

func (e *TypeError) Error() string { return fmt.Sprintf("column %q: %s", e.Column, e.Reason) }

func damaged(format string, args ...any) error {
	return &FormatError{Reason: fmt.Sprintf(format, args...)}
}

// recovered gives a panic of the Parquet library as an error: it panics on some malformed input.
func recovered(p any) error {
	if err, ok := p.(error); ok {
		return err
	}
	return fmt.Errorf("%v", p)
}

// physicalName is the name a field has in data files.
func physicalName(f value.Field) string {
	if name, ok := f.Metadata[PhysicalName].(string); ok && name != "" {
		return name
	}
	return f.Name
}

// fieldID is the number a field has in data files, 0 where it has none.
func fieldID(f value.Field) int {
	switch id := f.Metadata[FieldID].(type) {
	case int:
		return id
	case int32:
		return int(id)
	case int64:
		return int(id)
	case float64:
		return int(id)
	case interface{ Int64() (int64, error) }: // json.Number
		if n, err := id.Int64(); err == nil {
			return int(n)
		}
	}
	return 0
}

// join extends a path of names.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
