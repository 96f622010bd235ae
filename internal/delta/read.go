package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"varve/internal/columnar"
	"varve/internal/object"
	"varve/internal/value"
)

// ReadFile gives the live rows of a data file: the table's columns, then hidden columns of the file, null where the file
// lacks them.
func (s *Snapshot) ReadFile(ctx context.Context, a Add, hidden value.Schema) iter.Seq2[value.Row, error] {
	return s.ReadColumns(ctx, a, s.Schema(), hidden)
}

// ReadColumns is ReadFile with some of the table's columns only, in the order asked for.
func (s *Snapshot) ReadColumns(ctx context.Context, a Add, columns, hidden value.Schema) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for row, err := range s.readFile(ctx, a, columns, hidden) {
			if err != nil {
				yield(nil, s.table.corrupt(s.version, a.Path, err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// Scan gives the live rows of all data files, as ReadFile does.
func (s *Snapshot) Scan(ctx context.Context, hidden value.Schema) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		for _, a := range s.files {
			for row, err := range s.ReadFile(ctx, a, hidden) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// HasColumn tells whether a column is physically in a data file.
func (s *Snapshot) HasColumn(ctx context.Context, a Add, name string) (bool, error) {
	f, err := s.open(ctx, a)
	if err != nil {
		return false, s.table.corrupt(s.version, a.Path, err)
	}
	if i := s.Schema().Index(name); i >= 0 {
		name = s.state.metadata.physicalName(s.Schema()[i])
	}
	return f.Has(name), nil
}

// open opens a data file.
func (s *Snapshot) open(ctx context.Context, a Add) (*columnar.File, error) {
	p, err := filePath(a.Path)
	if err != nil {
		return nil, err
	}
	return openObject(ctx, s.table.Store, join(s.table.Root, p), a.Size)
}

// readFile gives rows with errors that do not name the file.
func (s *Snapshot) readFile(ctx context.Context, a Add, columns, hidden value.Schema) iter.Seq2[value.Row, error] {
	return func(yield func(value.Row, error) bool) {
		f, err := s.open(ctx, a)
		if err != nil {
			yield(nil, err)
			return
		}
		deleted, err := s.deleted(ctx, a, f.NumRows())
		if err != nil {
			yield(nil, err)
			return
		}
		layout, err := s.layout(a, columns, hidden)
		if err != nil {
			yield(nil, err)
			return
		}
		for position, stored := range layout.positions(f, &err) {
			if !deleted.has(position) && !yield(layout.row(stored), nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// deleted reads the deletion vector of a file, which may be none.
func (s *Snapshot) deleted(ctx context.Context, a Add, rows int64) (rowSet, error) {
	if a.DeletionVector == nil {
		return nil, nil //nolint:nilnil // the empty set
	}
	deleted, err := a.DeletionVector.load(ctx, s.table.Store, s.table.Root)
	if err != nil {
		return nil, err
	}
	if deleted.max() >= rows {
		return nil, errors.New("deletion vector reaches beyond the file")
	}
	return deleted, nil
}

// layout says how a row comes together: from the file, or from the partition's values.
type layout struct {
	stored  value.Schema
	mapping string
	from    []int // a position among the stored columns, or -1
	fixed   value.Row
}

// layout makes the layout of rows of a file.
func (s *Snapshot) layout(a Add, columns, hidden value.Schema) (layout, error) {
	partition, err := s.Partition(a)
	if err != nil {
		return layout{}, err
	}
	l := layout{mapping: s.state.metadata.mapping()}
	for _, f := range slices.Concat(columns, hidden) {
		if v, ok := partition[f.Name]; ok {
			l.from, l.fixed = append(l.from, -1), append(l.fixed, v)
			continue
		}
		l.from, l.fixed = append(l.from, len(l.stored)), append(l.fixed, nil)
		l.stored = append(l.stored, f)
	}
	return l, nil
}

// positions gives the stored part of all rows of a file by their positions, and sets err where that fails.
func (l layout) positions(f *columnar.File, err *error) iter.Seq2[int64, value.Row] {
	return func(yield func(int64, value.Row) bool) {
		position := int64(0)
		for stored, failed := range l.rows(f) {
			if failed != nil {
				*err = failed
				return
			}
			if !yield(position, stored) {
				return
			}
			position++
		}
		if position != f.NumRows() {
			*err = fmt.Errorf("%d rows, not %d", position, f.NumRows())
		}
	}
}

// rows gives the stored part of a file's rows.
func (l layout) rows(f *columnar.File) iter.Seq2[value.Row, error] {
	if len(l.stored) > 0 {
		o := columnar.ReadOptions{Columns: l.stored}
		if l.mapping != mappingNone {
			o.Mapping = l.mapping
		}
		return f.Rows(o)
	}
	return func(yield func(value.Row, error) bool) {
		for range f.NumRows() {
			if !yield(nil, nil) {
				return
			}
		}
	}
}

// row makes a row of its stored part.
func (l layout) row(stored value.Row) value.Row {
	if len(stored) == len(l.from) {
		return stored
	}
	row := make(value.Row, len(l.from))
	for i, from := range l.from {
		if from >= 0 {
			row[i] = stored[from]
		} else {
			row[i] = l.fixed[i]
		}
	}
	return row
}

// Objects are read in blocks, of which the last used ones are kept: a reader of columns asks for many small ranges.
const (
	blockSize = 1 << 20
	maxBlocks = 64
)

// objectReader reads ranges of one object. It keeps the context of the call that it serves: io.ReaderAt has none.
type objectReader struct {
	ctx    context.Context //nolint:containedctx // see above
	store  object.Store
	key    string
	size   int64
	blocks map[int64][]byte
	order  []int64 // the blocks, the longest kept first
}

// openObject opens a Parquet object of that size.
func openObject(ctx context.Context, store object.Store, key string, size int64) (*columnar.File, error) {
	if size < 0 {
		return nil, errors.New("negative size")
	}
	return columnar.OpenFile(&objectReader{ctx: ctx, store: store, key: key, size: size, blocks: map[int64][]byte{}}, size)
}

// ReadAt reads a range, from the blocks that it touches.
func (r *objectReader) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off+int64(n) < r.size {
		at := off + int64(n)
		block, err := r.block(at / blockSize)
		if err != nil {
			return n, err
		}
		if at%blockSize >= int64(len(block)) {
			return n, io.ErrUnexpectedEOF
		}
		n += copy(p[n:], block[at%blockSize:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// block gives a block, from the store if it is not kept.
func (r *objectReader) block(i int64) ([]byte, error) {
	if b, ok := r.blocks[i]; ok {
		return b, nil
	}
	b, err := r.store.Read(r.ctx, r.key, i*blockSize, blockSize)
	if err != nil {
		return nil, err
	}
	if len(r.order) >= maxBlocks {
		delete(r.blocks, r.order[0])
		r.order = r.order[1:]
	}
	r.blocks[i] = b
	r.order = append(r.order, i)
	return b, nil
}
