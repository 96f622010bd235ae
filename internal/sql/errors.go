package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// ExprError says why an expression of a contract cannot be used.
type ExprError struct {
	Expr string
	// Column is the name that no column has, where that is the reason.
	Column string
	// Position is the byte of the expression where the reason is, counted from 1; 0 where it is the whole.
	Position int
	Message  string
	// Hint says what to do, where there is something to say.
	Hint string
}

// Error names the expression, the place and the reason.
func (e *ExprError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "expression %q", e.Expr)
	if e.Position > 0 {
		fmt.Fprintf(&b, " at %d", e.Position)
	}
	b.WriteString(": ")
	b.WriteString(e.Message)
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// RowError says that an expression has no value for one row. It never holds a value of the row.
type RowError struct {
	Expr string
	// Kind is the family of the reason: conversion, out of range, and so on.
	Kind string
}

// Error names the expression and the kind of the reason.
func (e *RowError) Error() string {
	return fmt.Sprintf("expression %q cannot be computed: %s", e.Expr, e.Kind)
}

// QueryError is the engine's refusal of a query. Its text holds no value of a row.
type QueryError struct {
	Kind    string
	Message string
}

// Error gives the kind, then the engine's words where they cannot hold data, else what may be done.
func (e *QueryError) Error() string {
	switch {
	case e.Message != "":
	case e.Kind == conversion:
		return e.Kind + ": a value is none of the type it is cast to (TRY_CAST gives null instead)"
	case e.Kind == invalidInput:
		return e.Kind + ": a function cannot work with a value (TRY(…) gives null instead)"
	default:
		return e.Kind + ", for some row"
	}
	return e.Kind + ": " + e.Message
}

// clean turns the driver's error into one that holds no value of a row.
func clean(err error) error {
	duck, ok := errors.AsType[*duckdb.Error](err)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case !ok:
		return err
	case duck.Type == duckdb.ErrorTypeInterrupt:
		return context.Canceled
	case ofData(duck.Type):
		return &QueryError{Kind: kindOf(duck.Type)}
	default:
		return &QueryError{Kind: kindOf(duck.Type), Message: firstLine(duck.Msg)}
	}
}

// ofData says whether an error of this type is a fault of the rows, not of the query, so that its text may quote them.
func ofData(t duckdb.ErrorType) bool {
	switch t {
	case duckdb.ErrorTypeParser, duckdb.ErrorTypeSyntax, duckdb.ErrorTypeBinder, duckdb.ErrorTypeCatalog, duckdb.ErrorTypeNotImplemented,
		duckdb.ErrorTypeIO, duckdb.ErrorTypeOutOfMemory, duckdb.ErrorTypePermission, duckdb.ErrorTypeMissingExtension, duckdb.ErrorTypeAutoLoad,
		duckdb.ErrorTypeSettings, duckdb.ErrorTypeInvalidConfiguration, duckdb.ErrorTypeParameterNotAllowed,
		duckdb.ErrorTypeParameterNotResolved, duckdb.ErrorTypeDependency, duckdb.ErrorTypeConnection, duckdb.ErrorTypeTransaction,
		duckdb.ErrorTypeInterrupt, duckdb.ErrorTypeFatal, duckdb.ErrorTypeInternal:
		return false
	default:
		return true
	}
}

// The kinds of which more can be said than their names.
const (
	conversion   = "conversion"
	invalidInput = "invalid input"
)

func kindOf(t duckdb.ErrorType) string {
	switch t {
	case duckdb.ErrorTypeConversion:
		return conversion
	case duckdb.ErrorTypeOutOfRange, duckdb.ErrorTypeDecimal:
		return "out of range"
	case duckdb.ErrorTypeDivideByZero:
		return "division by zero"
	case duckdb.ErrorTypeInvalidInput:
		return invalidInput
	case duckdb.ErrorTypeParser, duckdb.ErrorTypeSyntax:
		return "syntax"
	case duckdb.ErrorTypeBinder, duckdb.ErrorTypeParameterNotAllowed, duckdb.ErrorTypeParameterNotResolved:
		return "not valid SQL here"
	case duckdb.ErrorTypeCatalog:
		return "unknown name"
	case duckdb.ErrorTypeNotImplemented:
		return "not supported"
	case duckdb.ErrorTypeIO:
		return "reading or writing a file"
	case duckdb.ErrorTypeOutOfMemory:
		return "out of memory"
	case duckdb.ErrorTypeMissingExtension, duckdb.ErrorTypeAutoLoad:
		return "needs an extension"
	case duckdb.ErrorTypePermission:
		return "not permitted"
	case duckdb.ErrorTypeInternal, duckdb.ErrorTypeFatal:
		return "the engine broke"
	default:
		return "the engine refused"
	}
}

// firstLine is the engine's message without its prefix and without the lines that quote the query.
func firstLine(message string) string {
	if prefix, rest, ok := strings.Cut(message, ": "); ok && strings.HasSuffix(prefix, "Error") {
		message = rest
	}
	line, _, _ := strings.Cut(message, "\n")
	return strings.TrimRight(strings.TrimSpace(line), ".!")
}
