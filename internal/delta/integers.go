package delta

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"varve/internal/columnar"
	"varve/internal/value"
)

// integersAtOnce is how many numbers are given at once where they are made row by row.
const integersAtOnce = 4096

// ReadIntegers gives one column of a data file's live rows as numbers, in the order of ReadFile: whole numbers, days since
// 1970 or microseconds since 1970. It is many times as fast as rows are, where the file holds the column so. What is given
// is valid until the next is asked for. The column's type must be one of whole numbers, a date or a timestamp.
func (s *Snapshot) ReadIntegers(ctx context.Context, a Add, column value.Field) iter.Seq2[columnar.Integers, error] {
	return func(yield func(columnar.Integers, error) bool) {
		for part, err := range s.readIntegers(ctx, a, column) {
			if err != nil {
				yield(columnar.Integers{}, s.table.corrupt(s.version, a.Path, err))
				return
			}
			if !yield(part, nil) {
				return
			}
		}
	}
}

func (s *Snapshot) readIntegers(ctx context.Context, a Add, column value.Field) iter.Seq2[columnar.Integers, error] {
	return func(yield func(columnar.Integers, error) bool) {
		fail := func(err error) { yield(columnar.Integers{}, err) }
		f, err := s.open(ctx, a)
		if err != nil {
			fail(err)
			return
		}
		deleted, err := s.deleted(ctx, a, f.NumRows())
		if err != nil {
			fail(err)
			return
		}
		if s.state.metadata.isPartition(column.Name) {
			s.integersOfRows(ctx, a, column, yield)
			return
		}
		mapping := s.state.metadata.mapping()
		if mapping == mappingNone {
			mapping = ""
		}
		position := int64(0)
		for part, err := range f.Integers(column, mapping) {
			if typ := (*columnar.TypeError)(nil); errors.As(err, &typ) && position == 0 {
				s.integersOfRows(ctx, a, column, yield)
				return
			}
			if err != nil {
				fail(err)
				return
			}
			rows := int64(len(part.Values))
			if !yield(deleted.without(part, position), nil) {
				return
			}
			position += rows
		}
		if position != f.NumRows() {
			fail(fmt.Errorf("%d rows, not %d", position, f.NumRows()))
		}
	}
}

// without leaves deleted rows out of numbers that begin at a position of the file.
func (s rowSet) without(part columnar.Integers, position int64) columnar.Integers {
	if len(s) == 0 {
		return part
	}
	kept := 0
	for i, n := range part.Values {
		if s.has(position + int64(i)) {
			continue
		}
		part.Values[kept] = n
		if part.Null != nil {
			part.Null[kept] = part.Null[i]
		}
		kept++
	}
	part.Values = part.Values[:kept]
	if part.Null != nil {
		part.Null = part.Null[:kept]
	}
	return part
}

// integersOfRows gives the numbers by way of rows.
func (s *Snapshot) integersOfRows(ctx context.Context, a Add, column value.Field, yield func(columnar.Integers, error) bool) {
	var part columnar.Integers
	flush := func() bool {
		goOn := len(part.Values) == 0 || yield(part, nil)
		part = columnar.Integers{}
		return goOn
	}
	for row, err := range s.readFile(ctx, a, value.Schema{column}, nil) {
		n, null := int64(0), false
		if err == nil {
			n, null, err = number(row[0])
		}
		if err != nil {
			yield(columnar.Integers{}, fmt.Errorf("column %q: %w", column.Name, err))
			return
		}
		part.Values, part.Null = append(part.Values, n), append(part.Null, null)
		if len(part.Values) == integersAtOnce && !flush() {
			return
		}
	}
	flush()
}

// number gives the number that stands for a value.
func number(v value.Value) (n int64, null bool, err error) {
	switch v := v.(type) {
	case nil:
		return 0, true, nil
	case int64:
		return v, false, nil
	case value.Date:
		return int64(v), false, nil
	case value.Timestamp:
		return int64(v), false, nil
	case value.LocalTimestamp:
		return int64(v), false, nil
	default:
		return 0, false, errors.New("its values are no numbers")
	}
}
