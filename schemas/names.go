package schemas

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"varve/schemas/spelling"
)

var (
	identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	// landingClock matches the usual names of the time at which something was loaded.
	landingClock = regexp.MustCompile(`^_?(dwh?_|etl_)?(land(ed|ing)?|ingest(ed|ion)?|load(ed|ing)?|process(ed|ing)?|received|arriv(al|ed)|etl|dwh?)_?(at|on|ts|time|timestamp|date|datetime|dt|day)$`)
)

// reservedLayers are the layers that varve fills itself.
func reservedLayers() []string { return []string{"bronze", "quarantine", "ops", "_varve"} }

// bronzeNames are the columns that landing adds to every record.
func bronzeNames() []string {
	return []string{"_batch", "_file", "_row", "_day", "_landed_at", "_raw"}
}

// IsName says whether text may be the name of a dataset: a letter, then letters, digits and _.
func IsName(text string) bool { return identifier.MatchString(text) }

// IsTableName says whether text is the name of a table, layer.name, whoever owns it.
func IsTableName(text string) bool {
	layer, name, ok := strings.Cut(text, ".")
	return ok && identifier.MatchString(layer) && identifier.MatchString(name)
}

// IsReservedTable says whether a table's layer is one that varve fills itself, so that no target and no model may have it.
func IsReservedTable(table string) bool {
	layer, _, _ := strings.Cut(table, ".")
	return slices.ContainsFunc(reservedLayers(), func(r string) bool { return strings.EqualFold(r, layer) })
}

// isReservedColumn says whether a source's column would clash with one that varve adds.
func isReservedColumn(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "_varve") || lower == Arrival || slices.Contains(bronzeNames(), lower)
}

// columnNameFault says why a name cannot be that of a column in a Delta table, "" if it can.
func columnNameFault(name string) string {
	if name == "" {
		return "the name is empty"
	}
	for _, r := range name {
		if strings.ContainsRune(" ,;{}()=.'\"`", r) || unicode.IsControl(r) || r == unicode.ReplacementChar {
			return fmt.Sprintf("a name may not contain %q", r)
		}
	}
	return ""
}

// meant gives the hint that names the nearest name, or all of them where none is near.
func meant(text string, names []string) string {
	if near := spelling.Nearest(text, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(names) == 0 || len(names) > 12 {
		return ""
	}
	return "known are " + strings.Join(names, ", ")
}

// word matches what an SQL text is made of, as far as the names in it matter: comments, string literals, quoted names,
// names with a call's bracket, names.
var word = regexp.MustCompile(`--[^\n]*|(?s:/\*.*?\*/)|'(?:[^']|'')*'|"((?:[^"]|"")*)"|\.?\s*([\pL_][\pL\pN_$]*)(\s*\()?`)

// readBy gives the source columns that an SQL expression names, in declared order.
func (c Contract) readBy(expr string) []string {
	named := map[string]bool{}
	for _, m := range word.FindAllStringSubmatch(expr, -1) {
		switch {
		case m[1] != "":
			named[strings.ToLower(strings.ReplaceAll(m[1], `""`, `"`))] = true
		case m[2] != "" && m[3] == "" && !strings.HasPrefix(m[0], "."):
			named[strings.ToLower(m[2])] = true
		}
	}
	var out []string
	for _, col := range c.Columns {
		if named[strings.ToLower(col.Name)] {
			out = append(out, col.Name)
		}
	}
	return out
}
