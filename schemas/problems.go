package schemas

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong, or with Warning odd, in a file.
type Problem struct {
	// Line counts from 1; 0 where no line is to blame.
	Line int
	// Field is the path of the field, as targets[0].table.
	Field   string
	Message string
	// Hint says what to do, where that is known.
	Hint    string
	Warning bool
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems are all that is wrong in one file, by line.
type Problems struct { //nolint:errname // it is a list, and every caller reads it as one
	// File is empty where the text came from nowhere in particular.
	File string
	List []Problem
}

func (e *Problems) Error() string {
	lines := make([]string, 0, len(e.List))
	for _, p := range e.List {
		text := p.String()
		if e.File != "" {
			text = e.File + ": " + text
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// InFile gives err with the name of the file that it speaks of.
func InFile(err error, file string) error {
	if p, ok := errors.AsType[*Problems](err); ok {
		return &Problems{File: file, List: p.List}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", file, err)
}

// sorted gives problems by line, those without one last.
func sorted(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Compare(a.Line, b.Line)
	})
	return list
}
