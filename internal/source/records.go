package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
)

// Record is one record as it came, without its line end.
type Record struct {
	// Row is its place in the file: the line of an NDJSON file and the element of a JSON array, counted from 1; the record of
	// a CSV file, counted from 0 where the first is the header.
	Row int64
	Raw []byte
}

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

const bufferSize = 64 << 10 // bytes

// Records cuts a file into records. It refuses nothing: what cannot be cut is one record, up to the end. The bytes of a
// record are valid until the next one.
func Records(r io.Reader, d Dialect) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		in := bufio.NewReaderSize(r, bufferSize)
		if head, err := in.Peek(len(byteOrderMark)); err == nil && bytes.Equal(head, byteOrderMark) {
			if _, err := in.Discard(len(byteOrderMark)); err != nil {
				yield(Record{}, err)
				return
			}
		}
		next, err := cutter(in, d)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for {
			record, err := next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// cutter gives the function that cuts the next record off, with io.EOF after the last.
func cutter(in *bufio.Reader, d Dialect) (func() (Record, error), error) {
	d = d.withDefaults()
	if d.Format == CSV {
		c := &csvCutter{in: in, dialect: d, row: -1}
		if !d.Header {
			c.row = 0
		}
		return c.next, nil
	}
	first, err := firstByte(in)
	if err != nil {
		return nil, err
	}
	if first == '[' {
		return (&arrayCutter{in: in}).next, nil
	}
	return (&lineCutter{in: in}).next, nil
}

// firstByte looks at the first byte that is no space, without taking it; 0 where there is none near.
func firstByte(in *bufio.Reader) (byte, error) {
	for n := 1; n <= bufferSize; n++ {
		head, err := in.Peek(n)
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if b := head[n-1]; !isSpace(b) {
			return b, nil
		}
	}
	return 0, nil
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

type lineCutter struct {
	in  *bufio.Reader
	row int64
	raw []byte
}

func (c *lineCutter) next() (Record, error) {
	for {
		c.raw = c.raw[:0]
		for {
			part, err := c.in.ReadSlice('\n')
			c.raw = append(c.raw, part...)
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (!errors.Is(err, io.EOF) || len(c.raw) == 0) {
				return Record{}, err
			}
			break
		}
		c.row++
		line := trimLine(c.raw)
		if len(bytes.TrimSpace(line)) > 0 {
			return Record{Row: c.row, Raw: line}, nil
		}
	}
}

func trimLine(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}

// arrayCutter cuts a JSON array into its elements.
type arrayCutter struct {
	in     *bufio.Reader
	row    int64
	raw    []byte
	begun  bool
	closed bool
}

func (c *arrayCutter) next() (Record, error) {
	if !c.begun {
		c.begun = true
		if _, err := c.in.ReadSlice('['); err != nil {
			return Record{}, err
		}
	}
	c.raw = c.raw[:0]
	if c.closed {
		return c.rest()
	}
	depth, quoted, escaped := 0, false, false
	for {
		b, err := c.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return c.unclosed()
		}
		if err != nil {
			return Record{}, err
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = b == '\\', b != '"'
		case b == '"':
			quoted = true
		case b == '{', b == '[':
			depth++
		case depth > 0 && (b == '}' || b == ']'):
			depth--
		case depth == 0 && (b == ',' || b == ']'):
			c.closed = b == ']'
			return c.element()
		}
		c.raw = append(c.raw, b)
	}
}

// element ends an element. An empty one is a record only between commas, where it is a fault.
func (c *arrayCutter) element() (Record, error) {
	raw := bytes.TrimSpace(c.raw)
	if len(raw) == 0 && c.closed {
		return c.next()
	}
	c.row++
	return Record{Row: c.row, Raw: raw}, nil
}

// unclosed gives what is left of an array without an end as one record, which no one will understand.
func (c *arrayCutter) unclosed() (Record, error) {
	raw := bytes.TrimSpace(c.raw)
	if len(raw) == 0 {
		return Record{}, io.EOF
	}
	c.row++
	return Record{Row: c.row, Raw: raw}, nil
}

// rest gives what follows the array as one record.
func (c *arrayCutter) rest() (Record, error) {
	all, err := io.ReadAll(c.in)
	if err != nil {
		return Record{}, err
	}
	raw := bytes.TrimSpace(all)
	if len(raw) == 0 {
		return Record{}, io.EOF
	}
	c.row++
	return Record{Row: c.row, Raw: raw}, nil
}
