package value

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// ConvertError says that a text or a JSON value is not a value of a type. It never carries the value.
type ConvertError struct {
	Type   string
	Reason string
}

func (e *ConvertError) Error() string { return "not a " + e.Type + ": " + e.Reason }

func notA(t Type, reason string) error { return &ConvertError{Type: t.String(), Reason: reason} }

// Parse converts one cell of text, exactly: what would lose anything is a *ConvertError. Nested types are read as JSON.
func Parse(t Type, text string) (Value, error) {
	switch t.Kind {
	case StringKind:
		return text, nil
	case StructKind, ArrayKind, MapKind:
		return FromJSON(t, []byte(text))
	case BinaryKind:
		b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(text))
		if err != nil {
			return nil, notA(t, "it is not base64")
		}
		return Binary(b), nil
	default:
		return parsePlain(t, strings.TrimSpace(text))
	}
}

func parsePlain(t Type, text string) (Value, error) {
	switch t.Kind {
	case Boolean:
		switch strings.ToLower(text) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, notA(t, "it is neither true nor false")
	case Byte, Short, Integer, Long:
		return parseInteger(t, text)
	case Float, Double:
		return parseFloat(t, text)
	case DecimalKind:
		return parseDecimal(t, text)
	case DateKind:
		return parseDate(t, text)
	case TimestampKind, TimestampNTZ:
		return parseTimestamp(t, text)
	default:
		return nil, notA(t, "no text is one")
	}
}

func parseInteger(t Type, text string) (Value, error) {
	bits := map[Kind]int{Byte: 8, Short: 16, Integer: 32, Long: 64}[t.Kind]
	n, err := strconv.ParseInt(text, 10, bits)
	if err == nil {
		return n, nil
	}
	d, ok := exact(text)
	switch {
	case !ok:
		return nil, notA(t, "it is not a whole number")
	case !d.IsInt():
		return nil, notA(t, "it has a fraction")
	}
	whole := d.Num()
	if !whole.IsInt64() || whole.Int64() > 1<<(bits-1)-1 || whole.Int64() < -1<<(bits-1) {
		return nil, notA(t, "it is out of range")
	}
	return whole.Int64(), nil
}

// maxExponent bounds exponents, so that a short text cannot ask for a gigabyte of digits.
const maxExponent = 400

// exact reads a decimal number, with or without exponent, as a fraction.
func exact(text string) (*big.Rat, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if strings.Trim(mantissa, "+-.0123456789") != "" || !strings.ContainsAny(mantissa, "0123456789") || len(mantissa) > maxExponent {
		return nil, false
	}
	if exponent != "" {
		if n, err := strconv.Atoi(exponent); err != nil || n > maxExponent || n < -maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

func parseFloat(t Type, text string) (Value, error) {
	bits := 64
	if t.Kind == Float {
		bits = 32
	}
	var f float64
	switch text {
	case "NaN":
		f = math.NaN()
	case "Infinity", "+Infinity":
		f = math.Inf(1)
	case "-Infinity":
		f = math.Inf(-1)
	default:
		r, ok := exact(text)
		if !ok {
			return nil, notA(t, "it is not a number")
		}
		var err error
		if f, err = strconv.ParseFloat(text, bits); err != nil || f == 0 && r.Sign() != 0 {
			return nil, notA(t, "it is out of range")
		}
	}
	if bits == 32 {
		return float32(f), nil
	}
	return f, nil
}

// Rounded says whether a float or a double is not the number that was written: fewer digits would not have told it apart.
// text may be in the quotes of JSON.
func Rounded(text string, v Value) bool {
	var f float64
	bits := 64
	switch v := v.(type) {
	case float64:
		f = v
	case float32:
		f, bits = float64(v), 32
	default:
		return false
	}
	written, ok := exact(strings.Trim(strings.TrimSpace(text), `"`))
	if !ok {
		return false // an infinity, or no number
	}
	kept, ok := exact(strconv.FormatFloat(f, 'e', -1, bits))
	return !ok || written.Cmp(kept) != 0
}

func parseDecimal(t Type, text string) (Value, error) {
	r, ok := exact(text)
	if !ok {
		return nil, notA(t, "it is not a decimal number")
	}
	r = new(big.Rat).Mul(r, new(big.Rat).SetInt(pow10(t.Scale)))
	if !r.IsInt() {
		return nil, notA(t, fmt.Sprintf("it has more than %d digits after the point", t.Scale))
	}
	if new(big.Int).Abs(r.Num()).Cmp(pow10(t.Precision)) >= 0 {
		return nil, notA(t, "it is out of range")
	}
	return Decimal{Unscaled: new(big.Int).Set(r.Num()), Scale: t.Scale}, nil
}

func parseDate(t Type, text string) (Value, error) {
	at, err := time.Parse(dateLayout, text)
	switch {
	case err != nil:
		return nil, notA(t, "it is not of the form 2026-09-14")
	case !inYears(at):
		return nil, notA(t, "its year is not between 1 and 9999")
	}
	return Date(at.Unix() / 86400), nil //nolint:gosec // a year of four digits fits
}

// parseTimestamp reads an instant (UTC where no offset is written) or a time without zone, to the microsecond.
func parseTimestamp(t Type, text string) (Value, error) {
	local := t.Kind == TimestampNTZ
	bad := notA(t, "it is not of the form 2026-09-14T03:30:00.000000Z")
	if local {
		bad = notA(t, "it is not of the form 2026-09-14T03:30:00.000000")
	}
	text, fine := micros(strings.Replace(text, " ", "T", 1))
	if !fine {
		return nil, notA(t, "it is finer than a microsecond")
	}
	const hours = len("2026-09-14T03")
	if strings.Contains(text, ",") || len(text) > len(dateLayout) && (len(text) <= hours || text[hours] != ':') {
		return nil, bad // Go's reader takes a comma for the point, and hours of one digit
	}
	layouts := []string{"2006-01-02T15:04:05", "2006-01-02T15:04", dateLayout}
	if !local {
		layouts = append(layouts, "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00")
	}
	for _, layout := range layouts {
		at, err := time.Parse(layout, text)
		switch {
		case err != nil:
			continue
		case !inYears(at):
			return nil, notA(t, "its year is not between 1 and 9999")
		case local:
			return LocalTimestamp(at.UnixMicro()), nil
		default:
			return Timestamp(at.UnixMicro()), nil
		}
	}
	return nil, bad
}

// inYears says whether a time is one that every reader of the tables knows.
func inYears(at time.Time) bool {
	year := at.UTC().Year()
	return year >= 1 && year <= 9999
}

// micros cuts zeros below the microsecond; it is false where another digit stands there.
func micros(text string) (string, bool) {
	const digits = 6
	whole, rest, found := strings.Cut(text, ".")
	if !found {
		return text, true
	}
	zone := strings.TrimLeft(rest, "0123456789")
	fraction := rest[:len(rest)-len(zone)]
	if len(fraction) <= digits {
		return text, true
	}
	return whole + "." + fraction[:digits] + zone, strings.Trim(fraction[digits:], "0") == ""
}
