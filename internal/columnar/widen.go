package columnar

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/parquet-go/parquet-go"

	"varve/internal/value"
)

const dayMicros = 86400 * 1000000

// decodeAs gives the values of a leaf as a type asked for. It is an error where the type could not hold all of them, save
// that an integer without its width in the file is checked value by value.
func decodeAs(d decoder, want value.Type) (func(parquet.Value) (value.Value, error), error) {
	widen, ok := widening(d, want)
	if !ok {
		return nil, fmt.Errorf("type %s of the file cannot be read as %s", d.typ, want)
	}
	if widen == nil {
		return d.decode, nil
	}
	return func(v parquet.Value) (value.Value, error) {
		got, err := d.decode(v)
		if err != nil {
			return nil, err
		}
		return widen(got)
	}, nil
}

// widening gives the conversion from a leaf's type, nil where none is needed (PROTOCOL.md, Type Widening).
func widening(d decoder, want value.Type) (func(value.Value) (value.Value, error), bool) {
	from, to := d.typ.Kind, want.Kind
	switch {
	case to == value.DecimalKind:
		return widenToDecimal(d.typ, want)
	case from == to:
		return nil, true
	case integerBits(from) > 0 && integerBits(to) > 0:
		return widenInteger(from, to)
	case from == value.Float && to == value.Double:
		return func(v value.Value) (value.Value, error) { return float64(v.(float32)), nil }, true
	case integerBits(from) > 0 && integerBits(from) <= 32 && to == value.Double:
		return func(v value.Value) (value.Value, error) { return float64(v.(int64)), nil }, true
	case from == value.DateKind && to == value.TimestampNTZ:
		return func(v value.Value) (value.Value, error) {
			return value.LocalTimestamp(int64(v.(value.Date)) * dayMicros), nil
		}, true
	case from == value.TimestampKind && to == value.TimestampNTZ && d.legacy:
		return func(v value.Value) (value.Value, error) { return value.LocalTimestamp(v.(value.Timestamp)), nil }, true
	case from == value.TimestampNTZ && to == value.TimestampKind:
		// Writers that know no zones mean UTC.
		return func(v value.Value) (value.Value, error) { return value.Timestamp(v.(value.LocalTimestamp)), nil }, true
	case from == value.BinaryKind && to == value.StringKind:
		// Old writers did not say that a binary is text.
		return func(v value.Value) (value.Value, error) { return string(v.(value.Binary)), nil }, true
	case from == value.StringKind && to == value.BinaryKind:
		return func(v value.Value) (value.Value, error) { return value.Binary(v.(string)), nil }, true
	default:
		return nil, false
	}
}

// widenInteger reads integers as wider ones, and as narrower ones of the same physical type, as many writers leave the
// width out.
func widenInteger(from, to value.Kind) (func(value.Value) (value.Value, error), bool) {
	bits := integerBits(to)
	switch {
	case integerBits(from) <= bits:
		return nil, true
	case from == value.Long:
		return nil, false
	default:
		return func(v value.Value) (value.Value, error) {
			if !fits(v.(int64), bits) {
				return nil, errors.New("a number is out of the range of the column's type")
			}
			return v, nil
		}, true
	}
}

// widenToDecimal reads decimals of fewer digits before and after the point, and integers.
func widenToDecimal(from, to value.Type) (func(value.Value) (value.Value, error), bool) {
	digits, scale := from.Precision, from.Scale
	switch bits := integerBits(from.Kind); {
	case from.Kind == value.DecimalKind:
	case bits == 0:
		return nil, false
	case bits <= 32:
		digits = 10
	default:
		digits = 20
	}
	if to.Scale < scale || to.Precision-to.Scale < digits-scale {
		return nil, false
	}
	if from.Kind == value.DecimalKind && scale == to.Scale {
		return nil, true
	}
	factor := pow10(to.Scale - scale)
	return func(v value.Value) (value.Value, error) {
		var unscaled *big.Int
		switch x := v.(type) {
		case int64:
			unscaled = big.NewInt(x)
		case value.Decimal:
			unscaled = x.Unscaled
		}
		return value.Decimal{Unscaled: unscaled.Mul(unscaled, factor), Scale: to.Scale}, nil
	}, true
}
