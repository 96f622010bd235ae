package delta

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"varve/internal/columnar"
	"varve/internal/value"
)

// The limits of stats. PROTOCOL.md, Per-file Statistics.
const (
	defaultIndexedColumns = 32
	statsPrefix           = 32 // UTF-16 units of a text
)

// statsColumns gives the leaves, named "a.b", that stats are kept of.
func statsColumns(schema value.Schema, config map[string]string) []string {
	leaves := leafNames("", schema, []string{})
	if list := config["delta.dataSkippingStatsColumns"]; list != "" {
		var chosen []string
		for name := range strings.SplitSeq(list, ",") {
			chosen = append(chosen, strings.ReplaceAll(strings.TrimSpace(name), "`", ""))
		}
		return slices.DeleteFunc(leaves, func(leaf string) bool {
			return !slices.ContainsFunc(chosen, func(name string) bool {
				return leaf == name || strings.HasPrefix(leaf, name+".")
			})
		})
	}
	limit := defaultIndexedColumns
	if n, err := strconv.Atoi(config["delta.dataSkippingNumIndexedCols"]); err == nil {
		limit = n
	}
	if limit >= 0 && limit < len(leaves) {
		return leaves[:limit]
	}
	return leaves
}

// leafNames appends the names of the leaves of a schema: what is not a struct.
func leafNames(prefix string, schema value.Schema, names []string) []string {
	for _, f := range schema {
		switch f.Type.Kind {
		case value.StructKind:
			names = leafNames(prefix+f.Name+".", f.Type.Fields, names)
		case value.Void:
		default:
			names = append(names, prefix+f.Name)
		}
	}
	return names
}

// statsJSON writes stats as Spark does, which says that bounds are tight where the table may come to have others.
func statsJSON(schema value.Schema, stats columnar.Stats, config map[string]string) string {
	b := []byte(`{"numRecords":`)
	b = strconv.AppendInt(b, stats.NumRecords, 10)
	b = append(b, `,"minValues":{`...)
	b = appendLeaves(b, "", schema, func(b []byte, leaf string) ([]byte, bool) {
		return appendBound(b, stats.Min[leaf], false)
	})
	b = append(b, `},"maxValues":{`...)
	b = appendLeaves(b, "", schema, func(b []byte, leaf string) ([]byte, bool) {
		return appendBound(b, stats.Max[leaf], true)
	})
	b = append(b, `},"nullCount":{`...)
	b = appendLeaves(b, "", schema, func(b []byte, leaf string) ([]byte, bool) {
		n, ok := stats.NullCount[leaf]
		return strconv.AppendInt(b, n, 10), ok
	})
	b = append(b, '}')
	if (Metadata{Configuration: config}).flag(propertyDeletionVectors) {
		b = append(b, `,"tightBounds":true`...)
	}
	return string(append(b, '}'))
}

// appendLeaves appends the members of an object that mirrors the schema. one appends a leaf's, or tells that it has none.
func appendLeaves(b []byte, prefix string, schema value.Schema, one func([]byte, string) ([]byte, bool)) []byte {
	empty := true
	for _, f := range schema {
		start := len(b)
		if !empty {
			b = append(b, ',')
		}
		b = append(appendText(b, f.Name), ':')
		var ok bool
		if f.Type.Kind == value.StructKind {
			b = append(b, '{')
			inner := len(b)
			b = appendLeaves(b, prefix+f.Name+".", f.Type.Fields, one)
			ok = len(b) > inner
			b = append(b, '}')
		} else {
			b, ok = one(b, prefix+f.Name)
		}
		if !ok {
			b = b[:start]
			continue
		}
		empty = false
	}
	return b
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	quoted, err := appendJSON(nil, s)
	if err != nil { // no text fails to encode
		return append(b, `""`...)
	}
	return append(b, quoted[:len(quoted)-1]...)
}

// appendBound appends a smallest or a greatest value, or tells that there is none to be had.
func appendBound(b []byte, v value.Value, greatest bool) ([]byte, bool) {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10), true
	case float32:
		return appendFloat(b, float64(v), 32), true
	case float64:
		return appendFloat(b, v, 64), true
	case value.Decimal:
		return append(b, decimalText(v)...), true
	case value.Date:
		return appendText(b, time.Unix(int64(v)*86400, 0).UTC().Format(time.DateOnly)), true
	case value.Timestamp:
		return appendText(b, millis(int64(v)).Format("2006-01-02T15:04:05.000Z")), true
	case value.LocalTimestamp:
		return appendText(b, millis(int64(v)).Format("2006-01-02T15:04:05.000")), true
	case string:
		if !greatest {
			return appendText(b, shortest(v)), true
		}
		s, ok := longest(v)
		return appendText(b, s), ok
	default:
		return b, false
	}
}

// millis is an instant cut down to milliseconds, in UTC.
func millis(micros int64) time.Time {
	return time.UnixMicro(micros - ((micros%1000)+1000)%1000).UTC()
}

// appendFloat appends a number, or the name of what is none.
func appendFloat(b []byte, f float64, bits int) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return appendText(b, javaFloat(f, bits))
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-3 || abs >= 1e7) {
		return strconv.AppendFloat(b, f, 'e', -1, bits)
	}
	return append(b, javaFloat(f, bits)...)
}

// cut gives the longest prefix of so many UTF-16 units that does not cut a character, and the rest.
func cut(s string, units int) (prefix, rest string) {
	n := 0
	for i, r := range s {
		n += utf16.RuneLen(max(r, 0))
		if n > units {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// shortest is a text that is not greater, short enough for stats.
func shortest(s string) string {
	prefix, _ := cut(s, statsPrefix)
	return prefix
}

// longest is a text that is not smaller, short enough for stats: a prefix with a character after it that is greater than
// what is cut off. There may be none.
func longest(s string) (string, bool) {
	prefix, rest := cut(s, statsPrefix)
	for rest != "" {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r < 0x7f:
			return prefix + "\x7f", true
		case r < utf8.MaxRune:
			return prefix + string(utf8.MaxRune), true
		}
		prefix, rest = s[:len(prefix)+size], rest[size:]
		if tooLong, _ := cut(prefix, 2*statsPrefix); tooLong != prefix {
			return "", false
		}
	}
	return prefix, true
}
