package value

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"strings"
)

// Compare orders two values of one type: null first, then as the type orders. False comes before true, NaN is the greatest
// number, -0 equals 0, strings and binaries compare byte by byte, structs member by member, arrays element by element,
// maps entry by entry. Values of different types are ordered by kind, so that the order is total.
func Compare(a, b Value) int {
	if a == nil || b == nil {
		return cmp.Compare(rank(a), rank(b))
	}
	switch x := a.(type) {
	case bool:
		if y, ok := b.(bool); ok {
			return cmp.Compare(truth(x), truth(y))
		}
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
	case float32:
		if y, ok := b.(float32); ok {
			return compareFloat(float64(x), float64(y))
		}
	case float64:
		if y, ok := b.(float64); ok {
			return compareFloat(x, y)
		}
	case Decimal:
		if y, ok := b.(Decimal); ok {
			return compareDecimal(x, y)
		}
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y)
		}
	case Binary:
		if y, ok := b.(Binary); ok {
			return bytes.Compare(x, y)
		}
	case Date:
		if y, ok := b.(Date); ok {
			return cmp.Compare(x, y)
		}
	case Timestamp:
		if y, ok := b.(Timestamp); ok {
			return cmp.Compare(x, y)
		}
	case LocalTimestamp:
		if y, ok := b.(LocalTimestamp); ok {
			return cmp.Compare(x, y)
		}
	}
	return compareNested(a, b)
}

func compareNested(a, b Value) int {
	switch x := a.(type) {
	case Struct:
		if y, ok := b.(Struct); ok {
			return compareEach(len(x), len(y), func(i int) int {
				return cmp.Or(strings.Compare(x[i].Name, y[i].Name), Compare(x[i].Value, y[i].Value))
			})
		}
	case List:
		if y, ok := b.(List); ok {
			return compareEach(len(x), len(y), func(i int) int { return Compare(x[i], y[i]) })
		}
	case Map:
		if y, ok := b.(Map); ok {
			s, u := x.sorted(), y.sorted()
			return compareEach(len(s), len(u), func(i int) int {
				return cmp.Or(Compare(s[i].Key, u[i].Key), Compare(s[i].Value, u[i].Value))
			})
		}
	case Variant:
		if y, ok := b.(Variant); ok {
			return cmp.Or(bytes.Compare(x.Metadata, y.Metadata), bytes.Compare(x.Value, y.Value))
		}
	}
	return cmp.Compare(rank(a), rank(b))
}

func compareEach(n, m int, at func(i int) int) int {
	for i := range min(n, m) {
		if c := at(i); c != 0 {
			return c
		}
	}
	return cmp.Compare(n, m)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareFloat orders NaN above everything; Go's cmp puts it below.
func compareFloat(x, y float64) int {
	switch {
	case math.IsNaN(x) && math.IsNaN(y):
		return 0
	case math.IsNaN(x):
		return 1
	case math.IsNaN(y):
		return -1
	default:
		return cmp.Compare(x, y)
	}
}

func compareDecimal(x, y Decimal) int {
	scale := max(x.Scale, y.Scale)
	return x.scaled(scale).Cmp(y.scaled(scale))
}

// scaled gives the unscaled value at a scale that is at least d's.
func (d Decimal) scaled(scale int) *big.Int {
	if d.Scale == scale {
		return d.Unscaled
	}
	return new(big.Int).Mul(d.Unscaled, pow10(scale-d.Scale))
}

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// rank orders values of different dynamic types.
func rank(v Value) int {
	switch v.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case int64:
		return 2
	case float32:
		return 3
	case float64:
		return 4
	case Decimal:
		return 5
	case string:
		return 6
	case Binary:
		return 7
	case Date:
		return 8
	case Timestamp:
		return 9
	case LocalTimestamp:
		return 10
	case Struct:
		return 11
	case List:
		return 12
	case Map:
		return 13
	default:
		return 14
	}
}

// Equal says whether two values have the same canonical text.
func Equal(a, b Value) bool {
	switch x := a.(type) { // what is frequent, without making texts
	case nil:
		return b == nil
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
	case string:
		if y, ok := b.(string); ok {
			return x == y
		}
	case bool:
		if y, ok := b.(bool); ok {
			return x == y
		}
	}
	return b != nil && bytes.Equal(AppendCanonical(nil, a), AppendCanonical(nil, b))
}
