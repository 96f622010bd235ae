package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"varve/schemas"
)

// The text formats of a source.
const (
	JSON = schemas.FormatJSON
	CSV  = schemas.FormatCSV
)

// Dialect says how a text file is cut into records and a record into fields.
type Dialect struct {
	// Format is JSON or CSV.
	Format string
	// Delimiter is what stands between two fields. Default a comma.
	Delimiter string
	// Quote is the byte around a field that holds delimiters, line ends or itself doubled. Default a double quote.
	Quote byte
	// Header says that the first record names the fields.
	Header bool
	// Null is the unquoted text that stands for null, beside the empty one.
	Null string
}

// ErrQuote says that a quoted field does not end, or that something stands behind its end.
var ErrQuote = errors.New("a quoted field does not end where the field ends")

// Cell is one field of a CSV record.
type Cell struct {
	Text   string
	Quoted bool
}

// Cells cuts a CSV record into its fields.
func Cells(raw string, d Dialect) ([]Cell, error) {
	d = d.withDefaults()
	quote := string(d.Quote)
	var cells []Cell
	for {
		if !strings.HasPrefix(raw, quote) {
			text, rest, more := strings.Cut(raw, d.Delimiter)
			cells = append(cells, Cell{Text: text})
			if !more {
				return cells, nil
			}
			raw = rest
			continue
		}
		text, rest, ok := quoted(raw[1:], quote)
		if !ok {
			return nil, ErrQuote
		}
		cells = append(cells, Cell{Text: text, Quoted: true})
		if rest == "" {
			return cells, nil
		}
		if raw, ok = strings.CutPrefix(rest, d.Delimiter); !ok {
			return nil, ErrQuote
		}
	}
}

// quoted reads a field behind its opening quote up to its closing one.
func quoted(raw, quote string) (text, rest string, ok bool) {
	var b strings.Builder
	for {
		part, after, found := strings.Cut(raw, quote)
		if !found {
			return "", "", false
		}
		b.WriteString(part)
		if !strings.HasPrefix(after, quote) {
			return b.String(), after, true
		}
		b.WriteString(quote)
		raw = after[1:]
	}
}

func (d Dialect) withDefaults() Dialect {
	if d.Delimiter == "" {
		d.Delimiter = ","
	}
	if d.Quote == 0 {
		d.Quote = '"'
	}
	return d
}

// DialectOf gives the dialect of a contract's source.
func DialectOf(s schemas.Source) Dialect {
	d := Dialect{Format: JSON}
	if s.Format == schemas.FormatCSV {
		d = Dialect{Format: CSV, Delimiter: s.CSV.Delimiter, Header: s.CSV.Header, Null: s.CSV.NullText}
		if s.CSV.Quote != "" {
			d.Quote = s.CSV.Quote[0]
		}
	}
	return d.withDefaults()
}

// csvCutter cuts records at line ends outside of quotes.
type csvCutter struct {
	in      *bufio.Reader
	dialect Dialect
	row     int64
	raw     []byte
}

func (c *csvCutter) next() (Record, error) {
	for {
		closed, err := c.cut()
		if err != nil && (!errors.Is(err, io.EOF) || len(c.raw) == 0) {
			return Record{}, err
		}
		line := c.raw
		if closed {
			line = bytes.TrimSuffix(line, []byte("\r"))
		}
		if blank := len(bytes.Trim(line, " ")) == 0; blank && c.row < 0 {
			continue // the header is the first line that holds something
		} else if c.row++; !blank {
			return Record{Row: c.row, Raw: line}, nil
		}
	}
}

// cut takes bytes up to the line end that ends a record, and says whether no quote is open there.
func (c *csvCutter) cut() (closed bool, err error) {
	delimiter, quote := []byte(c.dialect.Delimiter), c.dialect.Quote
	c.raw = c.raw[:0]
	inQuotes, justClosed, atStart := false, false, true
	for {
		b, err := c.in.ReadByte()
		if err != nil || b == '\n' && !inQuotes {
			return !inQuotes, err
		}
		c.raw = append(c.raw, b)
		switch {
		case inQuotes:
			inQuotes = b != quote
			justClosed = !inQuotes
		case b == quote && (atStart || justClosed):
			inQuotes = true
		default:
			justClosed = false
		}
		atStart = !inQuotes && bytes.HasSuffix(c.raw, delimiter)
	}
}
