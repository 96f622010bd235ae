package cachestore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// An entry is one file: the object's bytes, a CRC-32C of each block of them, and a footer of
//
//	size of the object  8 bytes, big-endian
//	name                32 bytes, the SHA-256 that names the entry
//	CRC-32C             4 bytes, big-endian, of the blocks' sums and of the footer before it
//	magic               8 bytes, whose last is the format's number
//
// so that a range is checked by the blocks that it touches, and a file that was cut, mixed up or damaged is found out.
const (
	blockBytes  = 128 << 10
	footerBytes = 8 + sha256.Size + crc32.Size + 8
	magic       = "varvech\x01"
)

// errDamaged says that a file is no entry, or not the one that it is named after.
var errDamaged = errors.New("damaged cache entry")

// id names the entry of an object.
type id [sha256.Size]byte

func (i id) String() string { return hex.EncodeToString(i[:]) }

func sums() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// blocks is how many blocks an object of a size has.
func blocks(size int64) int64 { return (size + blockBytes - 1) / blockBytes }

// fileBytes is how large the entry of an object of a size is.
func fileBytes(size int64) int64 { return size + blocks(size)*crc32.Size + footerBytes }

// seal makes an entry of a file that has the object's bytes, and no more.
func seal(file *os.File, name id, size int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != size {
		return fmt.Errorf("the store gave %d bytes and says that it gave %d", info.Size(), size)
	}
	var end bytes.Buffer
	block := make([]byte, blockBytes)
	for at := int64(0); at < size; at += blockBytes {
		b := block[:min(blockBytes, size-at)]
		if _, err := file.ReadAt(b, at); err != nil {
			return err
		}
		end.Write(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, sums())))
	}
	end.Write(binary.BigEndian.AppendUint64(nil, uint64(size))) //nolint:gosec // a file's size
	end.Write(name[:])
	end.Write(binary.BigEndian.AppendUint32(nil, crc32.Checksum(end.Bytes(), sums())))
	end.WriteString(magic)
	_, err = file.WriteAt(end.Bytes(), size)
	return err
}

// entry is an open entry whose footer agrees with its file.
type entry struct {
	file *os.File
	size int64
	sums []byte
}

// open reads the footer of an entry. The error is errDamaged where the file is none of that name.
func open(file *os.File, name id) (entry, error) {
	info, err := file.Stat()
	if err != nil {
		return entry{}, err
	}
	var footer [footerBytes]byte
	if info.Size() < footerBytes {
		return entry{}, errDamaged
	}
	if _, err := file.ReadAt(footer[:], info.Size()-footerBytes); err != nil {
		return entry{}, err
	}
	size := int64(binary.BigEndian.Uint64(footer[:])) //nolint:gosec // checked below
	if size < 0 || size > info.Size() || fileBytes(size) != info.Size() {
		return entry{}, errDamaged
	}
	end := make([]byte, info.Size()-size)
	if _, err := file.ReadAt(end, size); err != nil {
		return entry{}, err
	}
	signed := end[:len(end)-crc32.Size-len(magic)]
	sum := binary.BigEndian.Uint32(end[len(signed):])
	if string(end[len(end)-len(magic):]) != magic || crc32.Checksum(signed, sums()) != sum ||
		!bytes.Equal(signed[len(signed)-len(name):], name[:]) {
		return entry{}, errDamaged
	}
	return entry{file: file, size: size, sums: end}, nil
}

// read gives a range, cut at the object's end.
func (e entry) read(offset, length int64) ([]byte, error) {
	offset = min(offset, e.size)
	if length < 0 || length > e.size-offset {
		length = e.size - offset
	}
	if length == 0 {
		return []byte{}, nil
	}
	from := offset / blockBytes * blockBytes
	to := min(blocks(offset+length)*blockBytes, e.size)
	body := make([]byte, to-from)
	if _, err := e.file.ReadAt(body, from); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for at := from; at < to; at += blockBytes {
		want := binary.BigEndian.Uint32(e.sums[at/blockBytes*crc32.Size:])
		if crc32.Checksum(body[at-from:min(at+blockBytes, to)-from], sums()) != want {
			return nil, errDamaged
		}
	}
	return body[offset-from:][:length:length], nil
}
