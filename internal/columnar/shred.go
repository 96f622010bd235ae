package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"varve/internal/value"
)

// shredder takes rows apart into the values of their leaves, with levels (Parquet's Dremel encoding).
type shredder struct {
	columns [][]parquet.Value
	// size estimates the bytes taken since it was last reset.
	size int64
}

// row takes one row apart. On an error the columns are left unusable.
func (s *shredder) row(root *column, row value.Row) error {
	for i, child := range root.children {
		if err := s.put(child, row[root.fields[i]], 0); err != nil {
			return err
		}
	}
	return nil
}

func (s *shredder) append(leaf int, v parquet.Value, rep, def int) {
	s.columns[leaf] = append(s.columns[leaf], v.Level(rep, def, leaf))
}

// put takes apart the value of one node; rep is the level at which it repeats.
func (s *shredder) put(c *column, v value.Value, rep int) error {
	if v == nil {
		if !c.nullable {
			return &TypeError{Column: c.path, Reason: "null where null is not allowed"}
		}
		for leaf := c.first; leaf < c.end; leaf++ {
			s.append(leaf, parquet.Value{}, rep, c.def-1)
		}
		for _, stat := range c.stats {
			stat.add(nil)
		}
		return nil
	}
	switch c.typ.Kind {
	case value.StructKind:
		return s.members(c, v, rep)
	case value.ArrayKind:
		list, ok := v.(value.List)
		if !ok {
			return wrongType(c, v)
		}
		return s.repeat(c, len(list), rep, func(i int) []value.Value { return list[i : i+1] })
	case value.MapKind:
		entries, ok := v.(value.Map)
		if !ok {
			return wrongType(c, v)
		}
		return s.repeat(c, len(entries), rep, func(i int) []value.Value {
			return []value.Value{entries[i].Key, entries[i].Value}
		})
	case value.VariantKind:
		variant, ok := v.(value.Variant)
		if !ok {
			return wrongType(c, v)
		}
		s.append(c.first, parquet.ByteArrayValue(variant.Metadata), rep, c.def)
		s.append(c.first+1, parquet.ByteArrayValue(variant.Value), rep, c.def)
		s.size += int64(len(variant.Metadata) + len(variant.Value))
		return nil
	default:
		return s.leaf(c, v, rep)
	}
}

func (s *shredder) leaf(c *column, v value.Value, rep int) error {
	leaf, err := encode(c.typ, v)
	if err != nil {
		return &TypeError{Column: c.path, Reason: err.Error()}
	}
	s.append(c.first, leaf, rep, c.def)
	s.size += 8
	if kind := leaf.Kind(); kind == parquet.ByteArray || kind == parquet.FixedLenByteArray {
		s.size += int64(len(leaf.ByteArray()))
	}
	for _, stat := range c.stats {
		stat.add(v)
	}
	return nil
}

func wrongType(c *column, v value.Value) error {
	return &TypeError{Column: c.path, Reason: fmt.Sprintf("a %T is not a value of type %s", v, c.typ)}
}

// members takes a struct apart. Its members are usually in the order of its type; missing ones are null.
func (s *shredder) members(c *column, v value.Value, rep int) error {
	members, ok := v.(value.Struct)
	if !ok {
		return wrongType(c, v)
	}
	found := 0
	next := func(i int) (value.Value, bool) {
		name := c.typ.Fields[i].Name
		if i < len(members) && members[i].Name == name {
			return members[i].Value, true
		}
		for _, m := range members {
			if m.Name == name {
				return m.Value, true
			}
		}
		return nil, false
	}
	for i, child := range c.children {
		member, ok := next(c.fields[i])
		if ok {
			found++
		}
		if err := s.put(child, member, rep); err != nil {
			return err
		}
	}
	if found == len(members) {
		return nil
	}
	return checkMembers(c, members)
}

// checkMembers looks for members that the type does not have: they would be lost.
func checkMembers(c *column, members value.Struct) error {
	for _, m := range members {
		at := value.Schema(c.typ.Fields).Index(m.Name)
		if at < 0 {
			return &TypeError{Column: c.path, Reason: fmt.Sprintf("there is no member %q in its type", m.Name)}
		}
		if c.typ.Fields[at].Type.Kind == value.Void && m.Value != nil {
			return &TypeError{Column: join(c.path, m.Name), Reason: "a void column holds a value"}
		}
	}
	return nil
}

// repeat takes an array's elements or a map's entries apart.
func (s *shredder) repeat(c *column, n, rep int, parts func(i int) []value.Value) error {
	if n == 0 {
		for leaf := c.first; leaf < c.end; leaf++ {
			s.append(leaf, parquet.Value{}, rep, c.def)
		}
		return nil
	}
	for i := range n {
		for j, part := range parts(i) {
			if err := s.put(c.children[j], part, rep); err != nil {
				return err
			}
		}
		rep = c.rep + 1
	}
	return nil
}

// encode gives the Parquet value of a primitive value.
func encode(t value.Type, v value.Value) (parquet.Value, error) {
	switch x := v.(type) {
	case bool:
		if t.Kind == value.Boolean {
			return parquet.BooleanValue(x), nil
		}
	case int64:
		return encodeInteger(t, x)
	case float32:
		if t.Kind == value.Float {
			return parquet.FloatValue(x), nil
		}
	case float64:
		if t.Kind == value.Double {
			return parquet.DoubleValue(x), nil
		}
	case value.Decimal:
		if t.Kind == value.DecimalKind {
			return encodeDecimal(t, x)
		}
	case string:
		if t.Kind == value.StringKind {
			if !utf8.ValidString(x) {
				return parquet.Value{}, errors.New("a string is not UTF-8")
			}
			return parquet.ByteArrayValue([]byte(x)), nil
		}
	case value.Binary:
		if t.Kind == value.BinaryKind {
			return parquet.ByteArrayValue(x), nil
		}
	case value.Date:
		if t.Kind == value.DateKind {
			return parquet.Int32Value(int32(x)), nil
		}
	case value.Timestamp:
		if t.Kind == value.TimestampKind {
			return parquet.Int64Value(int64(x)), nil
		}
	case value.LocalTimestamp:
		if t.Kind == value.TimestampNTZ {
			return parquet.Int64Value(int64(x)), nil
		}
	}
	return parquet.Value{}, fmt.Errorf("a %T is not a value of type %s", v, t)
}

// integerBits are the widths of the integer kinds.
func integerBits(k value.Kind) int {
	switch k {
	case value.Byte:
		return 8
	case value.Short:
		return 16
	case value.Integer:
		return 32
	case value.Long:
		return 64
	default:
		return 0
	}
}

// fits says whether a number fits a signed integer of so many bits.
func fits(n int64, bits int) bool {
	return n>>(bits-1) == 0 || n>>(bits-1) == -1
}

func encodeInteger(t value.Type, n int64) (parquet.Value, error) {
	bits := integerBits(t.Kind)
	switch {
	case bits == 0:
		return parquet.Value{}, fmt.Errorf("a whole number is not a value of type %s", t)
	case !fits(n, bits):
		return parquet.Value{}, fmt.Errorf("a number is out of range of type %s", t)
	case bits == 64:
		return parquet.Int64Value(n), nil
	default:
		return parquet.Int32Value(int32(n)), nil //nolint:gosec // it fits, as checked
	}
}

func encodeDecimal(t value.Type, d value.Decimal) (parquet.Value, error) {
	unscaled, ok := rescale(d, t)
	if !ok {
		return parquet.Value{}, fmt.Errorf("a decimal does not fit type %s", t)
	}
	switch {
	case t.Precision <= int32Digits:
		return parquet.Int32Value(int32(unscaled.Int64())), nil //nolint:gosec // nine digits fit
	case t.Precision <= int64Digits:
		return parquet.Int64Value(unscaled.Int64()), nil
	}
	return parquet.FixedLenByteArrayValue(twosComplement(unscaled, decimalBytes(t.Precision))), nil
}

// rescale gives the unscaled digits of a decimal in a type, if the type holds it exactly.
func rescale(d value.Decimal, t value.Type) (*big.Int, bool) {
	if d.Unscaled == nil {
		return nil, false
	}
	unscaled := d.Unscaled
	if d.Scale < t.Scale {
		unscaled = new(big.Int).Mul(unscaled, pow10(t.Scale-d.Scale))
	} else if d.Scale > t.Scale {
		quotient, rest := new(big.Int).QuoRem(unscaled, pow10(d.Scale-t.Scale), new(big.Int))
		if rest.Sign() != 0 {
			return nil, false
		}
		unscaled = quotient
	}
	if unscaled.IsInt64() {
		if t.Precision > int64Digits {
			return unscaled, true
		}
		limit, n := int64(math.Pow10(t.Precision)), unscaled.Int64()
		return unscaled, -limit < n && n < limit
	}
	return unscaled, unscaled.CmpAbs(pow10(t.Precision)) < 0
}

// twosComplement gives a number that fits as big-endian bytes.
func twosComplement(n *big.Int, size int) []byte {
	out := make([]byte, size)
	if n.IsInt64() && size >= 8 {
		if n.Sign() < 0 {
			for i := range out[:size-8] {
				out[i] = 0xff
			}
		}
		binary.BigEndian.PutUint64(out[size-8:], uint64(n.Int64())) //nolint:gosec // the bits are meant
		return out
	}
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(size)*8))
	}
	return n.FillBytes(out)
}
