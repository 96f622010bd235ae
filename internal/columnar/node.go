package columnar

import (
	"github.com/parquet-go/parquet-go"

	"varve/internal/value"
)

// shape says how the values of a node are put together.
type shape uint8

const (
	// absent is a column that the file lacks: always null.
	absent shape = iota
	leafShape
	structShape
	listShape
	mapShape
	variantShape
	// probe is read for its levels alone: of a struct none of whose members are asked for, it tells null from not null.
	probe
)

// A node puts one column, or one part of a nested column, together from the leaves below it.
type node struct {
	shape shape
	path  string
	// rep is the level at which this node's values repeat; def is the level from which on they are not null.
	rep, def int
	decode   func(parquet.Value) (value.Value, error)
	// children are a struct's members, a list's element, a map's or a variant's two parts.
	children []*node
	names    []string
	// cursors are those of all leaves below.
	cursors []*cursor
	// nulls is how many of the next values, taken from all leaves already, are null.
	nulls int
}

// takeNulls takes the rows, at most so many, in which all leaves of a column say that it is null, as far as they are at hand.
// A column that is null in long runs costs a look at a value, not a walk through its leaves a row.
func (n *node) takeNulls(most int) {
	for _, c := range n.cursors {
		if !c.ready() {
			return
		}
		if most = c.nulls(n.def, most); most == 0 {
			return
		}
	}
	if len(n.cursors) == 0 {
		return
	}
	for _, c := range n.cursors {
		c.at += most
	}
	n.nulls = most
}

// level gives the definition level of the node's next value, which all leaves below must agree is null, or is not.
func (n *node) level() (int, error) {
	first := -1
	for _, c := range n.cursors {
		if err := c.present(); err != nil {
			return 0, err
		}
		def := c.head().DefinitionLevel()
		if first < 0 {
			first = def
		} else if (def < n.def) != (first < n.def) {
			return 0, damaged("the columns of %q disagree about nulls", n.path)
		}
	}
	return first, nil
}

// skip takes one value, which has nothing below it, from every leaf.
func (n *node) skip() {
	for _, c := range n.cursors {
		c.at++
	}
}

// read puts the node's next value together.
func (n *node) read() (value.Value, error) {
	switch n.shape {
	case absent:
		return nil, nil //nolint:nilnil // nil is the null value
	case leafShape:
		return n.readLeaf()
	case probe:
		return nil, n.readProbe()
	default:
		return n.readNested()
	}
}

func (n *node) readNested() (value.Value, error) {
	def, err := n.level()
	if err != nil {
		return nil, err
	}
	if def < n.def {
		n.skip()
		return nil, nil //nolint:nilnil // nil is the null value
	}
	switch n.shape {
	case structShape:
		return n.readStruct()
	case variantShape:
		return n.readVariant()
	case listShape:
		list := value.List{}
		err := n.each(func() error {
			v, err := n.children[0].read()
			list = append(list, v)
			return err
		})
		return list, err
	default:
		return n.readMap()
	}
}

func (n *node) readLeaf() (value.Value, error) {
	c := n.cursors[0]
	if err := c.present(); err != nil {
		return nil, err
	}
	v := c.head()
	c.at++
	if v.DefinitionLevel() < n.def {
		return nil, nil //nolint:nilnil // nil is the null value
	}
	got, err := n.decode(*v)
	if err != nil {
		return nil, &FormatError{Reason: "column \"" + n.path + "\"", Err: err}
	}
	return got, nil
}

func (n *node) readProbe() error {
	c := n.cursors[0]
	if err := c.present(); err != nil {
		return err
	}
	c.at++
	for c.ready() && c.head().RepetitionLevel() > n.rep {
		c.at++
	}
	return c.err
}

func (n *node) readStruct() (value.Value, error) {
	members := make(value.Struct, 0, len(n.names))
	for i, child := range n.children {
		v, err := child.read()
		if err != nil {
			return nil, err
		}
		if i < len(n.names) { // probes follow the members
			members = append(members, value.Member{Name: n.names[i], Value: v})
		}
	}
	return members, nil
}

func (n *node) readVariant() (value.Value, error) {
	metadata, err := n.children[0].read()
	if err != nil {
		return nil, err
	}
	val, err := n.children[1].read()
	if err != nil {
		return nil, err
	}
	m, ok := metadata.(value.Binary)
	v, both := val.(value.Binary)
	if !ok || !both {
		return nil, damaged("a variant of %q lacks a part", n.path)
	}
	return value.Variant{Metadata: m, Value: v}, nil
}

func (n *node) readMap() (value.Value, error) {
	entries := value.Map{}
	err := n.each(func() error {
		key, err := n.children[0].read()
		if err != nil {
			return err
		}
		if key == nil {
			return damaged("a map of %q has a null key", n.path)
		}
		val, err := n.children[1].read()
		entries = append(entries, value.Entry{Key: key, Value: val})
		return err
	})
	return entries, err
}

// each reads what repeats within a list or a map that is not null: nothing, or one after the other.
func (n *node) each(read func() error) error {
	empty := 0
	for _, c := range n.cursors {
		if c.head().DefinitionLevel() == n.def {
			empty++
		}
	}
	switch empty {
	case 0:
	case len(n.cursors):
		n.skip()
		return nil
	default:
		return damaged("the columns of %q disagree about what is empty", n.path)
	}
	for {
		if err := read(); err != nil {
			return err
		}
		more, err := n.more()
		if err != nil || !more {
			return err
		}
	}
}

// more says whether another element follows, of which all leaves below must know.
func (n *node) more() (bool, error) {
	following := 0
	for _, c := range n.cursors {
		switch {
		case !c.ready():
			if c.err != nil {
				return false, c.err
			}
		case c.head().RepetitionLevel() > n.rep+1:
			return false, damaged("the levels of %q are out of order", n.path)
		case c.head().RepetitionLevel() == n.rep+1:
			following++
		}
	}
	if following != 0 && following != len(n.cursors) {
		return false, damaged("the columns of %q disagree about their length", n.path)
	}
	return following != 0, nil
}
