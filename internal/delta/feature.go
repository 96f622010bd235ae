package delta

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"varve/internal/value"
)

// The versions from which on the features of a protocol are listed by name.
const (
	featureReader = 3
	featureWriter = 7
)

// The features that code asks for by name.
const featureDeletionVectors = "deletionVectors"

// readable are the reader features that this package knows.
func readable() []string {
	return []string{
		"columnMapping", featureDeletionVectors, "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
		"vacuumProtocolCheck", "variantType", "variantType-preview",
	}
}

// writable are the writer features that need nothing of this package as long as they are not active.
func writable() []string {
	return append(readable(), "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns",
		"identityColumns", "allowColumnDefaults", "domainMetadata", "inCommitTimestamp", "checkpointProtection")
}

// checkRead tells which feature, if any, forbids to read.
func (p Protocol) checkRead() error {
	if p.MinReaderVersion > featureReader {
		return &UnsupportedError{Feature: fmt.Sprintf("minReaderVersion %d%s", p.MinReaderVersion, unknown(p.ReaderFeatures))}
	}
	if p.MinReaderVersion < featureReader {
		return nil
	}
	for _, name := range p.ReaderFeatures {
		if !slices.Contains(readable(), name) {
			return &UnsupportedError{Feature: "feature " + strconv.Quote(name)}
		}
	}
	return nil
}

// unknown lists the reader features that this package does not know.
func unknown(features []string) string {
	var names []string
	for _, name := range features {
		if !slices.Contains(readable(), name) {
			names = append(names, strconv.Quote(name))
		}
	}
	if names == nil {
		return ""
	}
	return " with " + strings.Join(names, ", ")
}

// checkWrite tells which feature, if any, forbids to write.
func (p Protocol) checkWrite(m Metadata) error {
	if err := p.checkRead(); err != nil {
		return err
	}
	refuse := func(what string) error { return &UnsupportedError{Feature: what, Write: true} }
	if p.MinWriterVersion > featureWriter {
		return refuse("minWriterVersion " + strconv.Itoa(p.MinWriterVersion))
	}
	if p.MinWriterVersion == featureWriter {
		for _, name := range p.WriterFeatures {
			if !slices.Contains(writable(), name) {
				return refuse("feature " + strconv.Quote(name))
			}
		}
	}
	if mode := m.mapping(); mode != mappingNone {
		return refuse("column mapping by " + mode)
	}
	if m.flag("delta.enableInCommitTimestamps") {
		return refuse("in-commit timestamps")
	}
	if retention, ok := m.Configuration["delta.setTransactionRetentionDuration"]; ok {
		return refuse("delta.setTransactionRetentionDuration = " + strconv.Quote(retention) + ", by which writers forget what they applied,")
	}
	for property := range m.Configuration {
		if strings.HasPrefix(property, "delta.constraints.") {
			return refuse("check constraint " + strconv.Quote(strings.TrimPrefix(property, "delta.constraints.")))
		}
	}
	if err := m.checkFeed(p); err != nil {
		return err
	}
	return m.checkColumns(p)
}

// checkColumns refuses columns whose values this package cannot compute or check, and types that the protocol lacks.
func (m Metadata) checkColumns(p Protocol) error {
	for f := range fields(m.Schema) {
		for property := range f.Metadata {
			var what string
			switch {
			case property == "delta.invariants":
				what = "invariant"
			case property == "delta.generationExpression":
				what = "generation expression"
			case strings.HasPrefix(property, "delta.identity."):
				what = "identity"
			default:
				continue
			}
			return &UnsupportedError{Feature: fmt.Sprintf("%s of column %q", what, f.Name), Write: true}
		}
		for feature, kind := range map[string]value.Kind{"timestampNtz": value.TimestampNTZ, "variantType": value.VariantKind} {
			if f.Type.Kind == kind && !p.has(feature) && !p.has(feature+"-preview") {
				return fmt.Errorf("column %q needs the feature %q", f.Name, feature)
			}
		}
	}
	return nil
}

// has tells whether the protocol lists a feature.
func (p Protocol) has(feature string) bool {
	return slices.Contains(p.WriterFeatures, feature)
}

// fields gives the fields of a schema at any depth, elements of arrays and maps too.
func fields(s value.Schema) func(yield func(value.Field) bool) {
	var walk func(f value.Field, yield func(value.Field) bool) bool
	walk = func(f value.Field, yield func(value.Field) bool) bool {
		if !yield(f) {
			return false
		}
		for _, member := range f.Type.Fields {
			if !walk(member, yield) {
				return false
			}
		}
		for _, inner := range []*value.Type{f.Type.Key, f.Type.Elem} {
			if inner != nil && !walk(value.Field{Name: f.Name, Type: *inner}, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func(value.Field) bool) {
		for _, f := range s {
			if !walk(f, yield) {
				return
			}
		}
	}
}

// MinProtocol is the least that a table of these columns asks of its clients.
func MinProtocol(schemas ...value.Schema) Protocol {
	p := Protocol{MinReaderVersion: 1, MinWriterVersion: 2}
	var names []string
	for _, s := range schemas {
		for f := range fields(s) {
			switch f.Type.Kind {
			case value.TimestampNTZ:
				names = append(names, "timestampNtz")
			case value.VariantKind:
				names = append(names, "variantType")
			default:
			}
		}
	}
	if names == nil {
		return p
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return Protocol{
		MinReaderVersion: featureReader, MinWriterVersion: featureWriter, ReaderFeatures: names,
		WriterFeatures: append([]string{"appendOnly", "invariants"}, names...),
	}
}
