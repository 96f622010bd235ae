package delta

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/value"
)

// legacyReader are the features that readers must know, also where they are listed for writers only in old protocols.
func needsReader(feature string) bool {
	switch strings.TrimSuffix(feature, "-preview") {
	case "columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening", "variantType",
		"variantShredding", "catalogManaged", "geospatial", "adaptiveMetadata":
		return true
	default:
		return false
	}
}

// inUse is a table that makes use of a feature.
func inUse(feature string) Metadata {
	field := value.Field{Name: "c", Type: value.Type{Kind: value.Long}, Nullable: true, Metadata: map[string]any{}}
	config := map[string]string{}
	switch feature {
	case "invariants":
		field.Metadata["delta.invariants"] = `{"expression":{"expression":"c > 0"}}`
	case "checkConstraints":
		config["delta.constraints.positive"] = "c > 0"
	case "generatedColumns":
		field.Metadata["delta.generationExpression"] = "1"
	case "identityColumns":
		field.Metadata["delta.identity.start"] = 1
	case "allowColumnDefaults":
		field.Metadata["CURRENT_DEFAULT"] = "1"
	case "columnMapping":
		config["delta.columnMapping.mode"] = mappingName
	case "inCommitTimestamp":
		config["delta.enableInCommitTimestamps"] = "true"
	case "deletionVectors":
		config[propertyDeletionVectors] = "true"
	case "changeDataFeed":
		config["delta.enableChangeDataFeed"] = "true"
	case "appendOnly":
		config["delta.appendOnly"] = "true"
	case "timestampNtz":
		field.Type = value.Type{Kind: value.TimestampNTZ}
	case "variantType", "variantType-preview":
		field.Type = value.Type{Kind: value.VariantKind}
	}
	return Metadata{ID: "t", Schema: value.Schema{field}, Configuration: config}
}

// TestTheSupportTableIsTrue reads docs/reference/delta.md and holds each of its lines to the program.
func TestTheSupportTableIsTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/delta.md")
	require.NoError(t, err)
	line := regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| ([a-z ]+) \\| ([a-z ]+) \\|")
	told := map[string]bool{}
	for _, m := range line.FindAllStringSubmatch(string(page), -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			feature := strings.Trim(name, "`")
			told[feature] = true
			p := Protocol{MinReaderVersion: featureReader, MinWriterVersion: featureWriter, WriterFeatures: []string{feature}}
			if needsReader(feature) {
				p.ReaderFeatures = []string{feature}
			}
			unused := Metadata{ID: "t", Schema: value.Schema{{Name: "c", Type: value.Type{Kind: value.Long}, Nullable: true}}}
			require.Equal(t, m[2], verdict(t, p.checkRead(), nil), "reading %s", feature)
			require.Equal(t, m[3], verdict(t, p.checkWrite(unused), p.checkWrite(inUse(feature))), "writing %s", feature)
		}
	}
	for _, feature := range writable() {
		require.True(t, told[feature], "the page does not tell of %s", feature)
	}
}

// verdict is the page's word for what is refused of a feature that is unused, and of one in use.
func verdict(t *testing.T, unused, used error) string {
	t.Helper()
	for _, err := range []error{unused, used} {
		if err == nil {
			continue
		}
		unsupported, ok := errors.AsType[*UnsupportedError](err)
		require.True(t, ok, err)
		require.NotEmpty(t, unsupported.Feature)
	}
	switch {
	case unused != nil:
		return "refused"
	case used != nil:
		return "while unused"
	default:
		return "yes"
	}
}
