package delta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"varve/internal/object"
)

// Checksum is what a version's .crc file tells of the version. PROTOCOL.md, Version Checksum File. Readers of this package
// do not ask for it: a table is what its log says. It serves to find a log that says something else than it did.
type Checksum struct {
	TxnID          string `json:"txnId,omitempty"`
	TableSizeBytes int64  `json:"tableSizeBytes"`
	NumFiles       int64  `json:"numFiles"`
	// The counts of deletion vectors, nil where they are not told.
	NumDeletedRecords  *int64 `json:"numDeletedRecordsOpt,omitempty"`
	NumDeletionVectors *int64 `json:"numDeletionVectorsOpt,omitempty"`
	NumMetadata        int64  `json:"numMetadata"`
	NumProtocol        int64  `json:"numProtocol"`
	InCommitTimestamp  *int64 `json:"inCommitTimestampOpt,omitempty"`
	// Transactions are the writers' marks ordered by AppID, nil where they are not told.
	Transactions *[]Txn `json:"setTransactions,omitempty"`
	// domains are those that are not removed, ordered by name, nil where they are not told.
	Domains *[]domainMetadata `json:"domainMetadata,omitempty"`
	// Metadata and Protocol are the actions as the log has them.
	Metadata  json.RawMessage `json:"metadata"`
	Protocol  json.RawMessage `json:"protocol"`
	Histogram *sizeHistogram  `json:"fileSizeHistogram,omitempty"`
}

// maxChecksumMarks is how many marks, or domains, a checksum tells at most: it is written with every commit.
const maxChecksumMarks = 1000

// sizeHistogram counts the files of a table, and their bytes, by size.
type sizeHistogram struct {
	Boundaries []int64 `json:"sortedBinBoundaries"`
	Counts     []int64 `json:"fileCounts"`
	Bytes      []int64 `json:"totalBytes"`
}

// newSizeHistogram is a histogram with the bins that Spark has by default.
func newSizeHistogram() *sizeHistogram {
	const kib, mib, gib = int64(1) << 10, int64(1) << 20, int64(1) << 30
	h := &sizeHistogram{Boundaries: []int64{0}}
	for b := 8 * kib; b < 4*mib; b *= 2 {
		h.Boundaries = append(h.Boundaries, b)
	}
	for _, span := range [][3]int64{
		{4 * mib, 40 * mib, 4 * mib},
		{48 * mib, 120 * mib, 8 * mib},
		{124 * mib, 144 * mib, 4 * mib},
		{160 * mib, 576 * mib, 16 * mib},
		{640 * mib, 1408 * mib, 64 * mib},
		{1536 * mib, 2 * gib, 128 * mib},
		{2304 * mib, 4 * gib, 256 * mib},
	} {
		for b := span[0]; b <= span[1]; b += span[2] {
			h.Boundaries = append(h.Boundaries, b)
		}
	}
	for b := 8 * gib; b <= 256*gib; b *= 2 {
		h.Boundaries = append(h.Boundaries, b)
	}
	h.Counts, h.Bytes = make([]int64, len(h.Boundaries)), make([]int64, len(h.Boundaries))
	return h
}

// count takes files of one size in, or out where the number is negative.
func (h *sizeHistogram) count(size, files int64) {
	if h == nil || len(h.Boundaries) == 0 {
		return
	}
	i, exact := slices.BinarySearch(h.Boundaries, size)
	if !exact {
		i = max(i-1, 0)
	}
	h.Counts[i] += files
	h.Bytes[i] += files * size
}

// Checksum computes the checksum of a snapshot.
func (s *Snapshot) Checksum() Checksum {
	c := Checksum{
		TxnID: s.state.info.text("txnId"), NumMetadata: 1, NumProtocol: 1, Histogram: newSizeHistogram(),
		NumDeletedRecords: new(int64), NumDeletionVectors: new(int64),
	}
	for _, a := range s.files {
		c.file(a.Size, a.DeletionVector, 1)
	}
	if ms, ok := s.state.info.number("inCommitTimestamp"); ok {
		c.InCommitTimestamp = &ms
	}
	_, expire := s.state.metadata.Configuration["delta.setTransactionRetentionDuration"]
	if !expire && len(s.state.txns) <= maxChecksumMarks {
		c.setTransactions(s.state.txns)
	}
	live := maps.Clone(s.state.domains)
	maps.DeleteFunc(live, func(_ string, d domainMetadata) bool { return d.Removed })
	if len(live) <= maxChecksumMarks {
		c.setDomains(live)
	}
	c.Metadata, c.Protocol = rawOf(s.state.metadata), rawOf(s.state.protocol)
	return c
}

// rawOf is the JSON of an action's member.
func rawOf(v any) json.RawMessage {
	raw, err := appendJSON(nil, v)
	if err != nil { // what was read as JSON can be written as JSON
		return json.RawMessage("{}")
	}
	return bytes.TrimSpace(raw)
}

// file takes a file in, or out where the number is -1.
func (c *Checksum) file(size int64, d *DeletionVector, files int64) {
	c.NumFiles += files
	c.TableSizeBytes += files * size
	c.Histogram.count(size, files)
	if d != nil && c.NumDeletionVectors != nil && c.NumDeletedRecords != nil {
		*c.NumDeletionVectors += files
		*c.NumDeletedRecords += files * d.Cardinality
	}
}

func (c *Checksum) setTransactions(txns map[string]Txn) {
	list := make([]Txn, 0, len(txns))
	for _, id := range slices.Sorted(maps.Keys(txns)) {
		list = append(list, txns[id])
	}
	c.Transactions = &list
}

func (c *Checksum) setDomains(domains map[string]domainMetadata) {
	list := make([]domainMetadata, 0, len(domains))
	for _, name := range slices.Sorted(maps.Keys(domains)) {
		list = append(list, domains[name])
	}
	c.Domains = &list
}

// checksumName is the file of the log that has a version's checksum.
func checksumName(v int64) string { return fmt.Sprintf("%020d.crc", v) }

// ReadChecksum reads the checksum of a version. A version without one is object.ErrNotFound.
func (t Table) ReadChecksum(ctx context.Context, v int64) (Checksum, error) {
	name := checksumName(v)
	body, err := t.Store.Read(ctx, join(t.Root, logDir, name), 0, -1)
	if err != nil {
		return Checksum{}, fmt.Errorf("delta table %q: read the checksum of version %d: %w", t.Root, v, err)
	}
	var c Checksum
	if err := json.Unmarshal(body, &c); err != nil {
		return Checksum{}, t.corrupt(v, logDir+"/"+name, err)
	}
	if c.NumFiles < 0 || c.TableSizeBytes < 0 || len(c.Metadata) == 0 || len(c.Protocol) == 0 {
		return Checksum{}, t.corrupt(v, logDir+"/"+name, errors.New("no checksum of a version"))
	}
	if h := c.Histogram; h != nil && (len(h.Boundaries) != len(h.Counts) || len(h.Counts) != len(h.Bytes) || !slices.IsSorted(h.Boundaries)) {
		c.Histogram = nil
	}
	return c, nil
}

// putChecksum writes a version's checksum, unless it has one.
func (t Table) putChecksum(ctx context.Context, v int64, c Checksum) error {
	body, err := appendJSON(nil, c)
	if err != nil {
		return err
	}
	err = t.Store.PutIfAbsent(ctx, join(t.Root, logDir, checksumName(v)), body)
	if err != nil && !errors.Is(err, object.ErrExists) {
		return fmt.Errorf("delta table %q: write the checksum of version %d: %w", t.Root, v, err)
	}
	return nil
}

// checksumAfter writes the checksum of a version that this package has just committed: from that of the version before, so
// that a commit costs no reading of the table. Where the version before has none, this one gets none either; the next
// checkpoint begins anew.
func (t Table) checksumAfter(ctx context.Context, version int64) error {
	c := Checksum{
		NumMetadata: 1, NumProtocol: 1, Histogram: newSizeHistogram(), NumDeletedRecords: new(int64), NumDeletionVectors: new(int64),
		Transactions: &[]Txn{}, Domains: &[]domainMetadata{},
	}
	if version > 0 {
		var err error
		if c, err = t.ReadChecksum(ctx, version-1); err != nil {
			return err
		}
	}
	name := logName{version: version}
	body, err := t.Store.Read(ctx, join(t.Root, logDir, name.String()), 0, -1)
	if err != nil {
		return err
	}
	if err := c.follow(body); err != nil {
		return fmt.Errorf("checksum of version %d: %w", version, err)
	}
	return t.putChecksum(ctx, version, c)
}

// follow makes the checksum of a version that of the next one, whose commit is given. It counts on what Commit sees to: what
// is added was not there, what is removed was.
func (c *Checksum) follow(commit []byte) error {
	actions, err := parseActions(commit)
	if err != nil {
		return err
	}
	s := newState()
	s.apply(actions)
	c.TxnID, c.InCommitTimestamp = s.info.text("txnId"), nil
	if ms, ok := s.info.number("inCommitTimestamp"); ok {
		c.InCommitTimestamp = &ms
	}
	c.followMarks(s)
	if err := c.followRaw(commit); err != nil {
		return err
	}
	for _, a := range actions {
		switch {
		case a.Add != nil:
			c.file(a.Add.Size, a.Add.DeletionVector, 1)
		case a.Remove != nil && a.Remove.Size == 0:
			return errors.New("a removal does not tell its size")
		case a.Remove != nil:
			c.file(a.Remove.Size, a.Remove.DeletionVector, -1)
		}
	}
	if c.NumFiles < 0 || c.TableSizeBytes < 0 {
		return errors.New("more removed than there was")
	}
	return nil
}

// followMarks takes in the marks and domains of a commit.
func (c *Checksum) followMarks(s *state) {
	if c.Transactions != nil {
		txns := map[string]Txn{}
		for _, txn := range *c.Transactions {
			txns[txn.AppID] = txn
		}
		maps.Copy(txns, s.txns)
		if c.Transactions = nil; len(txns) <= maxChecksumMarks {
			c.setTransactions(txns)
		}
	}
	if s.metadata != nil {
		if _, expire := s.metadata.Configuration["delta.setTransactionRetentionDuration"]; expire {
			c.Transactions = nil
		}
	}
	if c.Domains == nil {
		return
	}
	domains := map[string]domainMetadata{}
	for _, d := range *c.Domains {
		domains[d.Domain] = d
	}
	maps.Copy(domains, s.domains)
	maps.DeleteFunc(domains, func(_ string, d domainMetadata) bool { return d.Removed })
	if c.Domains = nil; len(domains) <= maxChecksumMarks {
		c.setDomains(domains)
	}
}

// followRaw takes in the metaData and the protocol of a commit as they are written there.
func (c *Checksum) followRaw(commit []byte) error {
	for line := range bytes.Lines(commit) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var raw struct {
			Metadata json.RawMessage `json:"metaData"`
			Protocol json.RawMessage `json:"protocol"`
		}
		if err := json.Unmarshal(line, &raw); err != nil {
			return err
		}
		if raw.Metadata != nil {
			c.Metadata = raw.Metadata
		}
		if raw.Protocol != nil {
			c.Protocol = raw.Protocol
		}
	}
	if c.Metadata == nil || c.Protocol == nil {
		return errors.New("no metaData or no protocol")
	}
	return nil
}

// Differs names what a version's checksum, as read, tells differently from the version itself. What it does not tell is not
// compared.
func (s *Snapshot) Differs(read Checksum) []string {
	own := s.Checksum()
	var out []string
	say := func(name string, differs bool) {
		if differs {
			out = append(out, name)
		}
	}
	say("tableSizeBytes", read.TableSizeBytes != own.TableSizeBytes)
	say("numFiles", read.NumFiles != own.NumFiles)
	say("numMetadata", read.NumMetadata != 1)
	say("numProtocol", read.NumProtocol != 1)
	vectors := read.NumDeletionVectors != nil && *read.NumDeletionVectors != *own.NumDeletionVectors
	say("numDeletionVectors", vectors)
	say("numDeletedRecords", read.NumDeletedRecords != nil && *read.NumDeletedRecords != *own.NumDeletedRecords)
	if read.Transactions != nil && own.Transactions != nil {
		txns := map[string]Txn{}
		for _, txn := range *read.Transactions {
			txns[txn.AppID] = txn
		}
		say("setTransactions", !maps.Equal(txns, s.state.txns))
	}
	if read.Domains != nil && own.Domains != nil {
		domains := map[string]domainMetadata{}
		for _, d := range *read.Domains {
			domains[d.Domain] = d
		}
		ours := map[string]domainMetadata{}
		for _, d := range *own.Domains {
			ours[d.Domain] = d
		}
		say("domainMetadata", !maps.Equal(domains, ours))
	}
	var m Metadata
	say("metadata", json.Unmarshal(read.Metadata, &m) != nil || !bytes.Equal(rawOf(m), own.Metadata))
	var p Protocol
	say("protocol", json.Unmarshal(read.Protocol, &p) != nil || !bytes.Equal(rawOf(p), own.Protocol))
	if h := read.Histogram; h != nil && slices.Equal(h.Boundaries, own.Histogram.Boundaries) {
		say("fileSizeHistogram", !slices.Equal(h.Counts, own.Histogram.Counts) || !slices.Equal(h.Bytes, own.Histogram.Bytes))
	}
	return out
}
