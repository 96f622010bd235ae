package columnar

import (
	"iter"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"varve/internal/value"
)

// The column mapping modes (PROTOCOL.md, Column Mapping).
const (
	MappingName = "name"
	MappingID   = "id"
)

// ReadOptions say what is read of a file.
type ReadOptions struct {
	// Columns are what rows shall hold, in order. A column, or a struct's field, that the file lacks is null; a type wider
	// than the file's is widened where Delta allows it. Default the file's own schema.
	Columns value.Schema
	// ByFieldID is short for Mapping "id". Default false.
	ByFieldID bool
	// Mapping says how columns are found: by their names ("" or "none"), by the physical names of their metadata ("name"),
	// or by the field ids of their metadata ("id"); those without either are found by their names. Default by name.
	Mapping string
}

// batchRows is how many rows are put together before they are handed out: a batch that fails hands out none.
const batchRows = 256

// Rows gives the file's rows in order. It holds some pages and one batch at a time, never the file. After an error, which
// is a *FormatError where the file is damaged and a *TypeError where a column cannot be read as its type, no row follows.
func (f *File) Rows(o ReadOptions) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		r, err := f.open(o)
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.close()
		for {
			rows, err := r.batch()
			if err != nil {
				yield(nil, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if len(rows) == 0 {
				return
			}
		}
	}
}

// rows is a reading of a file.
type rows struct {
	source  *source
	groups  []parquet.RowGroup
	metas   []format.RowGroup
	left    int64
	started bool
	nodes   []*node
	cursors []*cursor
	// first is the file's first leaf.
	first *parquet.Column
}

func (f *File) open(o ReadOptions) (r *rows, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, f.source.failed("the schema is damaged", recovered(p))
		}
	}()
	nodes, cursors, err := f.plan(o)
	if err != nil {
		return nil, err
	}
	return &rows{
		source: f.source,
		groups: f.parquet.RowGroups(), metas: f.parquet.Metadata().RowGroups,
		nodes: nodes, cursors: cursors, first: leavesOf(f.parquet.Root())[0],
	}, nil
}

// close gives the pages that are held back to the library. After a panic of the library they are left to the collector.
func (r *rows) close() {
	for _, c := range r.cursors {
		c.close()
	}
}

// batch gives the next rows, none at the end.
func (r *rows) batch() (batch []value.Row, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.cursors = nil
			batch, err = nil, r.source.failed("a page is damaged", recovered(p))
		}
	}()
	for r.left == 0 {
		if err := r.ended(); err != nil {
			return nil, r.source.failed("a page is damaged", err)
		}
		if len(r.groups) == 0 {
			return nil, nil
		}
		if err := r.start(r.groups[0]); err != nil {
			return nil, err
		}
		r.groups = r.groups[1:]
	}
	n := int(min(r.left, batchRows))
	batch = make([]value.Row, n)
	values := make([]value.Value, n*len(r.nodes))
	for i := range batch {
		batch[i] = values[i*len(r.nodes) : (i+1)*len(r.nodes) : (i+1)*len(r.nodes)]
		if err := r.row(batch[i], int(r.left)-i); err != nil {
			return nil, r.source.failed("a page is damaged", err)
		}
	}
	r.left -= int64(n)
	if r.left > 0 {
		return batch, nil
	}
	if err := r.ended(); err != nil { // before the rows are handed out
		return nil, r.source.failed("a page is damaged", err)
	}
	return batch, nil
}

func (r *rows) start(group parquet.RowGroup) error {
	chunks := group.ColumnChunks()
	check := func(leaf *parquet.Column) error {
		return r.source.checkPages(leaf, &r.metas[0].Columns[leaf.Index()].MetaData)
	}
	for _, c := range r.cursors {
		if err := check(c.leaf); err != nil {
			return err
		}
		c.open(chunks[c.leaf.Index()])
	}
	if len(r.cursors) == 0 { // nothing else would show that the rows are there
		if err := check(r.first); err != nil {
			return err
		}
	}
	r.metas = r.metas[1:]
	r.left, r.started = group.NumRows(), true
	return nil
}

// row puts one row together, of those that are left of the row group.
func (r *rows) row(row value.Row, left int) error {
	for i, n := range r.nodes {
		if n.nulls == 0 && n.def > 0 && n.shape != leafShape {
			n.takeNulls(left)
		}
		if n.nulls > 0 {
			n.nulls--
			continue
		}
		for _, c := range n.cursors {
			if err := c.present(); err != nil {
				return err
			}
			if c.head().RepetitionLevel() != 0 {
				return damaged("column %q does not begin with a row", n.path)
			}
		}
		v, err := n.read()
		if err != nil {
			return err
		}
		row[i] = v
	}
	return nil
}

// ended checks that no column of the row group has more to give.
func (r *rows) ended() error {
	if !r.started {
		return nil
	}
	for _, c := range r.cursors {
		if c.ready() {
			return damaged("a column has more rows than the footer claims")
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}
