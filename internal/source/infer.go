package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"varve/internal/value"
)

// sampleRecords is how many records of all files together Infer looks at.
const sampleRecords = 200_000

// Draft is what real files tell about a source. Every choice carries its evidence, in words for the person who reads it.
type Draft struct {
	Dialect Dialect
	// Records are those that were looked at; Bad are those among them that do not parse.
	Records, Bad int64
	// Complete is false where the files hold more than was looked at.
	Complete bool
	Columns  []DraftColumn
	// Keys, Sequences and Deletes are the candidates, best first; none where nothing speaks for any.
	Keys      []Candidate
	Sequences []Candidate
	Deletes   []Candidate
}

// DraftColumn is one column as the files have it.
type DraftColumn struct {
	Name string
	Type value.Type
	// Nulls and Absent count the records in which it is null, and not there.
	Nulls, Absent int64
	Distinct      int64
	Evidence      string
}

// Candidate is a choice that the files speak for.
type Candidate struct {
	Columns []string
	// Expr is the condition of a delete, empty for keys and sequences.
	Expr     string
	Evidence string
	score    int
}

// Infer reads files, CSV or JSON alike, and drafts what their contract could be. Files of one call must be of one source.
func Infer(ctx context.Context, files ...string) (Draft, error) {
	if len(files) == 0 {
		return Draft{}, errors.New("no files to infer a contract from")
	}
	s := sample{columns: map[string]*columnSample{}, seen: map[string]bool{}}
	draft := Draft{Complete: true}
	for i, name := range files {
		dialect, err := sniff(name)
		if err != nil {
			return Draft{}, err
		}
		if i == 0 {
			draft.Dialect = dialect
		} else if dialect != draft.Dialect {
			return Draft{}, fmt.Errorf("%q and %q are not of one format: infer each source by itself", files[0], name)
		}
		complete, err := s.read(ctx, name, dialect)
		if err != nil {
			return Draft{}, err
		}
		draft.Complete = draft.Complete && complete
	}
	draft.Records, draft.Bad = s.records, s.bad
	if s.records == s.bad {
		return Draft{}, fmt.Errorf("%q: no record in it that could be understood", files[0])
	}
	for _, name := range s.order {
		draft.Columns = append(draft.Columns, s.columns[name].draft(name, s.records-s.bad))
	}
	draft.Sequences = s.sequences(draft.Columns)
	draft.Deletes = s.deletes(draft.Columns)
	draft.Keys = s.keys(draft)
	return draft, nil
}

// sniff tells the dialect of a file by its first bytes.
func sniff(name string) (Dialect, error) {
	f, err := os.Open(name) //nolint:gosec // the user names the file
	if err != nil {
		return Dialect{}, fmt.Errorf("read %q: %w", name, err)
	}
	head := make([]byte, bufferSize)
	n, err := io.ReadFull(f, head)
	if closeErr := f.Close(); err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = closeErr
	}
	if err != nil {
		return Dialect{}, fmt.Errorf("read %q: %w", name, err)
	}
	head = bytes.TrimSpace(bytes.TrimPrefix(head[:n], byteOrderMark))
	if len(head) == 0 {
		return Dialect{}, fmt.Errorf("%q is empty: give a file with records", name)
	}
	if ext := strings.ToLower(filepath.Ext(name)); ext != ".csv" && (head[0] == '{' || head[0] == '[') {
		return Dialect{Format: JSON}.withDefaults(), nil
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	d := Dialect{Format: CSV, Header: true, Delimiter: ","}
	most := bytes.Count(line, []byte(","))
	for _, delimiter := range []string{";", "\t", "|"} {
		if n := bytes.Count(line, []byte(delimiter)); n > most {
			d.Delimiter, most = delimiter, n
		}
	}
	return d.withDefaults(), nil
}

// sample is what is kept of the records that were looked at.
type sample struct {
	records, bad int64
	order        []string
	columns      map[string]*columnSample
	// rows are the records that differ from each other, as texts by column; what is null or absent is not in them.
	rows []map[string]string
	seen map[string]bool
}

func (s *sample) read(ctx context.Context, name string, d Dialect) (complete bool, err error) {
	f, err := os.Open(name) //nolint:gosec // the user names the file
	if err != nil {
		return false, fmt.Errorf("read %q: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var header []string
	for record, err := range Records(f, d) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return false, fmt.Errorf("read %q: %w", name, err)
		}
		if d.Format == CSV && record.Row == 0 {
			if header, err = headerOf(record, d); err != nil {
				return false, fmt.Errorf("header of %q: %w", name, err)
			}
			continue
		}
		if s.records >= sampleRecords {
			return false, nil
		}
		s.records++
		if !s.add(record.Raw, header, d) {
			s.bad++
		}
	}
	return true, nil
}

func headerOf(r Record, d Dialect) ([]string, error) {
	if !utf8.Valid(r.Raw) {
		return nil, errors.New("it is not UTF-8")
	}
	cells, err := Cells(string(r.Raw), d)
	names := make([]string, len(cells))
	for i, c := range cells {
		names[i] = strings.TrimSpace(c.Text)
	}
	return names, err
}

// add takes one record; false where it does not parse.
func (s *sample) add(raw []byte, header []string, d Dialect) bool {
	if !utf8.Valid(raw) {
		return false
	}
	row := map[string]string{}
	if d.Format == CSV {
		cells, err := Cells(string(raw), d)
		if err != nil || len(cells) != len(header) {
			return false
		}
		for i, name := range header {
			s.column(name).addCell(cells[i], row, name)
		}
	} else {
		members, err := value.Members(raw)
		if err != nil {
			return false
		}
		for _, name := range memberOrder(raw, members) {
			s.column(name).addJSON(members[name], row, name)
		}
	}
	if key := string(raw); !s.seen[key] {
		s.seen[key] = true
		s.rows = append(s.rows, row)
	}
	return true
}

func (s *sample) column(name string) *columnSample {
	c, ok := s.columns[name]
	if !ok {
		c = newColumnSample()
		s.columns[name] = c
		s.order = append(s.order, name)
	}
	return c
}

// distinct counts the different values of columns together; 0 where some record lacks one of them.
func (s *sample) distinct(columns ...string) int {
	values := make(map[string]bool, len(s.rows))
	for _, row := range s.rows {
		key := make([]value.Value, len(columns))
		for i, name := range columns {
			text, ok := row[name]
			if !ok {
				return 0
			}
			key[i] = text
		}
		values[value.KeyText(key)] = true
	}
	return len(values)
}

func best(candidates []Candidate) []Candidate {
	slices.SortStableFunc(candidates, func(a, b Candidate) int { return cmp.Compare(b.score, a.score) })
	return candidates
}
