package delta

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"varve/internal/value"
)

// Metadata is what a table is: its columns, its partitioning and its properties. Its JSON is the protocol's.
type Metadata struct {
	ID               string
	Name             string
	Description      string
	Schema           value.Schema
	PartitionColumns []string
	Configuration    map[string]string
	// CreatedTime is in milliseconds since 1970; Commit sets it where it is 0.
	CreatedTime int64
}

// NewMetadata describes a new table, with a fresh ID.
func NewMetadata(schema value.Schema, partition []string, config map[string]string) Metadata {
	return Metadata{ID: uuid.NewString(), Schema: schema, PartitionColumns: partition, Configuration: config}
}

// format is how data files are stored; the protocol knows parquet only.
type format struct {
	Provider string            `json:"provider"`
	Options  map[string]string `json:"options"`
}

// metadataJSON is the protocol's form of Metadata.
type metadataJSON struct {
	ID               string            `json:"id"`
	Name             string            `json:"name,omitempty"`
	Description      string            `json:"description,omitempty"`
	Format           format            `json:"format"`
	SchemaString     string            `json:"schemaString"`
	PartitionColumns []string          `json:"partitionColumns"`
	Configuration    map[string]string `json:"configuration"`
	CreatedTime      int64             `json:"createdTime,omitempty"`
}

// MarshalJSON writes the protocol's form.
func (m Metadata) MarshalJSON() ([]byte, error) { return json.Marshal(m.json()) }

// json gives the protocol's form.
func (m Metadata) json() metadataJSON {
	out := metadataJSON{
		ID: m.ID, Name: m.Name, Description: m.Description,
		Format:       format{Provider: "parquet", Options: map[string]string{}},
		SchemaString: SchemaString(m.Schema), PartitionColumns: append([]string{}, m.PartitionColumns...),
		Configuration: m.Configuration, CreatedTime: m.CreatedTime,
	}
	if out.Configuration == nil {
		out.Configuration = map[string]string{}
	}
	return out
}

// UnmarshalJSON reads the protocol's form.
func (m *Metadata) UnmarshalJSON(raw []byte) error {
	var in metadataJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	parsed, err := in.metadata()
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}

// metadata parses the schema and checks that the partition columns are columns.
func (in metadataJSON) metadata() (Metadata, error) {
	if in.Format.Provider != "" && in.Format.Provider != "parquet" {
		return Metadata{}, &UnsupportedError{Feature: "format " + in.Format.Provider}
	}
	if in.SchemaString == "" {
		return Metadata{}, errors.New("metaData without a schemaString")
	}
	schema, err := ParseSchema(in.SchemaString)
	if err != nil {
		return Metadata{}, err
	}
	for _, name := range in.PartitionColumns {
		if schema.Index(name) < 0 {
			return Metadata{}, fmt.Errorf("partition column %q is not in the schema", name)
		}
	}
	return Metadata{
		ID: in.ID, Name: in.Name, Description: in.Description, Schema: schema, PartitionColumns: in.PartitionColumns,
		Configuration: in.Configuration, CreatedTime: in.CreatedTime,
	}, nil
}

// flag tells whether a property is true.
func (m Metadata) flag(property string) bool {
	return strings.EqualFold(m.Configuration[property], "true")
}

// mapping gives the column mapping mode: none, name or id.
func (m Metadata) mapping() string {
	if mode := m.Configuration["delta.columnMapping.mode"]; mode != "" {
		return mode
	}
	return mappingNone
}

// The column mapping modes.
const (
	mappingNone = "none"
	mappingName = "name"
	mappingID   = "id"
)

// physicalName is the name of a column in data files, in partition values and in stats.
func (m Metadata) physicalName(f value.Field) string {
	if m.mapping() == mappingNone {
		return f.Name
	}
	if name, ok := f.Metadata["delta.columnMapping.physicalName"].(string); ok {
		return name
	}
	return f.Name
}

// isPartition tells whether a column is a partition column.
func (m Metadata) isPartition(name string) bool {
	for _, p := range m.PartitionColumns {
		if p == name {
			return true
		}
	}
	return false
}
