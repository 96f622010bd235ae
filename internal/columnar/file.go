package columnar

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"varve/internal/value"
)

// File is an open Parquet file. It is safe for concurrent use if its reader is.
type File struct {
	source  *source
	parquet *parquet.File
	schema  value.Schema
}

// source remembers why reading failed, so that an outage of the store is not taken for a damaged file.
type source struct {
	r    io.ReaderAt
	size int64
	mu   sync.Mutex
	err  error
}

// ReadAt reads from the file.
func (s *source) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 || at > s.size {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.r.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) && n < len(b) {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}
	return n, err
}

// failed turns what the library said into this package's errors.
func (s *source) failed(reason string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	var known *FormatError
	var typ *TypeError
	if errors.As(err, &known) || errors.As(err, &typ) {
		return err
	}
	return &FormatError{Reason: reason, Err: err}
}

// OpenFile reads the footer of a Parquet file of that size. What is not a whole Parquet file is a *FormatError.
func OpenFile(r io.ReaderAt, size int64) (f *File, err error) {
	src := &source{r: r, size: size}
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, src.failed("the footer is damaged", recovered(p))
		}
	}()
	if err := src.checkTrailer(); err != nil {
		return nil, err
	}
	opened, err := parquet.OpenFile(src, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, src.failed("the footer is damaged", err)
	}
	f = &File{source: src, parquet: opened}
	if err := f.checkFooter(); err != nil {
		return nil, err
	}
	f.schema = schemaOf(opened.Root())
	return f, nil
}

// checkTrailer refuses footers longer than the file, for which the library would find memory.
func (s *source) checkTrailer() error {
	if s.size < int64(len(magic)+trailer) {
		return damaged("a file of %d bytes is too short", s.size)
	}
	var end [trailer]byte
	if n, err := s.ReadAt(end[:], s.size-trailer); n < trailer {
		return s.failed("the end of the file cannot be read", err)
	}
	if string(end[trailer-len(magic):]) != magic {
		return damaged("the file does not end as a Parquet file does")
	}
	if length := int64(binary.LittleEndian.Uint32(end[:])); length > s.size-int64(len(magic)+trailer) {
		return damaged("the footer is longer than the file")
	}
	return nil
}

// checkFooter looks whether the counts of the footer agree with each other and with the file's size.
func (f *File) checkFooter() error {
	meta := f.parquet.Metadata()
	leaves := leavesOf(f.parquet.Root())
	if len(leaves) == 0 {
		return damaged("the file has no column")
	}
	var total int64
	for i := range meta.RowGroups {
		group := &meta.RowGroups[i]
		if group.NumRows < 0 || len(group.Columns) != len(leaves) {
			return damaged("row group %d contradicts the schema", i)
		}
		total += group.NumRows
		for j, leaf := range leaves {
			chunk := &group.Columns[j].MetaData
			flat := leaf.MaxRepetitionLevel() == 0
			if flat && chunk.NumValues != group.NumRows || chunk.NumValues < group.NumRows {
				return damaged("row group %d has another number of rows than its column %d", i, j)
			}
			start, length := chunk.DataPageOffset, chunk.TotalCompressedSize
			if start < 0 || length < 0 || length > f.source.size || start > f.source.size {
				return damaged("column %d of row group %d is outside of the file", j, i)
			}
			if format.Type(leaf.Type().Kind()) != chunk.Type {
				return damaged("column %d of row group %d has another type than the schema says", j, i)
			}
		}
	}
	if total != meta.NumRows {
		return damaged("the row groups hold %d rows where the file claims %d", total, meta.NumRows)
	}
	return nil
}

func leavesOf(c *parquet.Column) []*parquet.Column {
	if c.Leaf() {
		return []*parquet.Column{c}
	}
	var leaves []*parquet.Column
	for _, child := range c.Columns() {
		leaves = append(leaves, leavesOf(child)...)
	}
	return leaves
}

// Schema gives the file's columns, in the file's order, with the types that fit what it holds. Columns of types that
// tables cannot have are left out.
func (f *File) Schema() value.Schema { return f.schema }

// NumRows is the number of rows.
func (f *File) NumRows() int64 { return f.parquet.NumRows() }

// Has says whether the file holds a column of that name in the file.
func (f *File) Has(column string) bool { return f.parquet.Root().Column(column) != nil }
