package delta

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"varve/internal/value"
)

// parsePartition reads a partition value. PROTOCOL.md, Partition Value Serialization: an empty text is null too.
func parsePartition(t value.Type, text *string) (value.Value, error) {
	if text == nil || *text == "" {
		return nil, nil //nolint:nilnil // nil is the null value
	}
	v, err := convertPartition(t, *text)
	if _, unsupported := errors.AsType[*UnsupportedError](err); err != nil && !unsupported {
		return nil, fmt.Errorf("partition value is no %s", kindName(t))
	}
	return v, err
}

// convertPartition reads a text that is not null.
func convertPartition(t value.Type, s string) (value.Value, error) {
	switch t.Kind {
	case value.StringKind:
		return s, nil
	case value.BinaryKind:
		return value.Binary(s), nil
	case value.Boolean:
		switch strings.ToLower(s) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, strconv.ErrSyntax
	case value.Byte, value.Short, value.Integer, value.Long:
		n, err := strconv.ParseInt(s, 10, intBits(t.Kind))
		return n, err
	case value.Float:
		f, err := parseFloat(s, 32)
		return float32(f), err
	case value.Double:
		f, err := parseFloat(s, 64)
		return f, err
	case value.DecimalKind:
		d, err := parseDecimalText(t, s)
		return d, err
	case value.DateKind:
		day, err := time.Parse(time.DateOnly, s)
		return value.Date(day.Unix() / 86400), err //nolint:gosec // a year has four digits
	case value.TimestampKind:
		at, err := parseInstant(s)
		return value.Timestamp(at.UnixMicro()), err
	case value.TimestampNTZ:
		at, err := parseInstant(s)
		return value.LocalTimestamp(at.UnixMicro()), err
	default:
		return nil, &UnsupportedError{Feature: "a partition column of type " + kindName(t)}
	}
}

// kindName names a type for an error.
func kindName(t value.Type) string {
	if name, ok := typeForm(t).(string); ok {
		return name
	}
	return "nested type"
}

// intBits is the width of an integer kind.
func intBits(k value.Kind) int {
	switch k {
	case value.Byte:
		return 8
	case value.Short:
		return 16
	case value.Integer:
		return 32
	default:
		return 64
	}
}

// parseFloat reads Java's form of a floating-point number.
func parseFloat(s string, bits int) (float64, error) {
	switch s {
	case "NaN":
		return math.NaN(), nil
	case "Infinity", "+Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, bits)
}

// parseDecimalText reads a decimal exactly, at the type's scale.
func parseDecimalText(t value.Type, s string) (value.Decimal, error) {
	if len(s) > 100 || strings.Trim(s, "0123456789+-.eE") != "" {
		return value.Decimal{}, strconv.ErrSyntax
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(s), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n < -100 || n > 100 {
			return value.Decimal{}, strconv.ErrRange
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return value.Decimal{}, strconv.ErrSyntax
	}
	r.Mul(r, new(big.Rat).SetInt(pow10(t.Scale)))
	if !r.IsInt() || new(big.Int).Abs(r.Num()).Cmp(pow10(t.Precision)) >= 0 {
		return value.Decimal{}, strconv.ErrRange
	}
	return value.Decimal{Unscaled: new(big.Int).Set(r.Num()), Scale: t.Scale}, nil
}

// pow10 is a power of ten.
func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// parseInstant reads the forms of a timestamp; one without a zone is taken as UTC.
func parseInstant(s string) (time.Time, error) {
	for _, layout := range []string{
		"2006-01-02 15:04:05.999999999", time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateOnly,
	} {
		if at, err := time.Parse(layout, s); err == nil {
			return at, nil
		}
	}
	return time.Time{}, strconv.ErrSyntax
}

// formatPartition writes a partition value as Spark does.
func formatPartition(t value.Type, v value.Value) (*string, error) {
	if v == nil {
		return nil, nil //nolint:nilnil // nil is how the protocol has null
	}
	var s string
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil, errors.New("an empty text cannot be a partition value: it would be read as null")
		}
		s = v
	case value.Binary:
		if len(v) == 0 || !utf8.Valid(v) {
			return nil, errors.New("binary that is not UTF-8 cannot be a partition value")
		}
		s = string(v)
	case bool:
		s = strconv.FormatBool(v)
	case int64:
		s = strconv.FormatInt(v, 10)
	case float32:
		s = javaFloat(float64(v), 32)
	case float64:
		s = javaFloat(v, 64)
	case value.Decimal:
		s = decimalText(v)
	case value.Date:
		s = time.Unix(int64(v)*86400, 0).UTC().Format(time.DateOnly)
	case value.Timestamp:
		s = time.UnixMicro(int64(v)).UTC().Format("2006-01-02T15:04:05.000000Z")
	case value.LocalTimestamp:
		s = time.UnixMicro(int64(v)).UTC().Format("2006-01-02 15:04:05.999999")
	default:
		return nil, &UnsupportedError{Feature: "a partition column of type " + kindName(t), Write: true}
	}
	back, err := parsePartition(t, &s)
	if err != nil || !value.Equal(back, v) {
		return nil, fmt.Errorf("value cannot be a partition value of type %s", kindName(t))
	}
	return &s, nil
}

// decimalText writes a decimal with its scale, without an exponent.
func decimalText(d value.Decimal) string {
	digits := new(big.Int).Abs(d.Unscaled).String()
	if d.Scale > 0 {
		if len(digits) <= d.Scale {
			digits = strings.Repeat("0", d.Scale-len(digits)+1) + digits
		}
		digits = digits[:len(digits)-d.Scale] + "." + digits[len(digits)-d.Scale:]
	}
	if d.Unscaled.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}

// javaFloat writes a floating-point number as Java's toString does: an exponent outside of 1e-3 to 1e7.
func javaFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return map[bool]string{true: "Infinity", false: "-Infinity"}[f > 0]
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-3 || abs >= 1e7) {
		format = 'E'
	}
	mantissa, exponent, scientific := strings.Cut(strconv.FormatFloat(f, format, -1, bits), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if !scientific {
		return mantissa
	}
	sign := strings.TrimPrefix(exponent[:1], "+")
	return mantissa + "E" + sign + strings.TrimLeft(exponent[1:], "0")
}
