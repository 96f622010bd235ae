package value

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxPrecision is how many digits a decimal may have.
const maxPrecision = 38

// TypeError says that a text is not a type.
type TypeError struct{ Text, Reason string }

func (e *TypeError) Error() string { return fmt.Sprintf("%q is not a type: %s", e.Text, e.Reason) }

// ParseType reads a type as Spark's DDL writes it: bigint, decimal(10,2), array<string>, map<string,int>,
// struct<a:int,b:string>.
func ParseType(text string) (Type, error) {
	p := ddl{rest: text}
	t, err := p.parse()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("%q is left over", strings.TrimSpace(p.rest))
	}
	if err != nil {
		return Type{}, &TypeError{Text: text, Reason: err.Error()}
	}
	return t, nil
}

// simple gives the kinds that are one word; the first word of a kind is the one it is printed by.
func simple(word string) (Kind, bool) {
	switch strings.ToLower(word) {
	case "void":
		return Void, true
	case "boolean":
		return Boolean, true
	case "tinyint", "byte":
		return Byte, true
	case "smallint", "short":
		return Short, true
	case "int", "integer":
		return Integer, true
	case "bigint", "long":
		return Long, true
	case "float", "real":
		return Float, true
	case "double":
		return Double, true
	case "string":
		return StringKind, true
	case "binary":
		return BinaryKind, true
	case "date":
		return DateKind, true
	case "timestamp":
		return TimestampKind, true
	case "timestamp_ntz":
		return TimestampNTZ, true
	case "variant":
		return VariantKind, true
	default:
		return Void, false
	}
}

// ddl is a reader of type texts.
type ddl struct {
	rest  string
	depth int
}

const maxDepth = 50

func (p *ddl) parse() (Type, error) {
	if p.depth++; p.depth > maxDepth {
		return Type{}, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	word := p.word()
	switch strings.ToLower(word) {
	case "decimal", "numeric":
		return p.decimal()
	case "array":
		elem, err := p.inside(1)
		if err != nil {
			return Type{}, err
		}
		return Type{Kind: ArrayKind, Elem: &elem[0], ElemNullable: true}, nil
	case "map":
		parts, err := p.inside(2)
		if err != nil {
			return Type{}, err
		}
		return Type{Kind: MapKind, Key: &parts[0], Elem: &parts[1], ElemNullable: true}, nil
	case "struct":
		return p.fields()
	}
	kind, ok := simple(word)
	if !ok {
		return Type{}, fmt.Errorf("%q is none of string, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, timestamp, timestamp_ntz, binary, variant, array<…>, map<…>, struct<…>", word)
	}
	return Type{Kind: kind}, nil
}

func (p *ddl) word() string {
	p.rest = strings.TrimLeft(p.rest, " ")
	end := strings.IndexAny(p.rest, "<>(),: ")
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// name reads a field's name; between back quotes it may hold any character, a back quote doubled.
func (p *ddl) name() string {
	if !p.take("`") {
		return p.word()
	}
	var name strings.Builder
	for {
		end := strings.IndexByte(p.rest, '`')
		if end < 0 {
			return ""
		}
		name.WriteString(p.rest[:end])
		p.rest = p.rest[end+1:]
		if !strings.HasPrefix(p.rest, "`") {
			return name.String()
		}
		name.WriteByte('`')
		p.rest = p.rest[1:]
	}
}

func quoted(name string) string {
	if name != "" && !strings.ContainsAny(name, "<>(),: `") {
		return name
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

func (p *ddl) take(mark string) bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	rest, ok := strings.CutPrefix(p.rest, mark)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *ddl) decimal() (Type, error) {
	t := Type{Kind: DecimalKind, Precision: 10}
	if !p.take("(") {
		return t, nil
	}
	var err error
	if t.Precision, err = strconv.Atoi(p.word()); err != nil || t.Precision < 1 || t.Precision > maxPrecision {
		return t, fmt.Errorf("a decimal has 1 to %d digits", maxPrecision)
	}
	if p.take(",") {
		if t.Scale, err = strconv.Atoi(p.word()); err != nil || t.Scale < 0 || t.Scale > t.Precision {
			return t, errors.New("a decimal's scale is from 0 to its precision")
		}
	}
	if !p.take(")") {
		return t, errors.New("a closing parenthesis is missing")
	}
	return t, nil
}

// inside reads n types between angle brackets.
func (p *ddl) inside(n int) ([]Type, error) {
	if !p.take("<") {
		return nil, errors.New("what it holds is missing, as in array<string> or map<string,int>")
	}
	out := make([]Type, n)
	for i := range out {
		if i > 0 && !p.take(",") {
			return nil, errors.New("a map has two types")
		}
		t, err := p.parse()
		if err != nil {
			return nil, err
		}
		out[i] = t
	}
	if !p.take(">") {
		return nil, errors.New("a closing > is missing")
	}
	return out, nil
}

func (p *ddl) fields() (Type, error) {
	t := Type{Kind: StructKind}
	if !p.take("<") {
		return t, errors.New("its fields are missing, as in struct<a:int,b:string>")
	}
	if p.take(">") {
		return t, nil
	}
	for {
		name := p.name()
		if name == "" || !p.take(":") {
			return t, errors.New("a field is written name:type")
		}
		field, err := p.parse()
		if err != nil {
			return t, err
		}
		t.Fields = append(t.Fields, Field{Name: name, Type: field, Nullable: true})
		if p.take(">") {
			return t, nil
		}
		if !p.take(",") {
			return t, errors.New("a closing > is missing")
		}
	}
}

// String is the type as ParseType reads it.
func (t Type) String() string {
	switch t.Kind {
	case DecimalKind:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case ArrayKind:
		return "array<" + t.Elem.String() + ">"
	case MapKind:
		return "map<" + t.Key.String() + "," + t.Elem.String() + ">"
	case StructKind:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = quoted(f.Name) + ":" + f.Type.String()
		}
		return "struct<" + strings.Join(parts, ",") + ">"
	default:
		return t.Kind.String()
	}
}

// String is the kind's name in Spark SQL.
func (k Kind) String() string {
	names := [...]string{
		Void: "void", Boolean: "boolean", Byte: "tinyint", Short: "smallint", Integer: "int", Long: "bigint", Float: "float",
		Double: "double", DecimalKind: "decimal", StringKind: "string", BinaryKind: "binary", DateKind: "date",
		TimestampKind: "timestamp", TimestampNTZ: "timestamp_ntz", StructKind: "struct", ArrayKind: "array", MapKind: "map",
		VariantKind: "variant",
	}
	if int(k) < len(names) {
		return names[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Equal says whether two types hold the same values, whatever their fields' metadata and nullability.
func (t Type) Equal(u Type) bool { return t.String() == u.String() }
