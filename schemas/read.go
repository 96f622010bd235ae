package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"varve/schemas/spelling"
)

// maxSource bounds the text of one file, in bytes.
const maxSource = 1 << 20

// reader walks a YAML document and gathers every problem on its way.
type reader struct {
	problems []Problem
	lines    map[string]int
	// later says by name what comes with a later version.
	later func(name string) (way string, ok bool)
	// home names the mapping that a field belongs to, "" where it belongs nowhere.
	home func(name string) string
}

// field is one field that a mapping may have.
type field struct {
	name string
	read func(n *yaml.Node, path string)
}

func (r *reader) add(line int, path, message, hint string) {
	r.problems = append(r.problems, Problem{Line: line, Field: path, Message: message, Hint: hint})
}

// addAt adds a problem of a field that was read, or of the nearest field around it.
func (r *reader) addAt(path, message, hint string) { r.add(r.line(path), path, message, hint) }

// warnAt is addAt for what is odd and not wrong.
func (r *reader) warnAt(path, message, hint string) {
	r.problems = append(r.problems, Problem{Line: r.line(path), Field: path, Message: message, Hint: hint, Warning: true})
}

func (r *reader) line(path string) int {
	for {
		if line, ok := r.lines[path]; ok {
			return line
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return 1
		}
		path = path[:cut]
	}
}

// has says whether the file gives the field.
func (r *reader) has(path string) bool {
	_, ok := r.lines[path]
	return ok
}

// document gives the root of a file's only document, or nil with the problem added.
func (r *reader) document(src []byte) *yaml.Node {
	if len(src) > maxSource {
		r.add(1, "", "the file is longer than 1 MiB", "")
		return nil
	}
	var doc, next yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(src))
	err := d.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && (len(doc.Content) == 0 || isNull(doc.Content[0])):
		r.add(1, "", "the file is empty", "")
		return nil
	case err != nil:
		r.syntax(src, err)
		return nil
	}
	switch err := d.Decode(&next); {
	case err == nil:
		r.add(next.Line, "", "a second document begins here", "one file holds one")
	case !errors.Is(err, io.EOF):
		r.syntax(src, err)
	}
	return doc.Content[0]
}

var syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax adds the problem of a text that is not YAML. The parser tells the line only roughly, so the line is the one
// behind the longest run of lines that is YAML by itself.
func (r *reader) syntax(src []byte, err error) {
	const few = 1000 // lines; more would take too long to try
	m := syntaxError.FindStringSubmatch(err.Error())
	if m == nil {
		r.add(1, "", err.Error(), "")
		return
	}
	line, _ := strconv.Atoi(m[1]) // no number is no line: 1
	lines := bytes.SplitAfter(src, []byte("\n"))
	if len(lines) <= few {
		for n := len(lines) - 1; n >= 0; n-- {
			var doc yaml.Node
			if yaml.Unmarshal(bytes.Join(lines[:n], nil), &doc) == nil {
				line = n + 1
				break
			}
		}
	}
	line = min(max(line, 1), len(lines))
	hint := ""
	if bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t")) {
		hint = "indent with spaces, not tabs"
	} else if strings.Contains(m[2], "mapping values are not allowed") {
		hint = "put text that contains a colon in quotes"
	}
	r.add(line, "", "not YAML: "+m[2], hint)
}

// mapping reads a mapping of known fields, and says whether the node is one.
func (r *reader) mapping(n *yaml.Node, path string, fields []field) bool {
	if !r.is(n, yaml.MappingNode, path, "a mapping of fields") {
		return false
	}
	r.pairs(n, path, func(name string, key, v *yaml.Node, at string) {
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
			fields[i].read(v, at)
			return
		}
		if _, ok := r.later(name); ok {
			r.refuse(key.Line, at, name)
			return
		}
		names := make([]string, 0, len(fields))
		for _, f := range fields {
			names = append(names, f.name)
		}
		hint := meant(name, names)
		if place := r.home(name); place != "" {
			hint = "it belongs in " + place
		}
		if strings.HasSuffix(name, ")") || strings.HasSuffix(name, ">") {
			hint = quotedType
		}
		r.add(key.Line, at, fmt.Sprintf("unknown field %q", name), hint)
	})
	return true
}

// pairs gives the entries of a mapping whose keys are plain and not repeated, and notes their lines.
func (r *reader) pairs(n *yaml.Node, path string, each func(name string, key, v *yaml.Node, at string)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			r.add(key.Line, path, "a field's name must be plain text", "anchors, aliases and merges are not read; write the field out")
			continue
		}
		at := key.Value
		if path != "" {
			at = path + "." + at
		}
		if first, twice := seen[key.Value]; twice {
			r.add(key.Line, at, fmt.Sprintf("%q is given twice, first on line %d", key.Value, first), "keep one")
			continue
		}
		seen[key.Value] = key.Line
		r.lines[at] = key.Line
		each(key.Value, key, v, at)
	}
}

// is checks a node's kind.
func (r *reader) is(n *yaml.Node, kind yaml.Kind, path, want string) bool {
	if n.Kind == kind {
		return true
	}
	hint := ""
	if n.Kind == yaml.AliasNode {
		hint = "anchors and aliases are not read; write the value out"
	} else if kind == yaml.SequenceNode && n.Kind == yaml.ScalarNode && !isNull(n) {
		hint = "write [" + n.Value + "]"
	}
	r.add(n.Line, path, fmt.Sprintf("must be %s, is %s", want, kindName(n)), hint)
	return false
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!str":
		return "text"
	}
	return "something else"
}

// plain gives the text of a node that must be text and, unless empty is right, not empty.
func (r *reader) plain(n *yaml.Node, path string, empty bool) (string, bool) {
	if !r.is(n, yaml.ScalarNode, path, "text") {
		return "", false
	}
	if n.ShortTag() != "!!str" {
		hint := ""
		if !isNull(n) {
			hint = fmt.Sprintf("put it in quotes: %q", n.Value)
		}
		r.add(n.Line, path, "must be text, is "+kindName(n), hint)
		return "", false
	}
	if !empty && strings.TrimSpace(n.Value) == "" {
		r.add(n.Line, path, "must not be empty", "")
		return "", false
	}
	return n.Value, true
}

func (r *reader) text(to *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if s, ok := r.plain(n, path, false); ok {
			*to = s
		}
	}
}

// last gives the name of the field at a path.
func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// oneOf reads a text that must be one of a few.
func (r *reader) oneOf(to *string, words ...string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		s, ok := r.plain(n, path, false)
		if !ok {
			return
		}
		if _, ok := r.later(last(path) + ": " + s); ok {
			r.refuse(n.Line, path, last(path)+": "+s)
			return
		}
		if !slices.Contains(words, s) {
			hint := ""
			if near := spelling.Nearest(s, words); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			r.add(n.Line, path, fmt.Sprintf("%q is not one of %s", s, strings.Join(words, ", ")), hint)
			return
		}
		*to = s
	}
}

func (r *reader) boolean(to *bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if !r.is(n, yaml.ScalarNode, path, "true or false") {
			return
		}
		if n.ShortTag() != "!!bool" {
			r.add(n.Line, path, "must be true or false, is "+kindName(n), "")
			return
		}
		*to = strings.EqualFold(n.Value, "true")
	}
}

// share reads a number from 0 to 1.
func (r *reader) share(to *float64) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		const want = "a number from 0 to 1"
		if !r.is(n, yaml.ScalarNode, path, want) {
			return
		}
		f, err := strconv.ParseFloat(n.Value, 64)
		if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" || err != nil || math.IsNaN(f) || f < 0 || f > 1 {
			hint := ""
			if strings.HasSuffix(n.Value, "%") || f > 1 {
				hint = "5 % is 0.05"
			}
			r.add(n.Line, path, "must be "+want, hint)
			return
		}
		*to = f
	}
}

// number reads a whole number of a range.
func (r *reader) number(to *int, least, most int) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		want := fmt.Sprintf("a whole number from %d to %d", least, most)
		if !r.is(n, yaml.ScalarNode, path, want) {
			return
		}
		v, err := strconv.Atoi(n.Value)
		if n.ShortTag() != "!!int" || err != nil || v < least || v > most {
			r.add(n.Line, path, "must be "+want, "")
			return
		}
		*to = v
	}
}

func (r *reader) duration(to *Duration) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if !r.is(n, yaml.ScalarNode, path, durationForm) {
			return
		}
		d, err := ParseDuration(n.Value)
		switch {
		case err != nil:
			r.add(n.Line, path, err.Error(), "")
		case d == 0:
			r.add(n.Line, path, "must be longer than nothing", "")
		default:
			*to = d
		}
	}
}

func (r *reader) size(to *int64) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if !r.is(n, yaml.ScalarNode, path, sizeForm) {
			return
		}
		v, err := parseSize(n.Value)
		if err != nil {
			r.add(n.Line, path, err.Error(), "")
			return
		}
		*to = v
	}
}

// names reads a list of texts without repetition. A list that is given is not nil, even when empty.
func (r *reader) names(to *[]string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if !r.is(n, yaml.SequenceNode, path, "a list") {
			return
		}
		out := []string{}
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			r.lines[at] = item.Line
			s, ok := r.plain(item, at, false)
			if !ok {
				continue
			}
			if slices.Contains(out, s) {
				r.add(item.Line, at, fmt.Sprintf("%q is listed twice", s), "")
				continue
			}
			out = append(out, s)
		}
		*to = out
	}
}
