package workflows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"varve/activities"
)

// checked is an input that has more to say about its values than their types do.
type checked interface{ problems() []string }

// field is one field of an input's struct.
type field struct {
	name, example string
	optional      bool
	kind          reflect.Kind
	index         int
}

// decode reads the input of a workflow strictly: exactly one JSON object with the fields of T, none misspelt, doubled or
// missing. The SDK's own reading would drop unknown fields and further arguments, and so run with defaults nobody meant. What encoding/json and reflect
// give depends on the payload alone, whatever the checker thinks of their insides.
//
//workflowcheck:ignore
func decode[T checked](name string, in, extra converter.RawValue) (T, error) {
	var out T
	fields := fieldsOf(reflect.TypeFor[T]())
	body, problem := object(in, extra)
	var problems []string
	if problem != "" {
		problems = append(problems, problem)
	} else {
		problems = fill(reflect.ValueOf(&out).Elem(), fields, body)
	}
	if len(problems) == 0 {
		problems = out.problems()
	}
	if len(problems) == 0 {
		return out, nil
	}
	return out, invalid("input of %s: %s; it looks like %s", name, strings.Join(problems, "; "), example(fields))
}

// invalid is the error of an input that means nothing.
func invalid(format string, args ...any) error {
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf(format, args...), activities.InvalidInput,
		temporal.ApplicationErrorOptions{NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign})
}

// object finds the one JSON object among the arguments.
func object(in, extra converter.RawValue) (body []byte, problem string) {
	if extra.Payload() != nil {
		return nil, "more than one argument; give one JSON object"
	}
	p := in.Payload()
	if p == nil || string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingNil {
		return nil, "no argument; give one JSON object"
	}
	body = bytes.TrimSpace(p.GetData())
	if string(p.GetMetadata()[converter.MetadataEncoding]) != converter.MetadataEncodingJSON || !bytes.HasPrefix(body, []byte("{")) {
		return nil, "the argument is not a JSON object"
	}
	return body, ""
}

func fieldsOf(t reflect.Type) []field {
	out := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		name, rest, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out = append(out, field{
			name: name, example: t.Field(i).Tag.Get("example"), optional: rest == "omitempty", kind: t.Field(i).Type.Kind(), index: i,
		})
	}
	return out
}

// fill reads the members of a JSON object into a struct and tells everything that is wrong with them.
func fill(into reflect.Value, fields []field, body []byte) []string {
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		return []string{"the argument is not a JSON object"}
	}
	var problems []string
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return append(problems, "the argument is not valid JSON")
		}
		name, _ := token.(string)
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return append(problems, "the argument is not valid JSON")
		}
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		switch {
		case i < 0:
			problems = append(problems, unknownField(name, fields))
		case seen[name]:
			problems = append(problems, fmt.Sprintf("field %q comes twice", name))
		default:
			problems = append(problems, set(into.Field(fields[i].index), fields[i], raw)...)
		}
		seen[name] = true
	}
	for _, f := range fields {
		if !f.optional && !seen[f.name] {
			problems = append(problems, fmt.Sprintf("field %q is missing", f.name))
		}
	}
	return problems
}

func unknownField(name string, fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return fmt.Sprintf("unknown field %q%s", name, didYouMean(name, names))
}

func set(into reflect.Value, f field, raw json.RawMessage) []string {
	if bytes.Equal(raw, []byte("null")) {
		if f.optional {
			return nil
		}
		return []string{fmt.Sprintf("field %q is null", f.name)}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into.Addr().Interface()); err != nil {
		return []string{fmt.Sprintf("field %q is not %s", f.name, wanted(f.kind))}
	}
	if !f.optional && into.IsZero() {
		return []string{fmt.Sprintf("field %q is empty", f.name)}
	}
	return nil
}

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	default:
		return "what a workflow carries from run to run; leave it out"
	}
}

// example shows an input with its required fields.
func example(fields []field) string {
	var parts []string
	for _, f := range fields {
		if !f.optional {
			parts = append(parts, fmt.Sprintf("%q: %q", f.name, f.example))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// dayProblems says what is wrong with a field that names a day.
func dayProblems(name, day string) []string {
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return []string{fmt.Sprintf("field %q is not a day such as 2026-09-14", name)}
	}
	return nil
}

// datasetProblems says what is wrong with the name of a dataset, which is part of ids and paths.
func datasetProblems(dataset string) []string {
	if strings.ContainsAny(dataset, "/ \t\n") {
		return []string{`field "dataset" is not the name of a dataset`}
	}
	return nil
}

func contractProblems(contract int64) []string {
	if contract < 0 {
		return []string{`field "contract" is not the number of a contract`}
	}
	return nil
}
