package delta

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
)

// propertyDeletionVectors allows new deletion vectors; those that are there count whatever it says.
const propertyDeletionVectors = "delta.enableDeletionVectors"

// vectorFileSize is how large a file of deletion vectors grows before the next one is begun, in bytes.
const vectorFileSize = 8 << 20

// errNewVectors says that a table may have no new deletion vectors.
var errNewVectors = errors.New("new deletion vectors need the feature \"deletionVectors\" and the property " + propertyDeletionVectors)

// Deletion is rows of a data file that go.
type Deletion struct {
	// File is the data file as the version has it, with the deletion vector it has.
	File Add
	// Rows are physical positions in the file, from 0, in any order. Those that are deleted already stay deleted.
	Rows iter.Seq[int64]
}

// DeleteRows gives the actions by which rows go without their files being written anew: of each file a removal and, where
// rows are left, the file again with a deletion vector that has the old one's rows and the new ones. A file that loses no row
// is left alone. The vectors are written to new files, which nobody sees until the actions are committed. A position
// outside its file is an error. PROTOCOL.md, Deletion Vectors.
func (s *Snapshot) DeleteRows(ctx context.Context, deletions []Deletion) ([]Remove, []Add, error) {
	if !s.Protocol().has(featureDeletionVectors) || !s.state.metadata.flag(propertyDeletionVectors) {
		return nil, nil, fmt.Errorf("delta table %q: %w", s.table.Root, errNewVectors)
	}
	var removes []Remove
	var adds []Add
	var vectors []rowSet // of adds
	for _, d := range deletions {
		deleted, left, err := s.delete(ctx, d)
		switch {
		case err != nil:
			return nil, nil, err
		case deleted == nil:
			continue
		}
		removes = append(removes, RemoveOf(d.File, s.table.now(), true))
		if left != nil {
			adds, vectors = append(adds, *left), append(vectors, deleted)
		}
	}
	descriptors, err := s.table.writeVectors(ctx, vectors)
	if err != nil {
		return nil, nil, err
	}
	for i := range adds {
		adds[i].DeletionVector = &descriptors[i]
	}
	return removes, adds, nil
}

// delete gives the rows of a file that are deleted then, nil where they are those that are deleted now, and the file with
// its new statistics, nil where no row of it is left.
func (s *Snapshot) delete(ctx context.Context, d Deletion) (rowSet, *Add, error) {
	records, known := d.File.Records()
	if !known { // a file with a vector must tell
		f, err := s.open(ctx, d.File)
		if err != nil {
			return nil, nil, s.table.corrupt(s.version, d.File.Path, err)
		}
		records = f.NumRows()
	}
	before, err := s.deleted(ctx, d.File, records)
	if err != nil {
		return nil, nil, s.table.corrupt(s.version, d.File.Path, err)
	}
	after := before.clone()
	for row := range d.Rows {
		if row < 0 || row >= records {
			return nil, nil, fmt.Errorf("delta table %q: delete position %d of %q: it has %d rows", s.table.Root, row, d.File.Path, records)
		}
		after.add(row)
	}
	was, is := before.count(), after.count()
	switch {
	case was == is:
		return nil, nil, nil
	case is == records:
		return after, nil, nil
	}
	left := d.File
	left.DataChange = true
	if left.Stats, err = widerStats(d.File.Stats, records, records-was); err != nil {
		return nil, nil, s.table.corrupt(s.version, d.File.Path, err)
	}
	return after, &left, nil
}

// widerStats gives statistics that still hold when more rows are deleted: bounds that no row need reach, and of nulls only
// whether there are none or nothing else. live is the number of rows that the statistics were of.
func widerStats(text string, records, live int64) (string, error) {
	var stats struct {
		NumRecords  int64           `json:"numRecords"`
		MinValues   json.RawMessage `json:"minValues,omitempty"`
		MaxValues   json.RawMessage `json:"maxValues,omitempty"`
		NullCount   map[string]any  `json:"nullCount,omitempty"`
		TightBounds *bool           `json:"tightBounds"`
	}
	if text != "" {
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.UseNumber()
		if err := d.Decode(&stats); err != nil {
			return "", fmt.Errorf("statistics: %w", err)
		}
	}
	if stats.TightBounds == nil || *stats.TightBounds {
		allNull(stats.NullCount, json.Number(strconv.FormatInt(live, 10)), json.Number(strconv.FormatInt(records, 10)))
	}
	tight := false
	stats.NumRecords, stats.TightBounds = records, &tight
	out, err := appendJSON(nil, stats)
	return string(bytes.TrimSuffix(out, []byte("\n"))), err
}

// allNull makes the counts of columns that hold nulls only those of all rows.
func allNull(counts map[string]any, live, records json.Number) {
	for name, count := range counts {
		switch count := count.(type) {
		case json.Number:
			if count == live {
				counts[name] = records
			}
		case map[string]any:
			allNull(count, live, records)
		}
	}
}

// writeVectors writes deletion vectors to new files and gives where each is.
func (t Table) writeVectors(ctx context.Context, vectors []rowSet) ([]DeletionVector, error) {
	var out []DeletionVector
	for len(vectors) > 0 {
		id := uuid.New()
		body := []byte{1} // the version of the file's format
		taken := 0
		for _, rows := range vectors {
			if taken > 0 && len(body) > vectorFileSize {
				break
			}
			offset := int32(len(body)) //nolint:gosec // a file ends far below
			var size int32
			body, size = appendVector(body, rows)
			out = append(out, DeletionVector{
				StorageType: "u", PathOrInlineDv: encodeZ85(id[:]), Offset: &offset, SizeInBytes: size, Cardinality: rows.count(),
			})
			taken++
		}
		name := "deletion_vector_" + id.String() + ".bin"
		if err := t.Store.PutIfAbsent(ctx, join(t.Root, name), body); err != nil {
			return nil, fmt.Errorf("delta table %q: write %q: %w", t.Root, name, err)
		}
		vectors = vectors[taken:]
	}
	return out, nil
}

// appendVector appends a vector in its frame, and gives its own size. PROTOCOL.md, Deletion Vector File Storage Format.
func appendVector(dst []byte, rows rowSet) ([]byte, int32) {
	blob := rows.encode()
	size := uint32(len(blob)) //nolint:gosec // a bitmap of a file's rows, at most some hundred megabytes
	dst = binary.BigEndian.AppendUint32(dst, size)
	dst = append(dst, blob...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(blob)), int32(size) //nolint:gosec // as above
}

// encode gives the set in the portable 64-bit Roaring format, after its magic number.
func (s rowSet) encode() []byte {
	var highs []uint32
	for high, bitmap := range s {
		if !bitmap.IsEmpty() {
			highs = append(highs, high)
		}
	}
	slices.Sort(highs)
	blob := binary.LittleEndian.AppendUint32(nil, bitmapMagic)
	blob = binary.LittleEndian.AppendUint64(blob, uint64(len(highs)))
	for _, high := range highs {
		bitmap := s[high].Clone()
		bitmap.RunOptimize()
		blob = binary.LittleEndian.AppendUint32(blob, high)
		out := bytes.NewBuffer(blob)
		_, _ = bitmap.WriteTo(out) // a buffer takes everything
		blob = out.Bytes()
	}
	return blob
}

// deletes is how many rows a vector deletes; where there is none, it is none.
func (d *DeletionVector) deletes() int64 {
	if d == nil {
		return 0
	}
	return d.Cardinality
}

// checkVector tells what is wrong with a file that has a deletion vector. PROTOCOL.md, Writer Requirement for Deletion
// Vectors and Per-file Statistics.
func (a Add) checkVector(p Protocol) error {
	var stats struct {
		NumRecords  *int64 `json:"numRecords"`
		TightBounds *bool  `json:"tightBounds"`
	}
	switch {
	case a.DeletionVector == nil:
		return nil
	case !p.has(featureDeletionVectors):
		return errNewVectors
	case a.Stats == "" || json.Unmarshal([]byte(a.Stats), &stats) != nil || stats.NumRecords == nil:
		return errors.New("a deletion vector, and statistics without the number of records")
	case a.DataChange && (stats.TightBounds == nil || *stats.TightBounds):
		return errors.New("a deletion vector, and statistics that say that their bounds are tight")
	case a.DeletionVector.Cardinality >= *stats.NumRecords:
		return errors.New("a deletion vector of every row")
	}
	return a.DeletionVector.check()
}

// clone gives a set that may be changed.
func (s rowSet) clone() rowSet {
	out := make(rowSet, len(s))
	for high, bitmap := range s {
		out[high] = bitmap.Clone()
	}
	return out
}

// add puts a position into the set.
func (s rowSet) add(row int64) {
	high, low := uint32(row>>32), uint32(row) //nolint:gosec // the two halves
	bitmap, ok := s[high]
	if !ok {
		bitmap = roaring.New()
		s[high] = bitmap
	}
	bitmap.Add(low)
}

// count is the cardinality as rows are counted.
func (s rowSet) count() int64 {
	return int64(s.cardinality()) //nolint:gosec // at most the rows of a file
}
