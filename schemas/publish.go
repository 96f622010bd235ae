package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"varve/internal/format"
	"varve/internal/value"
)

// PublishedFormat is the newest format of published contracts; any from 1 to it is read.
const PublishedFormat = 1

// Published is a contract as workers read it. It never changes.
type Published struct {
	Format int
	Number int64
	// Hash is the SHA-256 of the contract's canonical JSON: equal contracts have equal hashes, whatever their numbers.
	Hash     string
	Contract Contract
}

// envelope is the file of a published contract.
type envelope struct {
	Format   int             `json:"format"`
	Number   int64           `json:"number"`
	Hash     string          `json:"hash"`
	Contract json.RawMessage `json:"contract"`
}

// Publish gives the file of the contract as its dataset's n-th.
func (c Contract) Publish(n int64) ([]byte, error) {
	if n < 1 {
		return nil, fmt.Errorf("publish contract %q: number %d is not positive", c.Dataset, n)
	}
	canonical, err := encode(c)
	if err != nil {
		return nil, fmt.Errorf("publish contract %q: %w", c.Dataset, err)
	}
	body, err := encode(envelope{Format: PublishedFormat, Number: n, Hash: hash(canonical), Contract: canonical})
	if err != nil {
		return nil, fmt.Errorf("publish contract %q: %w", c.Dataset, err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "  "); err != nil {
		return nil, fmt.Errorf("publish contract %q: %w", c.Dataset, err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// ReadPublished reads the published contract of that key. A newer format, a field that is not known, and a contract that does not have
// its hash are refused.
func ReadPublished(key string, b []byte) (Published, error) {
	var e envelope
	if err := format.Decode(key, b, PublishedFormat, &e); err != nil {
		return Published{}, err
	}
	damaged := func(err error) (Published, error) {
		return Published{}, &format.Error{Key: key, Format: e.Format, Known: PublishedFormat, Err: err}
	}
	if err := decode(b, &e); err != nil {
		return damaged(err)
	}
	var canonical bytes.Buffer
	if err := json.Compact(&canonical, e.Contract); err != nil {
		return damaged(err)
	}
	if got := hash(canonical.Bytes()); got != e.Hash {
		return damaged(fmt.Errorf("it was changed since its publication: its hash is %s, the file says %q", got, e.Hash))
	}
	p := Published{Format: e.Format, Number: e.Number, Hash: e.Hash}
	if err := decode(e.Contract, &p.Contract); err != nil {
		return damaged(err)
	}
	return p, nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// encode gives JSON without spaces, in which SQL stays readable.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decode reads JSON strictly.
func decode(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%w (a newer varve may have written it)", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows the first value")
	}
	return nil
}

// columnFile is a column as it is published, its type as DDL text.
type columnFile struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required,omitempty"`
	Description string `json:"description,omitempty"`
}

// MarshalJSON gives the column with its type as DDL text.
func (col Column) MarshalJSON() ([]byte, error) {
	return encode(columnFile{Name: col.Name, Type: col.Type.String(), Required: col.Required, Description: col.Description})
}

// UnmarshalJSON reads what MarshalJSON gives.
func (col *Column) UnmarshalJSON(b []byte) error {
	var f columnFile
	if err := decode(b, &f); err != nil {
		return err
	}
	t, err := value.ParseType(f.Type)
	if err != nil {
		return fmt.Errorf("column %q: %w", f.Name, err)
	}
	*col = Column{Name: f.Name, Type: t, Required: f.Required, Description: f.Description}
	return nil
}
