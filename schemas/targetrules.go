package schemas

import (
	"fmt"
	"slices"
	"strings"
)

func (r *reader) checkTargets(c *Contract) {
	if c.Targets != nil && len(c.Targets) == 0 {
		r.addAt("targets", "has no target", "as targets: [{table: silver.customer}]")
	}
	seen := map[string]string{}
	for i, t := range c.Targets {
		at := fmt.Sprintf("targets[%d]", i)
		r.checkTable(at, t.Table)
		if first, twice := seen[strings.ToLower(t.Table)]; twice && t.Table != "" {
			r.addAt(at+".table", fmt.Sprintf("%q is a target already, as %s", t.Table, first), "each target is a table of its own")
		}
		seen[strings.ToLower(t.Table)] = at
		switch t.SCDType {
		case 1:
			r.checkCurrent(at)
		case 2:
			r.checkHistory(c, at, t)
		}
		r.checkAdded(c, at, t)
	}
}

func (r *reader) checkTable(at, table string) {
	switch {
	case table == "": // an error was told when it was read
	case !IsTableName(table):
		r.addAt(at+".table", fmt.Sprintf("%q is not a table's name", table), "layer.name, as silver.customer: letters, digits and _ around one dot")
	case IsReservedTable(table):
		layer, _, _ := strings.Cut(table, ".")
		r.addAt(at+".table", fmt.Sprintf("the layer %q is varve's own", layer), "use silver, gold or a layer of your own")
	}
}

// checkCurrent holds an SCD type 1 target free of what only histories have.
func (r *reader) checkCurrent(at string) {
	for _, name := range []string{"history", "track_history_column_list", "track_history_except_column_list"} {
		if r.has(at + "." + name) {
			r.addAt(at+"."+name, "is for histories, and this target keeps the current state", "add stored_as_scd_type: 2, or leave it out")
		}
	}
}

func (r *reader) checkHistory(c *Contract, at string, t Target) {
	if t.Deletes == DeletesLogical {
		r.addAt(at+".deletes", "a history keeps the rows of deleted keys in any case", "leave it out; logical is for stored_as_scd_type: 1")
	}
	h := at + ".history"
	if t.History.By == "" {
		for _, name := range []string{"delete_by", "max_behind", "max_ahead"} {
			if r.has(h + "." + name) {
				r.addAt(h+"."+name, "is of no use without by", "add by, or leave it out")
			}
		}
	}
	if t.History.DeleteBy != "" {
		r.column(c, h+".delete_by", t.History.DeleteBy)
	}
	const on, except = ".track_history_column_list", ".track_history_except_column_list"
	if r.has(at+on) && r.has(at+except) {
		r.addAt(at+except, "track_history_column_list is given too", "keep one of them")
	}
	if t.TrackHistoryColumnList != nil && len(t.TrackHistoryColumnList) == 0 {
		r.addAt(at+on, "names no column", "leave it out to track every column")
	}
	r.plainColumns(c, at+on, t.TrackHistoryColumnList)
	r.plainColumns(c, at+except, t.TrackHistoryExceptColumnList)
	for i, name := range t.TrackHistoryColumnList {
		if slices.Contains(c.SequenceColumns(), name) {
			r.addAt(fmt.Sprintf("%s%s[%d]", at, on, i), fmt.Sprintf("%q is the sequence, whose change alone is never a version", name), "leave it out")
		}
	}
}

// checkAdded holds the names that a target adds against its columns and each other.
func (r *reader) checkAdded(c *Contract, at string, t Target) {
	taken := map[string]string{}
	for _, col := range c.Kept() {
		taken[strings.ToLower(col.Name)] = fmt.Sprintf("the column %q", col.Name)
	}
	for _, added := range t.added() {
		field := at + "." + added.field
		if fault := columnNameFault(added.name); fault != "" {
			r.addAt(field, fmt.Sprintf("%q is not a column's name: %s", added.name, fault), "")
			continue
		}
		if strings.HasPrefix(strings.ToLower(added.name), "_varve") {
			r.addAt(field, fmt.Sprintf("%q is a name that varve uses itself", added.name), "")
			continue
		}
		if by, clash := taken[strings.ToLower(added.name)]; clash {
			hint := "choose another name, or put the column in except_column_list"
			if added.name == DeletedColumn && t.Logical() {
				hint = "put the column in except_column_list"
			}
			r.addAt(field, fmt.Sprintf("%q is the name of %s too", added.name, by), hint)
			continue
		}
		taken[strings.ToLower(added.name)] = added.field
	}
}
