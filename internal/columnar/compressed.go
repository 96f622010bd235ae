package columnar

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// checkCompressed sees that a page unpacks to the size that its header claims, as far as that can be known beforehand: the
// codecs find as much memory as the packed bytes ask for, and running out of it ends the process.
func checkCompressed(column io.ReaderAt, at int64, h *format.PageHeader, codec format.CompressionCodec) error {
	packed, unpacked := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	if v := &h.DataPageHeaderV2.V; h.Type == format.DataPageV2 {
		if v.IsCompressed.Valid && !v.IsCompressed.V {
			return nil
		}
		levels := int64(v.RepetitionLevelsByteLength) + int64(v.DefinitionLevelsByteLength)
		at, packed, unpacked = at+levels, packed-levels, unpacked-levels
	}
	if packed == 0 {
		return nil
	}
	var claimed uint64
	switch codec {
	case format.Snappy:
		head, err := readHead(column, at, min(packed, binary.MaxVarintLen64))
		if err != nil {
			return err
		}
		claimed, _ = binary.Uvarint(head)
	case format.Zstd:
		head, err := readHead(column, at, min(packed, zstd.HeaderMaxSize))
		if err != nil {
			return err
		}
		var frame zstd.Header
		if err := frame.Decode(head); err != nil {
			return err
		}
		claimed = frame.FrameContentSize
	case format.Lz4Raw:
		body, err := readHead(column, at, packed)
		if err != nil {
			return err
		}
		// The library tries again with twice the memory for as long as unpacking fails.
		n, err := lz4.UncompressBlock(body, make([]byte, unpacked))
		if err != nil {
			return err
		}
		claimed = uint64(n) //nolint:gosec // a length
	default: // gzip and brotli grow with what they unpack
	}
	if claimed > uint64(unpacked) { //nolint:gosec // sizes are not negative, as checkHeader sees
		return errors.New("it unpacks to more than its header claims")
	}
	return nil
}

func readHead(column io.ReaderAt, at, n int64) ([]byte, error) {
	head := make([]byte, n)
	if got, err := column.ReadAt(head, at); got < len(head) {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return head, nil
}
