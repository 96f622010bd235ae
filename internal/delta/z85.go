package delta

import (
	"errors"
	"strings"
)

const z85Alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// errZ85 says that a text is not Z85.
var errZ85 = errors.New("not Z85")

// decodeZ85 decodes ZeroMQ's base 85. A last group that begins with k '#' holds only 4-k bytes: some writers end a
// text so, and no strict text has such a group.
func decodeZ85(s string) ([]byte, error) {
	if len(s)%5 != 0 {
		return nil, errZ85
	}
	out := make([]byte, 0, len(s)/5*4)
	for i := 0; i < len(s); i += 5 {
		group := s[i : i+5]
		n, ok := z85Number(group)
		if !ok {
			return nil, errZ85
		}
		if n <= 0xffffffff {
			out = append(out, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)) //nolint:gosec // the bytes of a 32-bit number
			continue
		}
		if i+5 < len(s) {
			return nil, errZ85
		}
		tail, err := decodeTail(group)
		if err != nil {
			return nil, err
		}
		out = append(out, tail...)
	}
	return out, nil
}

// decodeTail decodes a last group that is padded at its front.
func decodeTail(group string) ([]byte, error) {
	body := strings.TrimLeft(group, "#")
	size := 4 - (len(group) - len(body))
	n, ok := z85Number(body)
	if size < 1 || !ok || n >= 1<<(8*size) {
		return nil, errZ85
	}
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(n >> (8 * (size - 1 - i))) //nolint:gosec // one byte of the number
	}
	return out, nil
}

// z85Number reads digits of base 85, the first the highest.
func z85Number(digits string) (uint64, bool) {
	var n uint64
	for i := range len(digits) {
		d := strings.IndexByte(z85Alphabet, digits[i])
		if d < 0 {
			return 0, false
		}
		n = n*85 + uint64(d)
	}
	return n, true
}

// encodeZ85 encodes bytes, padded with zeros to a multiple of four.
func encodeZ85(b []byte) string {
	var out strings.Builder
	for i := 0; i < len(b); i += 4 {
		var n uint32
		for j := range 4 {
			n <<= 8
			if i+j < len(b) {
				n |= uint32(b[i+j])
			}
		}
		var group [5]byte
		for j := 4; j >= 0; j-- {
			group[j] = z85Alphabet[n%85]
			n /= 85
		}
		out.Write(group[:])
	}
	return out.String()
}
