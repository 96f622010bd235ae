package normalize

import (
	"context"
	"fmt"

	"varve/internal/sql"
	"varve/internal/value"
	"varve/schemas"
)

const (
	dayColumn     = "_day"
	secondsPerDay = 24 * 60 * 60
	microsPerDay  = secondsPerDay * 1_000_000
)

// SequenceType is the type of the sequence of a contract's events.
func SequenceType(c schemas.Contract) value.Type { return c.SequenceType() }

// HasBounds says whether the rows of a target are bounded by something else than the sequence.
func HasBounds(c schemas.Contract, t schemas.Target) bool { return boundExpr(c, t) != "" }

// boundExpr is the expression of a target's bounds, empty where they are the sequence. A source without a sequence has
// days for bounds.
func boundExpr(c schemas.Contract, t schemas.Target) string {
	switch {
	case t.SCDType != 2:
		return ""
	case t.History.By != "":
		return t.History.By
	case c.IsArrival():
		return dayColumn
	default:
		return ""
	}
}

// BoundType is the type of the start and the end of a target's rows.
func BoundType(ctx context.Context, db *sql.DB, c schemas.Contract, t schemas.Target) (value.Type, error) {
	expr := boundExpr(c, t)
	if expr == "" {
		return SequenceType(c), nil
	}
	bound, err := db.Check(ctx, expr, recordSchema(c))
	if err != nil {
		return value.Type{}, fmt.Errorf("history.by of %s: %w", t.Table, err)
	}
	return bound, nil
}

// recordSchema is what an expression of a contract may read: the record's columns and its day.
func recordSchema(c schemas.Contract) value.Schema {
	schema := make(value.Schema, 0, len(c.Columns)+1)
	for _, column := range c.Columns {
		schema = append(schema, value.Field{Name: column.Name, Type: column.Type, Nullable: true})
	}
	return append(schema, value.Field{Name: dayColumn, Type: value.Type{Kind: value.DateKind}, Nullable: true})
}

// isTime says whether a day can be a bound of the type.
func isTime(t value.Type) bool {
	return t.Kind == value.DateKind || t.Kind == value.TimestampKind || t.Kind == value.TimestampNTZ
}

// asBound turns a date into a bound of the type, or gives the value as it is.
func asBound(t value.Type, v value.Value) value.Value {
	day, ok := v.(value.Date)
	if !ok {
		return v
	}
	switch t.Kind {
	case value.TimestampKind:
		return value.Timestamp(int64(day) * microsPerDay)
	case value.TimestampNTZ:
		return value.LocalTimestamp(int64(day) * microsPerDay)
	default:
		return v
	}
}

// micros is a date or a timestamp in microseconds since 1970.
func micros(v value.Value) (int64, bool) {
	switch v := v.(type) {
	case value.Date:
		return int64(v) * microsPerDay, true
	case value.Timestamp:
		return int64(v), true
	case value.LocalTimestamp:
		return int64(v), true
	default:
		return 0, false
	}
}

// inRange says whether a bound is near enough to the day of its record.
func inRange(v value.Value, day value.Date, h schemas.History) bool {
	at, ok := micros(v)
	if !ok {
		return true
	}
	distance := at - int64(day)*microsPerDay
	if behind := h.MaxBehind.Std().Microseconds(); behind > 0 && distance < -behind {
		return false
	}
	ahead := h.MaxAhead.Std().Microseconds()
	return ahead <= 0 || distance <= ahead
}
