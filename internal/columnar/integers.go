package columnar

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"varve/internal/value"
)

// Integers are the values of one column in some rows that follow each other: whole numbers, days since 1970, or
// microseconds since 1970. They are valid until the next ones are asked for.
type Integers struct {
	// Values has a number a row, 0 where the row has none.
	Values []int64
	// Null says which rows have none; nil where all have one.
	Null []bool
}

// Integers reads one column that is no member of another, page by page and without a value made of each number. Its rows
// are those of Rows, in order. It is a *TypeError where the file holds the column in another form than as whole numbers.
func (f *File) Integers(column value.Field, mapping string) iter.Seq2[Integers, error] {
	return func(yield func(Integers, error) bool) {
		r, err := f.openIntegers(column, mapping)
		if err != nil {
			yield(Integers{}, err)
			return
		}
		defer r.close()
		for {
			part, err := r.next()
			if errors.Is(err, io.EOF) || !yield(part, err) || err != nil {
				return
			}
		}
	}
}

// integers is one reading of a column.
type integers struct {
	file   *File
	leaf   *parquet.Column // nil where the file lacks the column
	small  bool            // the file has 32 bits a number
	group  int             // the row group that is next
	left   int64           // rows of the one that is read
	pages  parquet.Pages
	part   Integers
	absent int64 // rows that are null since the file lacks the column
	// words are those of the dictionary, of which a row group has one.
	dictionary parquet.Dictionary
	words      []int64
}

func (f *File) openIntegers(column value.Field, mapping string) (*integers, error) {
	p := &planner{mapping: mapping}
	if mapping == MappingID && !hasIDs(f.parquet.Root()) {
		return nil, damaged("columns are to be found by their ids, and the file has no ids")
	}
	r := &integers{file: f, leaf: p.find(f.parquet.Root(), column)}
	if r.leaf == nil {
		r.absent = f.NumRows()
		return r, nil
	}
	refused := &TypeError{Column: column.Name, Reason: fmt.Sprintf("the file does not hold %s as whole numbers", column.Type)}
	if !r.leaf.Leaf() || r.leaf.MaxRepetitionLevel() > 0 || r.leaf.MaxDefinitionLevel() > 1 {
		return nil, refused
	}
	d, err := decoderOf(r.leaf)
	if err != nil || !asStored(r.leaf) {
		return nil, refused
	}
	wider := integerBits(d.typ.Kind) > 0 && integerBits(d.typ.Kind) <= integerBits(column.Type.Kind)
	if !d.typ.Equal(column.Type) && !wider {
		return nil, refused
	}
	r.small = r.leaf.Type().Kind() == parquet.Int32
	return r, nil
}

// asStored says whether a leaf's numbers are its values, with nothing to be converted or to be checked.
func asStored(c *parquet.Column) bool {
	switch l := logical(c).(type) {
	case nil:
		return c.Type().Kind() == parquet.Int32 || c.Type().Kind() == parquet.Int64
	case *format.IntType:
		return l.IsSigned && l.BitWidth >= 32
	case *format.DateType:
		return true
	case *format.TimestampType:
		_, ok := l.Unit.Value.(*format.MicroSeconds)
		return ok
	default:
		return false
	}
}

// next gives the values of the next page; io.EOF at the end.
func (r *integers) next() (part Integers, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.pages = nil // left to the collector
			part, err = Integers{}, r.file.source.failed("a page is damaged", recovered(p))
		}
	}()
	if r.leaf == nil {
		return r.nulls()
	}
	for r.left == 0 {
		if err := r.turn(); err != nil {
			return Integers{}, err
		}
	}
	page, err := r.pages.ReadPage()
	if err != nil {
		return Integers{}, r.file.source.failed("a page is damaged", notEOF(err))
	}
	defer parquet.Release(page)
	if err := r.take(page); err != nil {
		return Integers{}, r.file.source.failed("a page is damaged", err)
	}
	if r.left -= int64(len(r.part.Values)); r.left < 0 {
		return Integers{}, damaged("a column has more rows than the footer claims")
	}
	return r.part, nil
}

// notEOF makes an end that comes too early an error of its own.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return damaged("a column has too few values")
	}
	return err
}

// nulls gives rows of a column that the file lacks.
func (r *integers) nulls() (Integers, error) {
	const most = 64 << 10
	n := min(r.absent, most)
	if n == 0 {
		return Integers{}, io.EOF
	}
	r.absent -= n
	r.part.Values, r.part.Null = make([]int64, n), make([]bool, n)
	for i := range r.part.Null {
		r.part.Null[i] = true
	}
	return r.part, nil
}

// turn goes to the next row group; io.EOF where there is none.
func (r *integers) turn() error {
	if err := r.close(); err != nil {
		return r.file.source.failed("a page is damaged", err)
	}
	groups := r.file.parquet.RowGroups()
	if r.group == len(groups) {
		return io.EOF
	}
	meta := &r.file.parquet.Metadata().RowGroups[r.group].Columns[r.leaf.Index()].MetaData
	if err := r.file.source.checkPages(r.leaf, meta); err != nil {
		return err
	}
	r.pages = groups[r.group].ColumnChunks()[r.leaf.Index()].Pages()
	r.left = groups[r.group].NumRows()
	r.group++
	return nil
}

func (r *integers) close() error {
	if r.pages == nil {
		return nil
	}
	err := r.pages.Close()
	r.pages, r.dictionary = nil, nil
	return err
}

// take copies a page's values out of it.
func (r *integers) take(page parquet.Page) error {
	data, dictionary := page.Data(), page.Dictionary()
	rows := int(page.NumValues())
	r.part.Values = grown(r.part.Values, rows)
	r.part.Null = nil
	dense := r.part.Values
	levels := page.DefinitionLevels()
	if r.leaf.MaxDefinitionLevel() > 0 {
		if len(levels) != rows {
			return damaged("a page has %d levels for %d rows", len(levels), rows)
		}
		present := 0
		for _, level := range levels {
			present += int(level & 1)
			if level > 1 {
				return damaged("a column has levels that its schema does not have")
			}
		}
		dense = dense[:present]
	}
	var err error
	switch {
	case dictionary != nil:
		err = r.look(dense, data.Int32(), dictionary)
	case r.small:
		err = copyInts(dense, data.Int32())
	default:
		err = copyInts(dense, data.Int64())
	}
	if err != nil || len(dense) == rows {
		return err
	}
	r.spread(len(dense), levels)
	return nil
}

// grown gives a slice of that length, the old one where it is long enough.
func grown(s []int64, n int) []int64 {
	if cap(s) < n {
		return make([]int64, n)
	}
	return s[:n]
}

func copyInts[T int32 | int64](to []int64, from []T) error {
	if len(from) != len(to) {
		return damaged("a page has %d values where it claims %d", len(from), len(to))
	}
	for i, v := range from {
		to[i] = int64(v)
	}
	return nil
}

// look gives the values that indexes into a dictionary mean.
func (r *integers) look(to []int64, indexes []int32, dictionary parquet.Dictionary) error {
	if len(indexes) != len(to) {
		return damaged("a page has %d values where it claims %d", len(indexes), len(to))
	}
	if r.dictionary != dictionary {
		data := dictionary.Page().Data()
		r.words = grown(r.words, dictionary.Len())
		var err error
		if r.small {
			err = copyInts(r.words, data.Int32())
		} else {
			err = copyInts(r.words, data.Int64())
		}
		if err != nil {
			return err
		}
		r.dictionary = dictionary
	}
	words := r.words
	for i, at := range indexes {
		if at < 0 || int(at) >= len(words) {
			return damaged("a page refers to what its dictionary does not have")
		}
		to[i] = words[at]
	}
	return nil
}

// spread puts the first n values, of the rows that have one, where their rows are.
func (r *integers) spread(n int, levels []byte) {
	r.part.Null = make([]bool, len(levels))
	for i := len(levels) - 1; i >= 0; i-- {
		if levels[i] == 0 {
			r.part.Values[i], r.part.Null[i] = 0, true
			continue
		}
		n--
		r.part.Values[i] = r.part.Values[n]
	}
}
