package delta

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the protocol's checksum is MD5: it guards against damage, not against people
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"varve/internal/value"
)

// lastCheckpointName is the file of the log that names a checkpoint.
const lastCheckpointName = "_last_checkpoint"

// maxHintSchema is how long a checkpoint's schema may be to be told in _last_checkpoint, as in Spark: readers take it as a
// convenience, and fetch the file often.
const maxHintSchema = 20_000 // bytes

// lastCheckpointJSON is what _last_checkpoint holds of a checkpoint in one file. PROTOCOL.md, Last Checkpoint File.
type lastCheckpointJSON struct {
	Version          int64           `json:"version"`
	Size             int64           `json:"size"` // actions
	SizeInBytes      int64           `json:"sizeInBytes"`
	NumOfAddFiles    int64           `json:"numOfAddFiles"`
	CheckpointSchema json.RawMessage `json:"checkpointSchema,omitempty"`
	Checksum         string          `json:"checksum,omitempty"`
}

// nameCheckpoint names a checkpoint in _last_checkpoint, unless that names a newer one.
func (t Table) nameCheckpoint(ctx context.Context, hint lastCheckpointJSON, columns value.Schema) error {
	if t.lastCheckpoint(ctx) > hint.Version {
		return nil
	}
	if schema := SchemaString(columns); len(schema) <= maxHintSchema {
		hint.CheckpointSchema = json.RawMessage(schema)
	}
	body, err := appendJSON(nil, hint)
	if err != nil {
		return err
	}
	if hint.Checksum, err = checksumOf(body); err != nil {
		return err
	}
	if body, err = appendJSON(nil, hint); err != nil {
		return err
	}
	return t.Store.Put(ctx, join(t.Root, logDir, lastCheckpointName), bytes.TrimSpace(body))
}

// lastCheckpoint gives the version that _last_checkpoint names, or noVersion where it is missing or damaged: then the log
// is listed from its beginning.
func (t Table) lastCheckpoint(ctx context.Context) int64 {
	body, err := t.Store.Read(ctx, join(t.Root, logDir, lastCheckpointName), 0, -1)
	if err != nil {
		return noVersion
	}
	hint := lastCheckpointJSON{Version: noVersion}
	if json.Unmarshal(body, &hint) != nil {
		return noVersion
	}
	if hint.Checksum != "" {
		if sum, err := checksumOf(body); err != nil || sum != hint.Checksum {
			return noVersion
		}
	}
	return hint.Version
}

// checksumOf is the checksum of a JSON object, its own member "checksum" left out. PROTOCOL.md, JSON checksum.
func checksumOf(body []byte) (string, error) {
	canonical, err := canonicalJSON(body)
	if err != nil {
		return "", err
	}
	sum := md5.Sum([]byte(canonical)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:]), nil
}

// canonicalJSON is the text that the checksum is of: path and value of each leaf, in byte order.
func canonicalJSON(body []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // numbers count as they are written
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return "", err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("something follows the JSON value")
	}
	delete(object, "checksum")
	leaves := appendLeafTexts(nil, "", object)
	slices.Sort(leaves)
	return strings.Join(leaves, ","), nil
}

// appendLeafTexts appends the leaves of a value, each with its path.
func appendLeafTexts(leaves []string, path string, v any) []string {
	below := func(part string) string {
		if path == "" {
			return part
		}
		return path + "+" + part
	}
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			leaves = appendLeafTexts(leaves, below(canonicalText(key)), member)
		}
		return leaves
	case []any:
		for i, element := range v {
			leaves = appendLeafTexts(leaves, below(strconv.Itoa(i)), element)
		}
		return leaves
	case string:
		return append(leaves, path+"="+canonicalText(v))
	case json.Number:
		return append(leaves, path+"="+v.String())
	case bool:
		return append(leaves, path+"="+strconv.FormatBool(v))
	default:
		return append(leaves, path+"=null")
	}
}

// canonicalText is a key or a text of the canonical form: percent-encoded in quotes.
func canonicalText(s string) string {
	const hexDigits = "0123456789ABCDEF"
	b := []byte{'"'}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b = append(b, c)
		default:
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(append(b, '"'))
}
