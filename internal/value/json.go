package value

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON converts one JSON value, exactly; JSON null is nil. Text converts as Parse does; numbers, booleans and nested
// values keep their text in a string column. Of duplicate members the last wins; a struct's missing members stay missing.
func FromJSON(t Type, raw []byte) (Value, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return nil, notA(t, "there is nothing")
	case string(raw) == "null":
		return nil, nil //nolint:nilnil // null is a value, and nil stands for it
	}
	switch t.Kind {
	case StructKind:
		return structFrom(t, raw)
	case ArrayKind:
		return listFrom(t, raw)
	case MapKind:
		return mapFrom(t, raw)
	default:
		return plainFrom(t, raw)
	}
}

// plainFrom converts to a type that is not nested.
func plainFrom(t Type, raw []byte) (Value, error) {
	switch c := raw[0]; {
	case c == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, notA(t, "it is not JSON")
		}
		if strings.ContainsRune(text, utf8.RuneError) && replaced(raw) {
			return nil, notA(t, "it holds what is no character")
		}
		return Parse(t, text)
	case !json.Valid(raw):
		return nil, notA(t, "it is not JSON")
	case t.Kind == StringKind:
		return string(raw), nil
	case c == '{' || c == '[':
		return nil, notA(t, "it is an object or an array")
	case c == 't' || c == 'f':
		if t.Kind != Boolean {
			return nil, notA(t, "it is true or false")
		}
		return c == 't', nil
	case !t.Kind.isNumber():
		return nil, notA(t, "it is a number")
	default:
		return Parse(t, string(raw))
	}
}

func (k Kind) isNumber() bool { return k >= Byte && k <= DecimalKind }

// replaced says whether reading a JSON string would put U+FFFD for something else: half of a surrogate pair, or bytes that
// are not UTF-8.
func replaced(raw []byte) bool {
	if !utf8.Valid(raw) {
		return true
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		unit, ok := escaped(raw[i:])
		if !ok {
			i++
			continue
		}
		i += len(`\u0000`) - 1
		if !utf16.IsSurrogate(unit) {
			continue
		}
		low, ok := escaped(raw[i+1:])
		if !ok || utf16.DecodeRune(unit, low) == utf8.RuneError {
			return true
		}
		i += len(`\u0000`)
	}
	return false
}

// escaped reads an escape of the form \u0000 at the start.
func escaped(raw []byte) (rune, bool) {
	if len(raw) < len(`\u0000`) || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}

// members gives an object's members in the order in which they first came, each with its last value.
func members(raw []byte) ([]string, map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, nil, errors.Join(err, errors.New("it is not an object"))
	}
	var names []string
	found := map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, nil, errors.New("a member has no name")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, nil, err
		}
		if _, again := found[name]; !again {
			names = append(names, name)
		}
		found[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("something follows the object")
	}
	return names, found, nil
}

// Members gives the members of a JSON object; of duplicates the last wins. It is an error where raw is not one object.
func Members(raw []byte) (map[string]json.RawMessage, error) {
	_, found, err := members(raw)
	return found, err
}

func structFrom(t Type, raw []byte) (Value, error) {
	_, found, err := members(raw)
	if err != nil {
		return nil, notA(t, "it is not an object")
	}
	out := Struct{}
	for _, f := range t.Fields {
		member, ok := found[f.Name]
		if !ok {
			continue
		}
		v, err := FromJSON(f.Type, member)
		if err != nil {
			return nil, err
		}
		out = append(out, Member{Name: f.Name, Value: v})
	}
	return out, nil
}

func listFrom(t Type, raw []byte) (Value, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, notA(t, "it is not an array")
	}
	out := make(List, len(items))
	for i, item := range items {
		v, err := FromJSON(*t.Elem, item)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// mapFrom reads a map from an object, or from an array of key and value as AppendJSON writes it; of equal keys the last wins.
func mapFrom(t Type, raw []byte) (Value, error) {
	out, at := Map{}, map[string]int{}
	put := func(k, v Value) {
		text := Canonical(k)
		if i, again := at[text]; again {
			out[i].Value = v
			return
		}
		at[text] = len(out)
		out = append(out, Entry{Key: k, Value: v})
	}
	if raw[0] == '[' {
		if err := entriesFrom(t, raw, put); err != nil {
			return nil, err
		}
		return out, nil
	}
	names, found, err := members(raw)
	if err != nil {
		return nil, notA(t, "it is neither an object nor an array of key and value")
	}
	for _, name := range names {
		k, err := Parse(*t.Key, name)
		if err != nil {
			return nil, err
		}
		v, err := FromJSON(*t.Elem, found[name])
		if err != nil {
			return nil, err
		}
		put(k, v)
	}
	return out, nil
}

func entriesFrom(t Type, raw []byte, put func(k, v Value)) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return notA(t, "it is not an array")
	}
	for _, item := range items {
		_, found, err := members(item)
		if err != nil || len(found) != 2 || found["key"] == nil || found["value"] == nil {
			return notA(t, "an entry is not an object of key and value")
		}
		k, err := FromJSON(*t.Key, found["key"])
		if err != nil {
			return err
		}
		v, err := FromJSON(*t.Elem, found["value"])
		if err != nil {
			return err
		}
		put(k, v)
	}
	return nil
}

// AppendJSON appends a value as JSON that a person or another program reads: decimals as text with their scale, dates and
// timestamps as ISO text, binaries as upper-case hex, maps as arrays of key and value.
func AppendJSON(dst []byte, t Type, v Value) []byte {
	switch x := v.(type) {
	case Struct:
		return appendStructJSON(dst, t, x)
	case List:
		return appendList(dst, len(x), func(dst []byte, i int) []byte { return AppendJSON(dst, *t.Elem, x[i]) })
	case Map:
		return appendList(dst, len(x), func(dst []byte, i int) []byte {
			dst = AppendJSON(append(dst, `{"key":`...), *t.Key, x[i].Key)
			return append(AppendJSON(append(dst, `,"value":`...), *t.Elem, x[i].Value), '}')
		})
	case Variant:
		dst = appendUpperHex(append(dst, `{"metadata":`...), x.Metadata)
		return append(appendUpperHex(append(dst, `,"value":`...), x.Value), '}')
	case Binary:
		return appendUpperHex(dst, x)
	case Decimal:
		return appendText(dst, x.String())
	case float32:
		return appendJSONFloat(dst, float64(x), 32)
	case float64:
		return appendJSONFloat(dst, x, 64)
	default:
		return AppendCanonical(dst, v)
	}
}

func appendStructJSON(dst []byte, t Type, s Struct) []byte {
	dst = append(dst, '{')
	for i, m := range s {
		if i > 0 {
			dst = append(dst, ',')
		}
		var inner Type
		if at := slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == m.Name }); at >= 0 {
			inner = t.Fields[at].Type
		}
		dst = AppendJSON(append(appendText(dst, m.Name), ':'), inner, m.Value)
	}
	return append(dst, '}')
}

func appendUpperHex(dst, b []byte) []byte {
	return append(append(append(dst, '"'), strings.ToUpper(hex.EncodeToString(b))...), '"')
}

func appendJSONFloat(dst []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return appendFloat(dst, f)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, bits)
}
