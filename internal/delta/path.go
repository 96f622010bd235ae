package delta

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// join makes a store's key out of a root, which may be empty, and what is below it.
func join(root string, below ...string) string {
	return path.Join(append([]string{root}, below...)...)
}

// filePath turns the path of an action into the file's, relative to the table's root: percent-decoded once, in clean
// form. What is not below the root is refused.
func filePath(raw string) (string, error) {
	if isPlain(raw) {
		return raw, nil
	}
	if strings.HasPrefix(raw, "/") || hasScheme(raw) {
		return "", &UnsupportedError{Feature: "an absolute file path"}
	}
	decoded, err := url.PathUnescape(raw)
	if err != nil {
		return "", errors.New("path is not percent-encoded")
	}
	for segment := range strings.SplitSeq(decoded, "/") {
		if segment == ".." {
			return "", errors.New("path leaves the table")
		}
	}
	clean := path.Clean(decoded)
	if clean == "." || strings.HasPrefix(decoded, "/") || strings.ContainsRune(decoded, 0) {
		return "", errors.New("path names no file of the table")
	}
	return clean, nil
}

// isPlain tells at a glance that a path, as nearly all are, is the file's as it stands: segments of letters, digits and a few
// signs, none of which begins with a point.
func isPlain(raw string) bool {
	begins := true // a segment
	for i := range len(raw) {
		switch c := raw[i]; {
		case c == '/' || c == '.':
			if begins {
				return false
			}
			begins = c == '/'
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '=':
			begins = false
		default:
			return false
		}
	}
	return !begins
}

// hasScheme tells whether a path is an absolute URI. RFC 2396, 3.1.
func hasScheme(raw string) bool {
	scheme, _, ok := strings.Cut(raw, ":")
	return ok && schemePattern.MatchString(scheme)
}

var schemePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)

// encodePath percent-encodes the path of a file for an action.
func encodePath(p string) string {
	return (&url.URL{Path: p}).EscapedPath()
}

// hiveEscape escapes a name or a value for a partition's folder, as Hive does.
func hiveEscape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == 0x7f || strings.IndexByte("\"#%'*/:=?\\{[]^", c) >= 0 {
			const hex = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
