package sql

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"varve/internal/value"
)

const (
	secondsPerDay = 24 * 60 * 60
	maxPrecision  = 38
)

// typeText is the engine's name of a type.
func typeText(t value.Type) (string, error) {
	switch t.Kind {
	case value.Void, value.Integer:
		return "INTEGER", nil
	case value.Boolean:
		return "BOOLEAN", nil
	case value.Byte:
		return "TINYINT", nil
	case value.Short:
		return "SMALLINT", nil
	case value.Long:
		return "BIGINT", nil
	case value.Float:
		return "FLOAT", nil
	case value.Double:
		return "DOUBLE", nil
	case value.DecimalKind:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale), nil
	case value.StringKind:
		return "VARCHAR", nil
	case value.BinaryKind:
		return "BLOB", nil
	case value.DateKind:
		return "DATE", nil
	case value.TimestampKind:
		return "TIMESTAMP WITH TIME ZONE", nil
	case value.TimestampNTZ:
		return "TIMESTAMP", nil
	case value.StructKind:
		return structText(t)
	case value.ArrayKind:
		elem, err := typeText(*t.Elem)
		return elem + "[]", err
	case value.MapKind:
		key, err := typeText(*t.Key)
		if err != nil {
			return "", err
		}
		elem, err := typeText(*t.Elem)
		return "MAP(" + key + ", " + elem + ")", err
	default:
		return "", fmt.Errorf("type %s has no form in SQL", t)
	}
}

func structText(t value.Type) (string, error) {
	if len(t.Fields) == 0 {
		return "", errors.New("a struct without fields has no form in SQL")
	}
	parts := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		text, err := typeText(f.Type)
		if err != nil {
			return "", fmt.Errorf("field %q: %w", f.Name, err)
		}
		parts[i] = Ident(f.Name) + " " + text
	}
	return "STRUCT(" + strings.Join(parts, ", ") + ")", nil
}

// typeOf is the type of what the engine gives; exact says whether the driver gives its values as they are. Where it
// does not, the value is to be cast to typeText of the type.
func typeOf(info duckdb.TypeInfo) (t value.Type, exact bool, err error) {
	if info.Alias() != "" {
		return value.Type{Kind: value.StringKind}, false, nil
	}
	if kind, ok := plainKind(info.InternalType()); ok {
		return value.Type{Kind: kind}, true, nil
	}
	switch info.InternalType() {
	case duckdb.TYPE_UBIGINT:
		return value.Type{Kind: value.DecimalKind, Precision: 20}, true, nil
	case duckdb.TYPE_HUGEINT:
		return value.Type{Kind: value.DecimalKind, Precision: maxPrecision}, true, nil
	case duckdb.TYPE_UHUGEINT:
		return value.Type{Kind: value.DecimalKind, Precision: maxPrecision}, false, nil
	case duckdb.TYPE_TIMESTAMP_NS:
		return value.Type{Kind: value.TimestampNTZ}, false, nil
	}
	switch d := info.Details().(type) {
	case *duckdb.DecimalDetails:
		return value.Type{Kind: value.DecimalKind, Precision: int(d.Width), Scale: int(d.Scale)}, true, nil
	case *duckdb.ListDetails:
		return listOf(d.Child)
	case *duckdb.ArrayDetails:
		return listOf(d.Child)
	case *duckdb.StructDetails:
		return structOf(d)
	case *duckdb.MapDetails:
		key, keyExact, err := typeOf(d.Key)
		if err != nil {
			return t, false, err
		}
		elem, elemExact, err := typeOf(d.Value)
		return value.Type{Kind: value.MapKind, Key: &key, Elem: &elem, ElemNullable: true}, keyExact && elemExact, err
	default: // uuid, time, interval, enum and what else has text only
		return value.Type{Kind: value.StringKind}, false, nil
	}
}

func plainKind(t duckdb.Type) (value.Kind, bool) {
	switch t {
	case duckdb.TYPE_BOOLEAN:
		return value.Boolean, true
	case duckdb.TYPE_TINYINT:
		return value.Byte, true
	case duckdb.TYPE_SMALLINT, duckdb.TYPE_UTINYINT:
		return value.Short, true
	case duckdb.TYPE_INTEGER, duckdb.TYPE_USMALLINT:
		return value.Integer, true
	case duckdb.TYPE_BIGINT, duckdb.TYPE_UINTEGER:
		return value.Long, true
	case duckdb.TYPE_FLOAT:
		return value.Float, true
	case duckdb.TYPE_DOUBLE:
		return value.Double, true
	case duckdb.TYPE_VARCHAR:
		return value.StringKind, true
	case duckdb.TYPE_BLOB:
		return value.BinaryKind, true
	case duckdb.TYPE_DATE:
		return value.DateKind, true
	case duckdb.TYPE_TIMESTAMP_TZ:
		return value.TimestampKind, true
	case duckdb.TYPE_TIMESTAMP, duckdb.TYPE_TIMESTAMP_S, duckdb.TYPE_TIMESTAMP_MS:
		return value.TimestampNTZ, true
	case duckdb.TYPE_SQLNULL:
		return value.Void, true
	default:
		return 0, false
	}
}

func listOf(child duckdb.TypeInfo) (value.Type, bool, error) {
	elem, exact, err := typeOf(child)
	return value.Type{Kind: value.ArrayKind, Elem: &elem, ElemNullable: true}, exact, err
}

func structOf(d *duckdb.StructDetails) (value.Type, bool, error) {
	t, all := value.Type{Kind: value.StructKind}, true
	for _, entry := range d.Entries {
		field, exact, err := typeOf(entry.Info())
		if err != nil {
			return t, false, err
		}
		all = all && exact
		t.Fields = append(t.Fields, value.Field{Name: entry.Name(), Type: field, Nullable: true})
	}
	return t, all, nil
}

// fromDriver turns what the driver gave into a value of the type.
func fromDriver(t value.Type, v any) (value.Value, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil //nolint:nilnil // nil is the null value
	case bool, float32, float64, string:
		return v, nil
	case int8:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case int64:
		return v, nil
	case uint8:
		return int64(v), nil
	case uint16:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint64:
		return value.Decimal{Unscaled: new(big.Int).SetUint64(v)}, nil
	case *big.Int:
		if len(new(big.Int).Abs(v).String()) > maxPrecision {
			return nil, &QueryError{Kind: "out of range", Message: "an integer has more than 38 digits"}
		}
		return value.Decimal{Unscaled: v}, nil
	case duckdb.Decimal:
		return value.Decimal{Unscaled: v.Value, Scale: int(v.Scale)}, nil
	case []byte:
		return value.Binary(v), nil
	case time.Time:
		return fromTime(t, v)
	default:
		return fromNested(t, v)
	}
}

func fromTime(t value.Type, v time.Time) (value.Value, error) {
	switch t.Kind {
	case value.DateKind:
		return value.Date(v.Unix() / secondsPerDay), nil //nolint:gosec // the driver made it from 32 bits
	case value.TimestampKind:
		return value.Timestamp(v.UnixMicro()), nil
	case value.TimestampNTZ:
		return value.LocalTimestamp(v.UnixMicro()), nil
	default:
		return nil, fmt.Errorf("the SQL engine gave a time for a %s", t)
	}
}

func fromNested(t value.Type, v any) (value.Value, error) {
	switch v := v.(type) {
	case map[string]any:
		s := make(value.Struct, len(t.Fields))
		for i, f := range t.Fields {
			member, err := fromDriver(f.Type, v[f.Name])
			if err != nil {
				return nil, err
			}
			s[i] = value.Member{Name: f.Name, Value: member}
		}
		return s, nil
	case []any:
		list := make(value.List, len(v))
		for i := range v {
			elem, err := fromDriver(*t.Elem, v[i])
			if err != nil {
				return nil, err
			}
			list[i] = elem
		}
		return list, nil
	case duckdb.OrderedMap:
		keys, elems := v.Keys(), v.Values()
		m := make(value.Map, len(keys))
		for i := range keys {
			key, err := fromDriver(*t.Key, keys[i])
			if err != nil {
				return nil, err
			}
			elem, err := fromDriver(*t.Elem, elems[i])
			if err != nil {
				return nil, err
			}
			m[i] = value.Entry{Key: key, Value: elem}
		}
		return m, nil
	default:
		return nil, fmt.Errorf("the SQL engine gave a %T for a %s", v, t)
	}
}

// toDriver turns a value of the type into what the driver's appender takes.
func toDriver(t value.Type, v value.Value) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil //nolint:nilnil // nil is the null value
	case bool, float32, float64, int64:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, errors.New("a string is not valid UTF-8")
		}
		return []byte(v), nil // the driver ends a Go string at its first zero byte
	case value.Binary:
		return []byte(v), nil
	case value.Date:
		return time.Unix(int64(v)*secondsPerDay, 0).UTC(), nil
	case value.Timestamp:
		return time.UnixMicro(int64(v)).UTC(), nil
	case value.LocalTimestamp:
		return time.UnixMicro(int64(v)).UTC(), nil
	case value.Decimal:
		return toDecimal(t, v)
	case value.Struct:
		return toStruct(t, v)
	case value.List:
		return toList(t, v)
	case value.Map:
		return toMap(t, v)
	default:
		return nil, fmt.Errorf("a %T has no form in SQL", v)
	}
}

func toDecimal(t value.Type, v value.Decimal) (any, error) {
	unscaled := v.Unscaled
	power := tenTo(max(t.Scale-v.Scale, v.Scale-t.Scale))
	switch {
	case v.Scale < t.Scale:
		unscaled = new(big.Int).Mul(unscaled, power)
	case v.Scale > t.Scale:
		quotient, rest := new(big.Int).QuoRem(unscaled, power, new(big.Int))
		if rest.Sign() != 0 {
			return nil, fmt.Errorf("a decimal has more digits than %s holds", t)
		}
		unscaled = quotient
	}
	if len(new(big.Int).Abs(unscaled).String()) > t.Precision && unscaled.Sign() != 0 {
		return nil, fmt.Errorf("a decimal has more digits than %s holds", t)
	}
	return duckdb.Decimal{Width: uint8(t.Precision), Scale: uint8(t.Scale), Value: unscaled}, nil //nolint:gosec // at most 38
}

func tenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func toStruct(t value.Type, v value.Struct) (any, error) {
	m := make(map[string]any, len(t.Fields))
	for _, f := range t.Fields {
		m[f.Name] = nil
	}
	for _, member := range v {
		i := value.Schema(t.Fields).Index(member.Name)
		if i < 0 {
			return nil, fmt.Errorf("a struct has a member that %s lacks", t)
		}
		elem, err := toDriver(t.Fields[i].Type, member.Value)
		if err != nil {
			return nil, err
		}
		m[member.Name] = elem
	}
	return m, nil
}

func toList(t value.Type, v value.List) (any, error) {
	list := make([]any, len(v))
	for i := range v {
		elem, err := toDriver(*t.Elem, v[i])
		if err != nil {
			return nil, err
		}
		list[i] = elem
	}
	return list, nil
}

func toMap(t value.Type, v value.Map) (any, error) {
	var m duckdb.OrderedMap
	for _, entry := range v {
		key, err := toDriver(*t.Key, entry.Key)
		if err != nil {
			return nil, err
		}
		if text, ok := key.([]byte); ok {
			key = string(text) // a key must be comparable in Go
		}
		elem, err := toDriver(*t.Elem, entry.Value)
		if err != nil {
			return nil, err
		}
		m.Set(key, elem)
	}
	return m, nil
}
