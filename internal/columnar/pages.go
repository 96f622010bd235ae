package columnar

import (
	"bufio"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// maxPageBytes is the largest page that is believed: the library finds memory for a page before it reads it.
	maxPageBytes = 1 << 30
	// headerBytes is how much is read at once of a page header.
	headerBytes = 4 << 10
)

// checkPages walks the page headers of a column chunk before the library trusts them.
func (s *source) checkPages(leaf *parquet.Column, chunk *format.ColumnMetaData) error {
	at := chunk.DataPageOffset
	if d := chunk.DictionaryPageOffset; d != 0 {
		at = d
	}
	end := at + chunk.TotalCompressedSize
	if at < 0 || end > s.size {
		return damaged("a column lies outside of the file")
	}
	section := io.NewSectionReader(s, at, chunk.TotalCompressedSize)
	buffered := bufio.NewReaderSize(section, headerBytes)
	var protocol thrift.CompactProtocol
	decoder := thrift.NewDecoder(protocol.NewReader(buffered))
	values := int64(0)
	for values < chunk.NumValues {
		var header format.PageHeader
		if err := decoder.Decode(&header); err != nil {
			return s.failed("a page header is damaged", err)
		}
		position, err := section.Seek(0, io.SeekCurrent)
		if err != nil {
			return s.failed("a page header is damaged", err)
		}
		if err := checkHeader(leaf, &header, chunk); err != nil {
			return err
		}
		body := position - int64(buffered.Buffered())
		next := body + int64(header.CompressedPageSize)
		if next > chunk.TotalCompressedSize {
			return damaged("a page lies outside of its column")
		}
		if err := checkCompressed(section, body, &header, chunk.Codec); err != nil {
			return s.failed("a compressed page is damaged", err)
		}
		values += pageValues(&header)
		if _, err := section.Seek(next, io.SeekStart); err != nil {
			return s.failed("a page header is damaged", err)
		}
		buffered.Reset(section)
	}
	if values != chunk.NumValues {
		return damaged("the pages of a column hold %d values where the footer claims %d", values, chunk.NumValues)
	}
	return nil
}

// pageValues is how many of the column's values a page claims to hold.
func pageValues(h *format.PageHeader) int64 {
	switch {
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		return int64(h.DataPageHeader.V.NumValues)
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		return int64(h.DataPageHeaderV2.V.NumValues)
	default:
		return 0
	}
}

func checkHeader(leaf *parquet.Column, h *format.PageHeader, chunk *format.ColumnMetaData) error {
	size, compressed, values := int64(h.UncompressedPageSize), int64(h.CompressedPageSize), pageValues(h)
	switch {
	case size < 0, compressed < 0, size > maxPageBytes, values < 0, values > chunk.NumValues:
		return damaged("a page header claims an impossible size")
	case chunk.Codec == format.Uncompressed && size != compressed:
		return damaged("a page that is not compressed has two sizes")
	}
	if d := h.DictionaryPageHeader; h.Type == format.DictionaryPage && d.Valid {
		return checkPlain(leaf, int64(d.V.NumValues), size)
	}
	if h.Type == format.DataPageV2 {
		v := &h.DataPageHeaderV2.V
		levels := int64(v.RepetitionLevelsByteLength) + int64(v.DefinitionLevelsByteLength)
		if v.RepetitionLevelsByteLength < 0 || v.DefinitionLevelsByteLength < 0 || levels > min(size, compressed) || v.NumNulls > v.NumValues {
			return damaged("a page header claims impossible levels")
		}
		if v.Encoding == format.Plain {
			return checkPlain(leaf, int64(v.NumValues)-int64(v.NumNulls), size-levels)
		}
		return nil
	}
	if leaf.MaxDefinitionLevel() == 0 && h.DataPageHeader.V.Encoding == format.Plain {
		return checkPlain(leaf, values, size)
	}
	return nil
}

// checkPlain sees that plain values are all there: the library gives what memory held before for those that are not.
func checkPlain(leaf *parquet.Column, values, size int64) error {
	bits := int64(0)
	switch kind := leaf.Type().Kind(); kind {
	case parquet.Boolean:
		bits = 1
	case parquet.Int32, parquet.Float:
		bits = 32
	case parquet.Int64, parquet.Double:
		bits = 64
	case parquet.Int96:
		bits = 96
	case parquet.ByteArray:
		bits = 32 // its length
	case parquet.FixedLenByteArray:
		bits = int64(leaf.Type().Length()) * 8
	}
	if values < 0 || (values*bits+7)/8 > size {
		return damaged("a page holds fewer values than it claims")
	}
	return nil
}
