package merge

import "fmt"

// ForeignChangeError says that somebody else changed a target's rows since varve's last commit.
type ForeignChangeError struct {
	Table string
	// Version and Operation are those of the commit.
	Version   int64
	Operation string
	// Ours is the newest version whose rows are varve's.
	Ours int64
}

func (e *ForeignChangeError) Error() string {
	return fmt.Sprintf("table %q: version %d (%s) was written by another engine since the last commit of varve: restore version %d (RESTORE TABLE … TO VERSION AS OF %d); adopting foreign changes comes with a later version",
		e.Table, e.Version, e.Operation, e.Ours, e.Ours)
}

// NotOursError says that a table stands where a target should be made.
type NotOursError struct{ Table string }

func (e *NotOursError) Error() string {
	return fmt.Sprintf("table %q exists and was not made by varve: choose another name (taking over a table, varve adopt, comes with a later version)", e.Table)
}

// DriftError says that a contract no longer fits the table it maintains.
type DriftError struct{ Table, Reason string }

func (e *DriftError) Error() string {
	return fmt.Sprintf("table %q: %s: choose another table name (changing it in place, varve restate, comes with a later version)", e.Table, e.Reason)
}

// SequenceError says that a data file does not tell the sequences of its rows.
type SequenceError struct{ Table, File string }

func (e *SequenceError) Error() string {
	return fmt.Sprintf("table %q: file %q was written by another engine and has no sequences: restore the last version without that file (recovery comes with a later version)", e.Table, e.File)
}
