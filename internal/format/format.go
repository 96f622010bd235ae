// Package format reads what varve itself writes beside Delta's files: JSON objects that carry the number of their format.
// A newer number, or none, is refused by name, so that no program reads what it does not understand.
package format

import (
	"encoding/json"
	"fmt"
)

// Error refuses an object of varve's own that this program cannot read: it is damaged, another program made it, or a newer
// varve did.
type Error struct {
	// Key names the object or the table.
	Key string
	// Format is the object's number, below 1 where it has none; Known is the highest that this program reads.
	Format, Known int
	// Err is why the object cannot be read at all, nil where its number is the reason.
	Err error
}

// Error names the object, what is wrong with it, and the way out.
func (e *Error) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%q is damaged: %v; restore it from a backup", e.Key, e.Err)
	case e.Format < 1:
		return fmt.Sprintf("%q has no format number: varve did not write it; restore it from a backup", e.Key)
	default:
		return fmt.Sprintf("%q has format %d, this varve reads up to %d: use the varve that wrote it, or a newer one", e.Key, e.Format, e.Known)
	}
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Check refuses a format number that is not from 1 to known.
func Check(key string, number, known int) error {
	if number < 1 || number > known {
		return &Error{Key: key, Format: number, Known: known}
	}
	return nil
}

// Decode reads an object. Its number is looked at before anything else, since a newer object may look different.
func Decode(key string, body []byte, known int, into any) error {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return &Error{Key: key, Err: err}
	}
	if err := Check(key, head.Format, known); err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &Error{Key: key, Format: head.Format, Err: err}
	}
	return nil
}
