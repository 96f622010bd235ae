package columnar

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"
)

// cursor walks the values of one leaf in one row group.
type cursor struct {
	leaf   *parquet.Column
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	// buf holds values that point into page: the page is released only once all of them are taken.
	buf   []parquet.Value
	at, n int
	// seen and total count the values read and those the footer claims.
	seen, total int64
	err         error
}

// valuesAtOnce is how many values a cursor takes from a page at a time.
const valuesAtOnce = 256

// open starts the cursor on a column chunk.
func (c *cursor) open(chunk parquet.ColumnChunk) {
	c.close()
	if c.buf == nil {
		c.buf = make([]parquet.Value, valuesAtOnce)
	}
	c.pages, c.err = chunk.Pages(), nil
	c.at, c.n, c.seen, c.total = 0, 0, 0, chunk.NumValues()
}

func (c *cursor) close() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page, c.values = nil, nil
	}
	if c.pages != nil {
		if err := c.pages.Close(); err != nil && c.err == nil {
			c.err = err
		}
		c.pages = nil
	}
}

// ready says whether a value is there to be looked at; where none is, err tells the end from a failure.
func (c *cursor) ready() bool {
	if c.at < c.n {
		return true
	}
	return c.fill()
}

// head is the value the cursor is at; it is valid until the cursor moves.
func (c *cursor) head() *parquet.Value { return &c.buf[c.at] }

// present is ready where a value must be there.
func (c *cursor) present() error {
	if c.ready() {
		return nil
	}
	if c.err != nil {
		return c.err
	}
	return damaged("a column has too few values")
}

// nulls counts the next values at hand, at most so many, that are rows of their own below a definition level.
func (c *cursor) nulls(def, most int) int {
	n := 0
	for n < most && c.at+n < c.n && c.buf[c.at+n].DefinitionLevel() < def && c.buf[c.at+n].RepetitionLevel() == 0 {
		n++
	}
	return n
}

func (c *cursor) fill() bool {
	if c.err != nil || c.pages == nil {
		return false
	}
	for {
		if c.values == nil && !c.next() {
			return false
		}
		n, err := c.values.ReadValues(c.buf)
		if err != nil && !errors.Is(err, io.EOF) {
			c.err = err
			return false
		}
		if n > 0 {
			c.at, c.n = 0, n
			return c.check()
		}
		if err == nil {
			c.err = damaged("a page gives no values")
			return false
		}
		parquet.Release(c.page)
		c.page, c.values = nil, nil
	}
}

// next turns to the next page that the column has.
func (c *cursor) next() bool {
	page, err := c.pages.ReadPage()
	switch {
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		if c.seen != c.total {
			c.err = damaged("a column has %d values where the footer claims %d", c.seen, c.total)
		}
		return false
	case err != nil:
		c.err = err
		return false
	}
	c.page, c.values = page, page.Values()
	return true
}

// check refuses levels that the schema does not have and values beyond what the footer claims.
func (c *cursor) check() bool {
	c.seen += int64(c.n)
	if c.seen > c.total {
		c.err = damaged("a column has more values than the footer claims")
		return false
	}
	maxRep, maxDef := c.leaf.MaxRepetitionLevel(), c.leaf.MaxDefinitionLevel()
	for i := range c.n {
		v := &c.buf[i]
		if v.RepetitionLevel() > maxRep || v.DefinitionLevel() > maxDef || v.IsNull() != (v.DefinitionLevel() < maxDef) {
			c.err = damaged("a column has levels that its schema does not have")
			return false
		}
	}
	return true
}
