package delta

import (
	"slices"
	"time"

	"varve/internal/value"
)

// Snapshot is one version of a table. It does not change.
type Snapshot struct {
	table   Table
	version int64
	state   *state
	files   []Add
	at      time.Time
}

// Table gives where the snapshot is from.
func (s *Snapshot) Table() Table { return s.table }

// Version gives the version's number.
func (s *Snapshot) Version() int64 { return s.version }

// Metadata gives what the table is.
func (s *Snapshot) Metadata() Metadata { return *s.state.metadata }

// Protocol gives what a client must know.
func (s *Snapshot) Protocol() Protocol { return *s.state.protocol }

// Schema gives the columns, partition columns among them.
func (s *Snapshot) Schema() value.Schema { return s.state.metadata.Schema }

// Timestamp gives when the version was committed, by the store's clock unless the commit tells.
func (s *Snapshot) Timestamp() time.Time { return s.at }

// Files gives the data files, ordered by path. The caller may change the slice.
func (s *Snapshot) Files() []Add { return slices.Clone(s.files) }

// SameFiles tells whether two versions of one table have the same data files with the same deletion vectors, and so the
// same rows.
func (s *Snapshot) SameFiles(o *Snapshot) bool {
	if s.state.files.len() != o.state.files.len() {
		return false
	}
	for key := range s.state.files.at {
		if !o.state.files.has(key) {
			return false
		}
	}
	return true
}

// LiveRows counts the rows of data files that no deletion vector deletes, where the statistics of all of them tell.
func LiveRows(files []Add) (int64, bool) {
	var rows int64
	for _, a := range files {
		n, ok := a.Records()
		if !ok {
			return 0, false
		}
		rows += n - a.DeletionVector.deletes()
	}
	return rows, true
}

// Txn gives the newest version of a writer's own mark.
func (s *Snapshot) Txn(appID string) (int64, bool) {
	txn, ok := s.state.txns[appID]
	return txn.Version, ok
}

// Domain gives the configuration of a metadata domain.
func (s *Snapshot) Domain(name string) (string, bool) {
	d, ok := s.state.domains[name]
	return d.Configuration, ok && !d.Removed
}

// Operation gives the operation that made the version, empty where its commit does not tell.
func (s *Snapshot) Operation() string { return s.state.info.text("operation") }

// Key gives the key in the store of a data file.
func (s *Snapshot) Key(a Add) (string, error) {
	p, err := filePath(a.Path)
	if err != nil {
		return "", s.table.corrupt(s.version, a.Path, err)
	}
	return join(s.table.Root, p), nil
}

// Partition gives the values of the partition columns in a data file, by column name.
func (s *Snapshot) Partition(a Add) (map[string]value.Value, error) {
	values := make(map[string]value.Value, len(s.state.metadata.PartitionColumns))
	for _, f := range s.state.metadata.Schema {
		if !s.state.metadata.isPartition(f.Name) {
			continue
		}
		v, err := parsePartition(f.Type, a.PartitionValues[s.state.metadata.physicalName(f)])
		if err != nil {
			return nil, s.table.corrupt(s.version, a.Path, err)
		}
		values[f.Name] = v
	}
	return values, nil
}
