package value

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The layouts of dates and times in text.
const (
	dateLayout  = "2006-01-02"
	microLayout = "2006-01-02T15:04:05.000000"
)

// Canonical is the one text of a value: equal values have equal texts (semantics, Collapse).
func Canonical(v Value) string { return string(AppendCanonical(nil, v)) }

// AppendCanonical appends the canonical text of a value: JSON without spaces, names in byte order.
func AppendCanonical(dst []byte, v Value) []byte {
	switch x := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, x)
	case int64:
		return strconv.AppendInt(dst, x, 10)
	case float32:
		return appendFloat(dst, float64(x))
	case float64:
		return appendFloat(dst, x)
	case Decimal:
		return append(dst, plain(x)...)
	case string:
		return appendText(dst, x)
	case Binary:
		return appendHex(dst, x)
	case Date:
		return appendText(dst, x.String())
	case Timestamp:
		return appendText(dst, x.String())
	case LocalTimestamp:
		return appendText(dst, x.String())
	case Struct:
		return appendMembers(dst, x)
	case List:
		return appendList(dst, len(x), func(dst []byte, i int) []byte { return AppendCanonical(dst, x[i]) })
	case Map:
		return appendEntries(dst, x)
	case Variant:
		return appendHex(append(appendHex(append(dst, '['), x.Metadata), ','), x.Value, ']')
	default:
		return append(dst, "null"...) // no other dynamic type exists
	}
}

// KeyText is the identity of a key: the canonical JSON array of its parts.
func KeyText(key []Value) string {
	return string(appendList(nil, len(key), func(dst []byte, i int) []byte { return AppendCanonical(dst, key[i]) }))
}

// String is the date as 2026-09-14.
func (d Date) String() string { return time.Unix(int64(d)*86400, 0).UTC().Format(dateLayout) }

// String is the instant in UTC, with six digits of fraction.
func (t Timestamp) String() string {
	return time.UnixMicro(int64(t)).UTC().Format(microLayout) + "Z"
}

// String is the time without zone, with six digits of fraction.
func (t LocalTimestamp) String() string { return time.UnixMicro(int64(t)).UTC().Format(microLayout) }

// String is the decimal in plain digits, with its scale.
func (d Decimal) String() string {
	digits, sign := d.Unscaled.String(), ""
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		digits, sign = rest, "-"
	}
	if d.Scale <= 0 {
		return sign + digits + strings.Repeat("0", -d.Scale)
	}
	if len(digits) <= d.Scale {
		digits = strings.Repeat("0", d.Scale-len(digits)+1) + digits
	}
	at := len(digits) - d.Scale
	return sign + digits[:at] + "." + digits[at:]
}

// plain is a decimal without trailing zeros.
func plain(d Decimal) string {
	text := d.String()
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	case f == 0:
		return append(dst, '0')
	default:
		return strconv.AppendFloat(dst, f, 'g', -1, 64)
	}
}

// appendText quotes a string, escaping only what JSON must have escaped.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= ' ':
			dst = append(dst, c)
		case strings.IndexByte("\b\f\n\r\t", c) >= 0:
			dst = append(dst, '\\', "bfnrt"[strings.IndexByte("\b\f\n\r\t", c)])
		default:
			const digits = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(dst, '"')
}

// appendHex appends bytes as quoted lower-case hex, then what closes them.
func appendHex(dst, b []byte, tail ...byte) []byte {
	dst = append(dst, '"')
	dst = hex.AppendEncode(dst, b)
	return append(append(dst, '"'), tail...)
}

func appendMembers(dst []byte, s Struct) []byte {
	sorted := slices.SortedFunc(slices.Values(s), func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	dst = append(dst, '{')
	for i, m := range sorted {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendCanonical(append(appendText(dst, m.Name), ':'), m.Value)
	}
	return append(dst, '}')
}

func appendList(dst []byte, n int, at func(dst []byte, i int) []byte) []byte {
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = at(dst, i)
	}
	return append(dst, ']')
}

// appendEntries writes a map as [key, value] pairs by the key's text.
func appendEntries(dst []byte, m Map) []byte {
	sorted := m.sorted()
	return appendList(dst, len(sorted), func(dst []byte, i int) []byte { return append(dst, sorted[i].text...) })
}

// textEntry is an entry with the canonical texts of its key and of the pair.
type textEntry struct {
	Entry
	key, text string
}

// sorted gives the entries by the key's text.
func (m Map) sorted() []textEntry {
	out := make([]textEntry, len(m))
	for i, e := range m {
		out[i] = textEntry{Entry: e, key: Canonical(e.Key), text: KeyText([]Value{e.Key, e.Value})}
	}
	slices.SortFunc(out, func(a, b textEntry) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.text, b.text))
	})
	return out
}
