package source

import "fmt"

// MissingError says that there is no folder where the source's files should be.
type MissingError struct {
	// Path is the folder, below the landing location.
	Path string
	Hint string
}

// Error names the folder and what to do.
func (e *MissingError) Error() string {
	return fmt.Sprintf("source folder %q does not exist: %s", e.Path, e.Hint)
}

// ReplacedError says that a file that a batch has came again with other content.
type ReplacedError struct {
	File  string
	Batch int64
}

// Error names the file, its batch and what to do.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("file %q has other content than when batch %d claimed it: give the new content a new name, "+
		"or put the old content back; replacing a landed file is not possible yet", e.File, e.Batch)
}

// UnreadableError says that a file of the source cannot be read.
type UnreadableError struct {
	File string
	Err  error
}

// Error names the file and the cause.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("cannot read source file %q: %v; make it readable for this process, or take it away", e.File, e.Err)
}

// Unwrap gives the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// LostError says that batches which tables know of are not what is in bronze: it was moved, or restored from an older backup.
type LostError struct {
	Dataset string
	// Batch is one that a table has, and bronze has not or has as another one.
	Batch int64
	// Table has it.
	Table string
}

// Error names the dataset, the batch and what to do.
func (e *LostError) Error() string {
	return fmt.Sprintf("dataset %q: table %q has batch %d, and bronze/%s/_batches has none of that number, or another one: restore "+
		"bronze/%s with its _batches from a backup that is as new as the table", e.Dataset, e.Table, e.Batch, e.Dataset, e.Dataset)
}

// ChangedError says that a file is not what its batch claimed.
type ChangedError struct {
	File  string
	Batch int64
}

// Error names the file and the batch.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("file %q is not as batch %d claimed it", e.File, e.Batch)
}
