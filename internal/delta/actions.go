package delta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Add says that a data file belongs to the table. Its JSON is the protocol's.
type Add struct {
	// Path is the file's, relative to the table's root and percent-encoded.
	Path string `json:"path"`
	// PartitionValues has a text for each partition column, nil for null.
	PartitionValues  map[string]*string `json:"partitionValues"`
	Size             int64              `json:"size"`
	ModificationTime int64              `json:"modificationTime"`
	// DataChange is false where the commit only rearranges rows that the table has already.
	DataChange bool `json:"dataChange"`
	// Stats is JSON text, empty where there are none.
	Stats                   string            `json:"stats,omitempty"`
	Tags                    map[string]string `json:"tags,omitzero"`
	DeletionVector          *DeletionVector   `json:"deletionVector,omitempty"`
	BaseRowID               *int64            `json:"baseRowId,omitempty"`
	DefaultRowCommitVersion *int64            `json:"defaultRowCommitVersion,omitempty"`
	ClusteringProvider      string            `json:"clusteringProvider,omitempty"`
}

// Records gives the number of rows that the file holds physically, where its stats tell.
func (a Add) Records() (int64, bool) {
	var stats struct {
		NumRecords *int64 `json:"numRecords"`
	}
	if a.Stats == "" || json.Unmarshal([]byte(a.Stats), &stats) != nil || stats.NumRecords == nil {
		return 0, false
	}
	return *stats.NumRecords, true
}

// Remove says that a data file no longer belongs to the table. Its JSON is the protocol's.
type Remove struct {
	Path                    string             `json:"path"`
	DeletionTimestamp       int64              `json:"deletionTimestamp,omitempty"`
	DataChange              bool               `json:"dataChange"`
	ExtendedFileMetadata    bool               `json:"extendedFileMetadata,omitempty"`
	PartitionValues         map[string]*string `json:"partitionValues,omitzero"`
	Size                    int64              `json:"size,omitempty"`
	Stats                   string             `json:"stats,omitempty"`
	Tags                    map[string]string  `json:"tags,omitzero"`
	DeletionVector          *DeletionVector    `json:"deletionVector,omitempty"`
	BaseRowID               *int64             `json:"baseRowId,omitempty"`
	DefaultRowCommitVersion *int64             `json:"defaultRowCommitVersion,omitempty"`
}

// ChangeFile says that a file has rows that a commit changed, in a table with a change data feed. It is no part of the table.
// Its JSON is the protocol's cdc action.
type ChangeFile struct {
	Path            string             `json:"path"`
	PartitionValues map[string]*string `json:"partitionValues"`
	Size            int64              `json:"size"`
	DataChange      bool               `json:"dataChange"` // always false
	Tags            map[string]string  `json:"tags,omitzero"`
}

// RemoveOf is the removal of a file at a time.
func RemoveOf(a Add, now time.Time, dataChange bool) Remove {
	return Remove{
		Path: a.Path, DeletionTimestamp: now.UnixMilli(), DataChange: dataChange, ExtendedFileMetadata: true,
		PartitionValues: a.PartitionValues, Size: a.Size, Stats: a.Stats, Tags: a.Tags, DeletionVector: a.DeletionVector,
		BaseRowID: a.BaseRowID, DefaultRowCommitVersion: a.DefaultRowCommitVersion,
	}
}

// Txn is a writer's own mark: the newest of each AppID belongs to the table. Its JSON is the protocol's.
type Txn struct {
	AppID   string `json:"appId"`
	Version int64  `json:"version"`
	// LastUpdated is in milliseconds since 1970; Commit sets it where it is 0.
	LastUpdated int64 `json:"lastUpdated,omitempty"`
}

// Protocol is what a client must know to read and to write a table. Its JSON is the protocol's.
type Protocol struct {
	MinReaderVersion int      `json:"minReaderVersion"`
	MinWriterVersion int      `json:"minWriterVersion"`
	ReaderFeatures   []string `json:"readerFeatures,omitempty"`
	WriterFeatures   []string `json:"writerFeatures,omitempty"`
}

// MarshalJSON writes the feature lists exactly where the versions call for them, if need be empty.
func (p Protocol) MarshalJSON() ([]byte, error) {
	out := struct {
		MinReaderVersion int       `json:"minReaderVersion"`
		MinWriterVersion int       `json:"minWriterVersion"`
		ReaderFeatures   *[]string `json:"readerFeatures,omitempty"`
		WriterFeatures   *[]string `json:"writerFeatures,omitempty"`
	}{MinReaderVersion: p.MinReaderVersion, MinWriterVersion: p.MinWriterVersion}
	list := func(names []string) *[]string {
		names = append([]string{}, names...)
		return &names
	}
	if p.MinReaderVersion == featureReader {
		out.ReaderFeatures = list(p.ReaderFeatures)
	}
	if p.MinWriterVersion == featureWriter {
		out.WriterFeatures = list(p.WriterFeatures)
	}
	return json.Marshal(out)
}

// domainMetadata is a named text that belongs to the table.
type domainMetadata struct {
	Domain        string `json:"domain"`
	Configuration string `json:"configuration"`
	Removed       bool   `json:"removed"`
}

// sidecar names a file with file actions, in a V2 checkpoint.
type sidecar struct {
	Path        string `json:"path"`
	SizeInBytes int64  `json:"sizeInBytes"`
}

// commitInfo is free-form: only its members that have a meaning for the protocol are looked at.
type commitInfo map[string]json.RawMessage

// text gives a member that is a string, empty where it is not.
func (c commitInfo) text(name string) string {
	var s string
	if json.Unmarshal(c[name], &s) != nil {
		return ""
	}
	return s
}

// number gives a member that is an integer.
func (c commitInfo) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(c[name])), 10, 64)
	return n, err == nil
}

// action is one line of the log: one of its members is there, or none where the action is unknown.
type action struct {
	Add            *Add            `json:"add,omitempty"`
	Remove         *Remove         `json:"remove,omitempty"`
	CDC            *ChangeFile     `json:"cdc,omitempty"`
	Metadata       *Metadata       `json:"metaData,omitempty"`
	Protocol       *Protocol       `json:"protocol,omitempty"`
	Txn            *Txn            `json:"txn,omitempty"`
	DomainMetadata *domainMetadata `json:"domainMetadata,omitempty"`
	Sidecar        *sidecar        `json:"sidecar,omitempty"`
	CommitInfo     commitInfo      `json:"commitInfo,omitempty"`
}

// check tells what a required member lacks.
func (a action) check() error {
	switch {
	case a.Add != nil && a.Add.Path == "":
		return errors.New("add without a path")
	case a.Remove != nil && a.Remove.Path == "":
		return errors.New("remove without a path")
	case a.CDC != nil && a.CDC.Path == "":
		return errors.New("cdc without a path")
	case a.Protocol != nil && (a.Protocol.MinReaderVersion < 1 || a.Protocol.MinWriterVersion < 1):
		return errors.New("protocol without versions")
	case a.Txn != nil && a.Txn.AppID == "":
		return errors.New("txn without an appId")
	case a.DomainMetadata != nil && a.DomainMetadata.Domain == "":
		return errors.New("domainMetadata without a domain")
	case a.Sidecar != nil && a.Sidecar.Path == "":
		return errors.New("sidecar without a path")
	}
	if a.Add != nil {
		return a.Add.DeletionVector.check()
	}
	if a.Remove != nil {
		return a.Remove.DeletionVector.check()
	}
	return nil
}

// parseActions reads newline-delimited actions. It goes on after a bad line, so that the caller may learn of a protocol
// that explains it; the error is the first one.
func parseActions(body []byte) ([]action, error) {
	var actions []action
	var first error
	number := 0
	for line := range bytes.Lines(body) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		a, err := parseAction(line)
		if err != nil {
			if first == nil {
				first = fmt.Errorf("line %d: %w", number, err)
			}
			continue
		}
		actions = append(actions, a)
	}
	return actions, first
}

// parseAction reads one line.
func parseAction(line []byte) (action, error) {
	var a action
	if line[0] != '{' {
		return action{}, errors.New("not a JSON object")
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return action{}, err
	}
	return a, a.check()
}

// appendJSON appends the JSON of v without the escapes meant for HTML, and a newline.
func appendJSON(dst []byte, v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return append(dst, buf.Bytes()...), nil
}
