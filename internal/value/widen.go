package value

import "math/big"

// Widens says whether every value of one scalar type is a value of another, with the same canonical text, and whether files
// of the one may be read as the other: a decimal must hold every number of the 32 or 64 bits that files store whole numbers
// in (PROTOCOL.md, Type Widening). Nested types widen only to themselves.
func Widens(from, to Type) bool {
	if from.Equal(to) {
		return true
	}
	digits := map[Kind]int{Byte: 3, Short: 5, Integer: 10, Long: 19}
	decimalDigits := map[Kind]int{Byte: 10, Short: 10, Integer: 10, Long: 20}
	wide, whole := digits[from.Kind]
	switch to.Kind {
	case Short, Integer, Long:
		return whole && digits[to.Kind] > wide
	case DecimalKind:
		if from.Kind == DecimalKind {
			return to.Scale >= from.Scale && to.Precision-to.Scale >= from.Precision-from.Scale
		}
		return whole && to.Precision-to.Scale >= decimalDigits[from.Kind]
	default:
		return false // a whole number's text as a double can have an exponent, and a float's is another number
	}
}

// Widen gives a value of a type as one of a type it widens to.
func Widen(v Value, to Type) Value {
	switch x := v.(type) {
	case int64:
		if to.Kind == DecimalKind {
			return Decimal{Unscaled: new(big.Int).Mul(big.NewInt(x), pow10(to.Scale)), Scale: to.Scale}
		}
	case Decimal:
		if to.Kind == DecimalKind && to.Scale > x.Scale {
			return Decimal{Unscaled: x.scaled(to.Scale), Scale: to.Scale}
		}
	}
	return v
}
