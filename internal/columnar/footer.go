package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	magic = "PAR1"
	// trailer is the length of the footer, then the magic.
	trailer = 8
	// maxBound is the longest value that is kept as a bound in the footer.
	maxBound = 128
)

// tail passes a file on but holds its end back, to take the page index out: the library gives every page bounds, zeroes
// where it was told to keep none, and by those a reader would skip pages that it must read.
type tail struct {
	out    io.Writer
	passed int64
	hold   bool
	held   bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	if t.hold {
		return t.held.Write(b)
	}
	n, err := t.out.Write(b)
	t.passed += int64(n)
	return n, err
}

// finish passes on what is held, with a footer that names no page index.
func (t *tail) finish() error {
	held := t.held.Bytes()
	if len(held) < trailer || string(held[len(held)-len(magic):]) != magic {
		return errors.New("the footer is incomplete")
	}
	start := len(held) - trailer - int(binary.LittleEndian.Uint32(held[len(held)-trailer:]))
	if start < 0 {
		return errors.New("the footer is incomplete")
	}
	var protocol thrift.CompactProtocol
	var meta format.FileMetaData
	if err := thrift.Unmarshal(&protocol, held[start:len(held)-trailer], &meta); err != nil {
		return err
	}
	body := withoutPageIndex(&meta, t.passed+int64(start))
	if body < t.passed {
		return errors.New("the page index is not at the end")
	}
	footer, err := thrift.Marshal(&protocol, &meta)
	if err != nil {
		return err
	}
	out := slices.Concat(held[:body-t.passed], footer)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(footer))) //nolint:gosec // a footer is small
	_, err = t.out.Write(append(out, magic...))
	return err
}

// withoutPageIndex removes the page index from a footer, and bounds that are long; it gives where the page index began.
func withoutPageIndex(meta *format.FileMetaData, end int64) int64 {
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j]
			for _, offset := range []int64{c.ColumnIndexOffset, c.OffsetIndexOffset} {
				if offset > 0 {
					end = min(end, offset)
				}
			}
			c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0
			c.OffsetIndexOffset, c.OffsetIndexLength = 0, 0
			stats := &c.MetaData.Statistics
			if len(stats.MinValue) > maxBound || len(stats.MaxValue) > maxBound {
				stats.MinValue, stats.MaxValue = nil, nil
			}
		}
	}
	return end
}
