package delta

import (
	"context"
	"time"
)

// Totals are the sums over a version's files.
type Totals struct {
	Files int64
	Bytes int64
	// Rows are the live rows, -1 where a file does not tell its number.
	Rows int64
	// Vectors are the files with a deletion vector, and Deleted the rows that these hide.
	Vectors int64
	Deleted int64
}

// Totals sums up the version's files.
func (s *Snapshot) Totals() Totals {
	out := Totals{Files: int64(len(s.files))}
	for _, a := range s.files {
		out.Bytes += a.Size
		if n, ok := a.Records(); ok && out.Rows >= 0 {
			out.Rows += n
		} else {
			out.Rows = -1
		}
		if a.DeletionVector == nil {
			continue
		}
		out.Vectors++
		out.Deleted += a.DeletionVector.Cardinality
	}
	if out.Rows >= 0 {
		out.Rows -= out.Deleted
	}
	return out
}

// StatsColumns are the leaves, named "a.b", that a table keeps stats of.
func (m Metadata) StatsColumns() []string {
	return statsColumns(m.storedColumns(), m.Configuration)
}

// NewestCheckpoint gives the version of the newest complete checkpoint and the time of its file; -1 where there is none.
func (t Table) NewestCheckpoint(ctx context.Context) (int64, time.Time, error) {
	files, err := t.listLog(ctx, 0, noVersion)
	if err != nil {
		return noVersion, time.Time{}, err
	}
	checkpoint := newestCheckpoint(files)
	if len(checkpoint) == 0 {
		return noVersion, time.Time{}, nil
	}
	return checkpoint[0].version, checkpoint[0].modified, nil
}
