package delta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"varve/internal/value"
)

// maxSchemaDepth bounds how deep types nest, so that a hostile schema cannot exhaust the stack.
const maxSchemaDepth = 100

// fieldJSON is the protocol's form of a field.
type fieldJSON struct {
	Name     string          `json:"name"`
	Type     json.RawMessage `json:"type"`
	Nullable bool            `json:"nullable"`
	Metadata map[string]any  `json:"metadata"`
}

// typeJSON is the protocol's form of a nested type.
type typeJSON struct {
	Type              string          `json:"type"`
	Fields            []fieldJSON     `json:"fields"`
	ElementType       json.RawMessage `json:"elementType"`
	ContainsNull      bool            `json:"containsNull"`
	KeyType           json.RawMessage `json:"keyType"`
	ValueType         json.RawMessage `json:"valueType"`
	ValueContainsNull bool            `json:"valueContainsNull"`
}

// ParseSchema reads a schemaString. Column metadata is kept as it is, its numbers as json.Number.
func ParseSchema(schemaString string) (value.Schema, error) {
	t, err := parseType([]byte(schemaString), 0)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if t.Kind != value.StructKind {
		return nil, errors.New("schema: not a struct")
	}
	return t.Fields, nil
}

// parseType reads a type, which is a name or an object.
func parseType(raw []byte, depth int) (value.Type, error) {
	if depth > maxSchemaDepth {
		return value.Type{}, errors.New("types nest too deep")
	}
	if len(raw) > 0 && raw[0] == '"' {
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return value.Type{}, err
		}
		return parsePrimitive(name)
	}
	var t typeJSON
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&t); err != nil {
		return value.Type{}, err
	}
	switch t.Type {
	case "struct":
		fields, err := parseFields(t.Fields, depth+1)
		return value.Type{Kind: value.StructKind, Fields: fields}, err
	case "array":
		elem, err := parseType(t.ElementType, depth+1)
		return value.Type{Kind: value.ArrayKind, Elem: &elem, ElemNullable: t.ContainsNull}, err
	case "map":
		key, err := parseType(t.KeyType, depth+1)
		if err != nil {
			return value.Type{}, err
		}
		elem, err := parseType(t.ValueType, depth+1)
		return value.Type{Kind: value.MapKind, Key: &key, Elem: &elem, ElemNullable: t.ValueContainsNull}, err
	default:
		return value.Type{}, fmt.Errorf("no type %q", t.Type)
	}
}

// parseFields reads the fields of a struct; their names are unique.
func parseFields(in []fieldJSON, depth int) ([]value.Field, error) {
	fields := make([]value.Field, len(in))
	seen := make(map[string]bool, len(in))
	for i, f := range in {
		t, err := parseType(f.Type, depth)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", f.Name, err)
		}
		if seen[f.Name] {
			return nil, fmt.Errorf("%q: there twice", f.Name)
		}
		seen[f.Name] = true
		fields[i] = value.Field{Name: f.Name, Type: t, Nullable: f.Nullable}
		if len(f.Metadata) > 0 {
			fields[i].Metadata = f.Metadata
		}
	}
	return fields, nil
}

// primitives are the names of the types without parameters.
func primitives() map[string]value.Kind {
	return map[string]value.Kind{
		"void": value.Void, "boolean": value.Boolean, "byte": value.Byte, "short": value.Short, "integer": value.Integer,
		"long": value.Long, "float": value.Float, "double": value.Double, "string": value.StringKind,
		"binary": value.BinaryKind, "date": value.DateKind, "timestamp": value.TimestampKind,
		"timestamp_ntz": value.TimestampNTZ, "variant": value.VariantKind,
	}
}

// parsePrimitive reads the name of a type.
func parsePrimitive(name string) (value.Type, error) {
	if kind, ok := primitives()[name]; ok {
		return value.Type{Kind: kind}, nil
	}
	if name == "null" {
		return value.Type{Kind: value.Void}, nil
	}
	if name == "decimal" {
		return value.Type{Kind: value.DecimalKind, Precision: 10}, nil
	}
	if inner, ok := strings.CutPrefix(name, "decimal("); ok {
		return parseDecimal(name, inner)
	}
	return value.Type{}, &UnsupportedError{Feature: "type " + name}
}

// parseDecimal reads what follows decimal(.
func parseDecimal(name, inner string) (value.Type, error) {
	inner, closed := strings.CutSuffix(inner, ")")
	p, s, comma := strings.Cut(inner, ",")
	precision, err := strconv.Atoi(strings.TrimSpace(p))
	scale, err2 := strconv.Atoi(strings.TrimSpace(s))
	if !closed || !comma || err != nil || err2 != nil || precision < 1 || precision > 38 || scale < 0 || scale > precision {
		return value.Type{}, fmt.Errorf("no type %q", name)
	}
	return value.Type{Kind: value.DecimalKind, Precision: precision, Scale: scale}, nil
}

// SchemaString writes a schema as the protocol has it.
func SchemaString(s value.Schema) string {
	out, err := json.Marshal(typeForm(value.Type{Kind: value.StructKind, Fields: s}))
	if err != nil {
		// Only metadata that no JSON can hold gets here, which is a bug of the caller.
		panic(fmt.Sprintf("delta: schema: %v", err))
	}
	return string(out)
}

// typeForm gives what encodes as the protocol's form of a type.
func typeForm(t value.Type) any {
	switch t.Kind {
	case value.StructKind:
		type field struct {
			Name     string         `json:"name"`
			Type     any            `json:"type"`
			Nullable bool           `json:"nullable"`
			Metadata map[string]any `json:"metadata"`
		}
		fields := make([]field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = field{Name: f.Name, Type: typeForm(f.Type), Nullable: f.Nullable, Metadata: f.Metadata}
			if f.Metadata == nil {
				fields[i].Metadata = map[string]any{}
			}
		}
		return struct {
			Type   string  `json:"type"`
			Fields []field `json:"fields"`
		}{"struct", fields}
	case value.ArrayKind:
		return struct {
			Type         string `json:"type"`
			ElementType  any    `json:"elementType"`
			ContainsNull bool   `json:"containsNull"`
		}{"array", typeForm(*t.Elem), t.ElemNullable}
	case value.MapKind:
		return struct {
			Type              string `json:"type"`
			KeyType           any    `json:"keyType"`
			ValueType         any    `json:"valueType"`
			ValueContainsNull bool   `json:"valueContainsNull"`
		}{"map", typeForm(*t.Key), typeForm(*t.Elem), t.ElemNullable}
	case value.DecimalKind:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	default:
		for name, kind := range primitives() {
			if kind == t.Kind {
				return name
			}
		}
		return "void"
	}
}
