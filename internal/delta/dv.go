package delta

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"varve/internal/object"
)

// DeletionVector says which rows of a file are deleted. Its JSON is the protocol's.
type DeletionVector struct {
	StorageType    string `json:"storageType"`
	PathOrInlineDv string `json:"pathOrInlineDv"`
	Offset         *int32 `json:"offset,omitempty"`
	SizeInBytes    int32  `json:"sizeInBytes"`
	Cardinality    int64  `json:"cardinality"`
}

// bitmapMagic begins a bitmap. PROTOCOL.md, Deletion Vector Format.
const bitmapMagic = 1681511377

// check tells what is wrong with a descriptor; nil is right.
func (d *DeletionVector) check() error {
	switch {
	case d == nil:
		return nil
	case d.StorageType != "u" && d.StorageType != "i" && d.StorageType != "p":
		return &UnsupportedError{Feature: "deletion vector storage " + strconv.Quote(d.StorageType)}
	case d.PathOrInlineDv == "":
		return errors.New("deletion vector without a place")
	case d.SizeInBytes < 0 || d.Cardinality < 0 || (d.Offset != nil && *d.Offset < 0):
		return errors.New("deletion vector with a negative number")
	}
	return nil
}

// uniqueID is what tells the deletion vectors of one file apart. PROTOCOL.md, Derived Fields.
func (d *DeletionVector) uniqueID() string {
	if d == nil {
		return ""
	}
	id := d.StorageType + d.PathOrInlineDv
	if d.Offset != nil {
		id += "@" + strconv.FormatInt(int64(*d.Offset), 10)
	}
	return id
}

// file gives the file that holds the vector, relative to the table's root; it is empty for an inline one.
func (d *DeletionVector) file() (string, error) {
	switch d.StorageType {
	case "u":
		split := len(d.PathOrInlineDv) - 20
		if split < 0 {
			return "", errors.New("deletion vector without a UUID")
		}
		raw, err := decodeZ85(d.PathOrInlineDv[split:])
		if err != nil {
			return "", err
		}
		id, err := uuid.FromBytes(raw)
		if err != nil {
			return "", err
		}
		return filePath(encodePath(join(d.PathOrInlineDv[:split], "deletion_vector_"+id.String()+".bin")))
	case "p":
		return filePath(d.PathOrInlineDv)
	default:
		return "", nil
	}
}

// load reads the vector of a table's file.
func (d *DeletionVector) load(ctx context.Context, store object.Store, root string) (rowSet, error) {
	name, err := d.file()
	if err != nil {
		return nil, err
	}
	if name == "" {
		blob, err := decodeZ85(d.PathOrInlineDv)
		if err != nil {
			return nil, err
		}
		if len(blob) < int(d.SizeInBytes) || len(blob) > int(d.SizeInBytes)+3 {
			return nil, fmt.Errorf("inline deletion vector of %d bytes, not %d", len(blob), d.SizeInBytes)
		}
		return d.parse(blob[:d.SizeInBytes])
	}
	offset := int64(1)
	if d.Offset != nil {
		offset = int64(*d.Offset)
	}
	framed, err := store.Read(ctx, join(root, name), offset, int64(d.SizeInBytes)+8)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	blob, err := unframe(framed, int(d.SizeInBytes))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	return d.parse(blob)
}

// unframe takes a bitmap out of its place in a file: its size before it and its checksum after.
func unframe(framed []byte, size int) ([]byte, error) {
	if len(framed) < size+8 {
		return nil, errors.New("deletion vector is cut short")
	}
	if got := binary.BigEndian.Uint32(framed); int64(got) != int64(size) {
		return nil, fmt.Errorf("deletion vector of %d bytes, not %d", got, size)
	}
	blob := framed[4 : 4+size]
	if crc32.ChecksumIEEE(blob) != binary.BigEndian.Uint32(framed[4+size:]) {
		return nil, errors.New("deletion vector's checksum is wrong")
	}
	return blob, nil
}

// parse reads a bitmap and checks its cardinality.
func (d *DeletionVector) parse(blob []byte) (rowSet, error) {
	rows, err := parseRowSet(blob)
	if err != nil {
		return nil, err
	}
	if got := rows.cardinality(); got != uint64(d.Cardinality) { //nolint:gosec // check refuses a negative one
		return nil, fmt.Errorf("deletion vector of %d rows, not %d", got, d.Cardinality)
	}
	return rows, nil
}

// rowSet is a set of row positions: a bitmap of the low halves for each high half.
type rowSet map[uint32]*roaring.Bitmap

// has tells whether a position is in the set.
func (s rowSet) has(row int64) bool {
	high, low := uint32(row>>32), uint32(row) //nolint:gosec // the two halves
	bitmap, ok := s[high]
	return ok && bitmap.Contains(low)
}

// cardinality counts the positions.
func (s rowSet) cardinality() uint64 {
	var n uint64
	for _, bitmap := range s {
		n += bitmap.GetCardinality()
	}
	return n
}

// max gives the greatest position, or -1.
func (s rowSet) max() int64 {
	greatest := int64(-1)
	for high, bitmap := range s {
		if !bitmap.IsEmpty() {
			greatest = max(greatest, int64(high)<<32|int64(bitmap.Maximum()))
		}
	}
	return greatest
}

// parseRowSet reads a bitmap in the portable 64-bit Roaring format. A high half may have an empty bitmap. A hostile text
// must give an error, not a panic nor endless memory.
func parseRowSet(blob []byte) (rows rowSet, err error) {
	if len(blob) < 12 || binary.LittleEndian.Uint32(blob) != bitmapMagic {
		return nil, errors.New("not a deletion vector")
	}
	defer func() {
		if recover() != nil {
			rows, err = nil, errors.New("not a deletion vector")
		}
	}()
	count := binary.LittleEndian.Uint64(blob[4:])
	rest := bytes.NewReader(blob[12:])
	rows = rowSet{}
	last := int64(-1)
	for range count {
		var key [4]byte
		if _, err := io.ReadFull(rest, key[:]); err != nil {
			return nil, errors.New("deletion vector is cut short")
		}
		high := binary.LittleEndian.Uint32(key[:])
		if int64(high) <= last || high > math.MaxInt32 {
			return nil, errors.New("deletion vector's keys are out of order")
		}
		last = int64(high)
		bitmap := roaring.New()
		if _, err := bitmap.ReadFrom(rest); err != nil {
			return nil, fmt.Errorf("deletion vector: %w", err)
		}
		if err := bitmap.Validate(); err != nil {
			return nil, fmt.Errorf("deletion vector: %w", err)
		}
		rows[high] = bitmap
	}
	if rest.Len() > 0 {
		return nil, errors.New("deletion vector has bytes left over")
	}
	return rows, nil
}
