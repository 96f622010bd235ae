package columnar

import (
	"fmt"

	"github.com/parquet-go/parquet-go"

	"varve/internal/value"
)

// planner finds the columns that are asked for in a file.
type planner struct {
	mapping string
	cursors []*cursor
}

// plan gives a node for each column asked for, and the cursors that they read by.
func (f *File) plan(o ReadOptions) ([]*node, []*cursor, error) {
	columns := o.Columns
	if columns == nil {
		columns = f.schema
	}
	p := &planner{mapping: o.Mapping}
	if o.ByFieldID {
		p.mapping = MappingID
	}
	switch p.mapping {
	case "", "none", MappingName:
	case MappingID:
		if !hasIDs(f.parquet.Root()) {
			return nil, nil, damaged("columns are to be found by their ids, and the file has no ids")
		}
	default:
		return nil, nil, fmt.Errorf("column mapping mode %q is not known", p.mapping)
	}
	nodes := make([]*node, len(columns))
	for i, field := range columns {
		n, err := p.field(f.parquet.Root(), field, "")
		if err != nil {
			return nil, nil, err
		}
		nodes[i] = n
	}
	return nodes, p.cursors, nil
}

func hasIDs(c *parquet.Column) bool {
	for _, child := range c.Columns() {
		if child.ID() != 0 || hasIDs(child) {
			return true
		}
	}
	return false
}

// find gives the column of a field among the children of a group, nil where there is none.
func (p *planner) find(group *parquet.Column, f value.Field) *parquet.Column {
	switch p.mapping {
	case MappingID:
		if id := fieldID(f); id != 0 {
			for _, c := range group.Columns() {
				if c.ID() == id {
					return c
				}
			}
			return nil
		}
		return group.Column(f.Name)
	case MappingName:
		return group.Column(physicalName(f))
	default:
		return group.Column(f.Name)
	}
}

func (p *planner) field(group *parquet.Column, f value.Field, path string) (*node, error) {
	path = join(path, f.Name)
	c := p.find(group, f)
	if c == nil || f.Type.Kind == value.Void {
		return &node{shape: absent, path: path}, nil
	}
	return p.node(c, f.Type, path)
}

// node plans one column as a type.
func (p *planner) node(c *parquet.Column, want value.Type, path string) (*node, error) {
	if !c.Repeated() {
		return p.one(c, want, path)
	}
	if want.Kind != value.ArrayKind {
		return nil, &TypeError{Column: path, Reason: fmt.Sprintf("a list of the file cannot be read as %s", want)}
	}
	n := &node{shape: listShape, path: path, rep: c.MaxRepetitionLevel() - 1, def: c.MaxDefinitionLevel() - 1}
	return p.below(n, func() error { return p.child(n, c, *want.Elem, "element", p.one) })
}

// one plans one instance of a column, which may be repeated.
func (p *planner) one(c *parquet.Column, want value.Type, path string) (*node, error) {
	n := &node{path: path, rep: c.MaxRepetitionLevel(), def: c.MaxDefinitionLevel()}
	refused := &TypeError{Column: path, Reason: fmt.Sprintf("the file's column cannot be read as %s", want)}
	nested := want.Kind == value.StructKind || want.Kind == value.ArrayKind || want.Kind == value.MapKind || want.Kind == value.VariantKind
	if nested == c.Leaf() {
		return nil, refused
	}
	switch want.Kind {
	case value.StructKind:
		if isList(c) || isMap(c) || isVariant(c) {
			return nil, refused
		}
		n.shape = structShape
		return p.below(n, func() error { return p.members(n, c, want) })
	case value.ArrayKind:
		if isMap(c) {
			return nil, refused
		}
		element, bare, err := listElement(c)
		if err != nil {
			return nil, &TypeError{Column: path, Reason: "it is not a list in the file"}
		}
		n.shape = listShape
		plan := p.node
		if bare {
			plan = p.one
		}
		return p.below(n, func() error { return p.child(n, element, *want.Elem, "element", plan) })
	case value.MapKind:
		key, val, err := mapParts(c)
		if err != nil || isList(c) {
			return nil, &TypeError{Column: path, Reason: "it is not a map in the file"}
		}
		n.shape = mapShape
		return p.below(n, func() error {
			if err := p.child(n, key, *want.Key, "key", p.node); err != nil {
				return err
			}
			return p.child(n, val, *want.Elem, "value", p.node)
		})
	case value.VariantKind:
		n.shape = variantShape
		return p.below(n, func() error { return p.variant(n, c) })
	default:
		return p.leaf(n, c, want)
	}
}

// below plans what is below a node and hands it the cursors that were made there.
func (p *planner) below(n *node, plan func() error) (*node, error) {
	before := len(p.cursors)
	if err := plan(); err != nil {
		return nil, err
	}
	n.cursors = p.cursors[before:len(p.cursors):len(p.cursors)]
	return n, nil
}

func (p *planner) child(n *node, c *parquet.Column, want value.Type, name string, plan func(*parquet.Column, value.Type, string) (*node, error)) error {
	child, err := plan(c, want, join(n.path, name))
	n.children = append(n.children, child)
	return err
}

func (p *planner) members(n *node, c *parquet.Column, want value.Type) error {
	before := len(p.cursors)
	for _, f := range want.Fields {
		child, err := p.field(c, f, n.path)
		if err != nil {
			return err
		}
		n.children, n.names = append(n.children, child), append(n.names, f.Name)
	}
	if len(p.cursors) > before {
		return nil
	}
	leaves := leavesOf(c)
	if len(leaves) == 0 {
		return &TypeError{Column: n.path, Reason: "it has no column in the file"}
	}
	n.children = append(n.children, &node{shape: probe, path: n.path, rep: n.rep, cursors: []*cursor{p.cursor(leaves[0])}})
	return nil
}

// variant plans the two binaries of an unshredded variant.
func (p *planner) variant(n *node, c *parquet.Column) error {
	metadata, val := c.Column("metadata"), c.Column("value")
	if metadata == nil || val == nil {
		return &TypeError{Column: n.path, Reason: "it is not a variant in the file"}
	}
	if c.Column("typed_value") != nil {
		return &TypeError{Column: n.path, Reason: "shredded variants cannot be read"}
	}
	binary := value.Type{Kind: value.BinaryKind}
	if err := p.child(n, metadata, binary, "metadata", p.node); err != nil {
		return err
	}
	return p.child(n, val, binary, "value", p.node)
}

func (p *planner) leaf(n *node, c *parquet.Column, want value.Type) (*node, error) {
	d, err := decoderOf(c)
	if err != nil {
		return nil, &TypeError{Column: n.path, Reason: fmt.Sprintf("the file's type cannot be read as %s", want)}
	}
	if n.decode, err = decodeAs(d, want); err != nil {
		return nil, &TypeError{Column: n.path, Reason: err.Error()}
	}
	n.shape, n.cursors = leafShape, []*cursor{p.cursor(c)}
	return n, nil
}

func (p *planner) cursor(leaf *parquet.Column) *cursor {
	c := &cursor{leaf: leaf}
	p.cursors = append(p.cursors, c)
	return c
}
