package scd

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"

	"varve/internal/value"
)

// Author gives the leaves that an upsert of these columns authors; a column that is not among them is absent. A null struct
// authors all its leaves as null, a struct those that it has. A null in a column that ignores nulls is absent.
func (s Spec) Author(columns map[string]value.Value) map[Path]value.Value {
	out := make(map[Path]value.Value, len(columns))
	for _, c := range s.Columns {
		if v, present := columns[c.Name]; present {
			c.author(v, out)
		}
	}
	return out
}

// authorRow gives the leaves that an upsert of a whole row authors.
func (s Spec) authorRow(values value.Row) map[Path]value.Value {
	out := make(map[Path]value.Value, len(s.Columns))
	for i, c := range s.Columns {
		c.author(values[i], out)
	}
	return out
}

func (c Column) author(v value.Value, out map[Path]value.Value) {
	put := func(p Path, v value.Value) {
		if v != nil || !c.IgnoreNull {
			out[p] = v
		}
	}
	if c.Leaves == nil {
		put(c.Name, v)
		return
	}
	members, there := v.(value.Struct)
	if !there {
		put(c.presence(), nil)
		for _, leaf := range c.Leaves {
			put(c.leaf(leaf), nil)
		}
		return
	}
	put(c.presence(), true)
	for _, m := range members {
		if slices.Contains(c.Leaves, m.Name) {
			put(c.leaf(m.Name), m.Value)
		}
	}
}

func (c Column) presence() Path { return c.Name + "." }

func (c Column) leaf(name string) Path { return c.Name + "." + name }

// row puts whole columns together; a leaf that nothing authored is null.
func (s Spec) row(leaves map[Path]value.Value) value.Row {
	out := make(value.Row, len(s.Columns))
	for i, c := range s.Columns {
		switch {
		case c.Leaves == nil:
			out[i] = leaves[c.Name]
		case leaves[c.presence()] != nil:
			members := make(value.Struct, len(c.Leaves))
			for j, name := range c.Leaves {
				members[j] = value.Member{Name: name, Value: leaves[c.leaf(name)]}
			}
			out[i] = members
		}
	}
	return out
}

// content is what orders upserts at one sequence: the SHA-256 of the canonical text of what they author, then the text.
type content struct {
	sum  [sha256.Size]byte
	text []byte
}

func contentOf(authored map[Path]value.Value) content {
	leaves := make(value.Struct, 0, len(authored))
	for _, path := range slices.Sorted(maps.Keys(authored)) {
		leaves = append(leaves, value.Member{Name: path, Value: authored[path]})
	}
	text := value.AppendCanonical(nil, leaves)
	return content{sum: sha256.Sum256(text), text: text}
}

func (c content) compare(o content) int {
	return cmp.Or(bytes.Compare(c.sum[:], o.sum[:]), bytes.Compare(c.text, o.text))
}

// sameContent says whether two upserts author the same leaves with equal values.
func sameContent(a, b map[Path]value.Value) bool {
	return maps.EqualFunc(a, b, value.Equal)
}
