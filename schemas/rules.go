package schemas

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"varve/internal/value"
)

// check holds a contract that was read against the rules that join fields.
func (r *reader) check(c *Contract) {
	r.require("dataset", "as dataset: customer")
	r.require("source", `as source: {path: "customer/{day}/*.json", format: json}`)
	r.require("columns", "as columns: {customer_id: {type: string}}")
	r.require("keys", "the columns that name one thing, as keys: [customer_id]")
	r.require("sequence_by", "the column that orders the changes of a key; a source without one says sequence_by: "+Arrival)
	r.require("targets", "as targets: [{table: silver.customer}]")
	if c.Dataset != "" && !identifier.MatchString(c.Dataset) {
		r.addAt("dataset", fmt.Sprintf("%q is not a name", c.Dataset), "a letter, then letters, digits and _")
	}
	r.checkSource(&c.Source)
	if !r.has("columns") || c.Columns == nil {
		c.Columns = nil // what speaks of columns cannot be judged
	} else {
		r.checkColumns(c)
	}
	r.checkKeys(c)
	r.checkSequence(c)
	r.checkKept(c)
	r.checkIgnoreNull(c)
	r.checkTargets(c)
	r.checkLayout(c)
	r.checkSchedule(c.Schedule)
}

// require adds a problem where a field is not given.
func (r *reader) require(field, hint string) {
	if !r.has(field) {
		r.addAt(field, "is missing", hint)
	}
}

func (r *reader) checkSource(s *Source) {
	if s.Path != "" {
		r.checkPath(s.Path)
	}
	switch {
	case s.Format == FormatCSV && !r.has("source.csv"):
		s.CSV = defaultDialect()
	case s.Format == FormatCSV && s.CSV.Delimiter == s.CSV.Quote:
		r.addAt("source.csv", "delimiter and quote are the same character", "")
	case s.Format == FormatJSON && r.has("source.csv"):
		r.addAt("source.csv", "is for format: csv", "leave it out")
	}
}

func (r *reader) checkPath(p string) {
	const field = "source.path"
	switch {
	case strings.Contains(p, "://"):
		r.addAt(field, "must be below the landing location", "the store is named by landing in varve.yaml")
		return
	case strings.HasPrefix(p, "/") || strings.Contains(p, `\`) || slices.Contains(strings.Split(p, "/"), ".."):
		r.addAt(field, "must be below the landing location, with / between folders and no ..", "")
		return
	case strings.HasSuffix(p, "/"):
		r.addAt(field, "must name files, not a folder", "end it with *.json or the like")
		return
	case !utf8.ValidString(p) || strings.ContainsFunc(p, func(c rune) bool { return c < ' ' }):
		r.addAt(field, "has characters that no file's path has", "")
		return
	}
	rest := strings.ReplaceAll(p, "{day}", "")
	if i := strings.IndexAny(rest, "{}"); i >= 0 {
		r.addAt(field, "has a { or } that is not part of {day}", "{day} stands for the logical day, as 2026-09-14")
		return
	}
	if strings.Count(p, "{day}") > 1 {
		r.addAt(field, "has {day} more than once", "")
	}
	if strings.Contains(p, "//") || strings.HasPrefix(p, "./") {
		r.addAt(field, "has an empty folder name or a ./", "")
	}
	if _, err := path.Match(rest, ""); err != nil {
		r.addAt(field, "is not a pattern", "a [ begins a set of characters, as [ab], and must be closed")
	}
}

func (r *reader) checkColumns(c *Contract) {
	if len(c.Columns) == 0 {
		r.addAt("columns", "has no column", "as columns: {customer_id: {type: string}}")
	}
	lower := map[string]string{}
	for _, col := range c.Columns {
		at := "columns." + col.Name
		fault := columnNameFault(col.Name)
		switch first, clash := lower[strings.ToLower(col.Name)]; {
		case isReservedColumn(col.Name):
			r.addAt(at, fmt.Sprintf("%q is a name that varve uses itself", col.Name), "rename: give the column another name where the files are made")
		case fault != "":
			r.addAt(at, fmt.Sprintf("%q is not a column's name: %s", col.Name, fault), "rename: give the column another name where the files are made")
		case clash:
			r.addAt(at, fmt.Sprintf("%q and %q differ only by case", first, col.Name), "many readers of tables do not tell them apart")
		}
		lower[strings.ToLower(col.Name)] = col.Name
		r.checkFields(at, col.Type)
		if c.Source.Format == FormatCSV && holds(col.Type, value.StructKind, value.ArrayKind, value.MapKind) {
			r.addAt(at, fmt.Sprintf("a CSV field cannot hold %s", col.Type), "")
		}
	}
}

// checkFields holds the names inside a type against each other.
func (r *reader) checkFields(at string, t value.Type) {
	seen := map[string]bool{}
	for _, f := range t.Fields {
		if fault := columnNameFault(f.Name); fault != "" {
			r.addAt(at, fmt.Sprintf("the struct's field %q: %s", f.Name, fault), "")
		}
		if seen[strings.ToLower(f.Name)] {
			r.addAt(at, fmt.Sprintf("the struct has %q twice, or in another case", f.Name), "")
		}
		seen[strings.ToLower(f.Name)] = true
		r.checkFields(at, f.Type)
	}
	for _, inner := range []*value.Type{t.Key, t.Elem} {
		if inner != nil {
			r.checkFields(at, *inner)
		}
	}
}

// column looks a name up among the source's columns. Where there are none to look among, it adds nothing.
func (r *reader) column(c *Contract, at, name string) (Column, bool) {
	col, ok := c.Column(name)
	if !ok && len(c.Columns) > 0 {
		names := c.SourceSchema().Names()
		r.addAt(at, fmt.Sprintf("there is no column %q", name), meant(name, names))
	}
	return col, ok
}

func (r *reader) checkKeys(c *Contract) {
	if r.has("keys") && len(c.Keys) == 0 && c.Keys != nil {
		r.addAt("keys", "names no column", "the columns that name one thing, as keys: [customer_id]")
	}
	for i, k := range c.Keys {
		at := fmt.Sprintf("keys[%d]", i)
		if strings.Contains(k, ".") {
			r.addAt(at, fmt.Sprintf("%q is a part of a column", k), "a key is a whole column")
			continue
		}
		if col, ok := r.column(c, at, k); ok && holds(col.Type, value.MapKind) {
			r.addAt(at, fmt.Sprintf("%q is a %s, and maps have no equality", k, col.Type), "a key is a plain value")
		}
	}
}

func (r *reader) checkSequence(c *Contract) {
	const at = "sequence_by"
	if c.SequenceBy == "" || c.IsArrival() {
		return
	}
	var seen []string
	for _, name := range c.SequenceColumns() {
		if strings.ContainsAny(name, "()") {
			r.addAt(at, "is an expression", "a column, a list of columns, or "+Arrival)
			return
		}
		if slices.Contains(seen, name) {
			r.addAt(at, fmt.Sprintf("names %q twice", name), "")
		}
		seen = append(seen, name)
		col, ok := r.column(c, at, name)
		if !ok {
			continue
		}
		if holds(col.Type, value.MapKind, value.ArrayKind) {
			r.addAt(at, fmt.Sprintf("%q is a %s, which has no order", name, col.Type), "")
		}
		if landingClock.MatchString(strings.ToLower(name)) {
			r.warnAt(at, fmt.Sprintf("%q looks like the time of loading, which says nothing of the order at the source", name),
				"use the source's own order, or "+Arrival)
		}
	}
}

func (r *reader) checkKept(c *Contract) {
	if r.has("column_list") && r.has("except_column_list") {
		r.addAt("except_column_list", "column_list is given too", "keep one of them")
	}
	if c.ColumnList != nil && len(c.ColumnList) == 0 {
		r.addAt("column_list", "names no column", "leave it out to keep every column")
	}
	for i, name := range c.ColumnList {
		r.column(c, fmt.Sprintf("column_list[%d]", i), name)
	}
	for i, name := range c.ExceptColumnList {
		at := fmt.Sprintf("except_column_list[%d]", i)
		r.column(c, at, name)
		if slices.Contains(c.Keys, name) {
			r.addAt(at, fmt.Sprintf("%q is a key, and targets have their keys", name), "")
		}
	}
	for _, k := range c.Keys {
		if len(c.ColumnList) > 0 && !slices.Contains(c.ColumnList, k) {
			r.addAt("column_list", fmt.Sprintf("the key %q is missing, and targets have their keys", k), "")
		}
	}
}

func (r *reader) checkIgnoreNull(c *Contract) {
	const all, on, except = "ignore_null_updates", "ignore_null_updates_column_list", "ignore_null_updates_except_column_list"
	var given []string
	for _, name := range []string{all, on, except} {
		if r.has(name) && (name != all || c.IgnoreNullUpdates) {
			given = append(given, name)
		}
	}
	if len(given) > 1 {
		r.addAt(given[1], given[0]+" is given too", "keep one of them")
	}
	if c.IgnoreNullUpdatesColumnList != nil && len(c.IgnoreNullUpdatesColumnList) == 0 {
		r.addAt(on, "names no column", "ignore_null_updates: true means every column")
	}
	r.plainColumns(c, on, c.IgnoreNullUpdatesColumnList)
	r.plainColumns(c, except, c.IgnoreNullUpdatesExceptColumnList)
}

// plainColumns holds a list to kept columns that are no keys.
func (r *reader) plainColumns(c *Contract, list string, names []string) {
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", list, i)
		if _, ok := r.column(c, at, name); !ok {
			continue
		}
		switch {
		case slices.Contains(c.Keys, name):
			r.addAt(at, fmt.Sprintf("%q is a key", name), "leave it out")
		case !c.keeps(name):
			r.addAt(at, fmt.Sprintf("targets do not have %q", name), "leave it out, or keep the column")
		}
	}
}

func (r *reader) checkLayout(c *Contract) {
	for i, name := range c.Layout.ZOrder {
		at := fmt.Sprintf("layout.zorder[%d]", i)
		if i > 0 {
			r.refuse(r.line(at), at, "several columns in zorder")
			return
		}
		col, ok := r.column(c, at, name)
		switch {
		case !ok:
		case !c.keeps(name):
			r.addAt(at, fmt.Sprintf("targets do not have %q", name), "")
		case holds(col.Type, value.MapKind, value.ArrayKind, value.StructKind, value.BinaryKind, value.Boolean):
			r.addAt(at, fmt.Sprintf("files cannot be ordered by a %s", col.Type), "a key is a good choice")
		}
	}
}
