package object

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxKeyBytes is what S3 allows: a warehouse must fit in every store.
const maxKeyBytes = 1024

// CheckKey says why no object can have the key; nil for a good one. The error is an ErrBadKey.
func CheckKey(key string) error {
	if err := checkText(key); err != nil {
		return err
	}
	for segment := range strings.SplitSeq(key, "/") {
		if err := checkSegment(key, segment); err != nil {
			return err
		}
	}
	return nil
}

// CheckPrefix says why no key can begin with the prefix; nil for a good one, such as "". The error is an ErrBadKey.
func CheckPrefix(prefix string) error {
	if err := checkText(prefix); err != nil {
		return err
	}
	segments := strings.Split(prefix, "/")
	for _, segment := range segments[:len(segments)-1] { // the last one may go on: "a/.." begins "a/..b"
		if err := checkSegment(prefix, segment); err != nil {
			return err
		}
	}
	return nil
}

func checkSegment(key, segment string) error {
	switch segment {
	case "":
		return fmt.Errorf("%w: %q has an empty segment", ErrBadKey, key)
	case ".", "..":
		return fmt.Errorf("%w: %q has the segment %q", ErrBadKey, key, segment)
	}
	return nil
}

// checkText refuses what some store cannot hold or list: S3 answers in XML, which has no control characters.
func checkText(key string) error {
	if len(key) > maxKeyBytes {
		return fmt.Errorf("%w: %q is longer than %d bytes", ErrBadKey, key, maxKeyBytes)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: %q is not UTF-8", ErrBadKey, key)
	}
	if i := strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return fmt.Errorf("%w: %q has a control character", ErrBadKey, key)
	}
	return nil
}
