// Package schemas is the contract language: what a dataset is, as users write it in YAML and as workers read it once published.
// It checks shape and names; it does not check SQL expressions, whose types only a database knows.
package schemas

import (
	"slices"
	"strings"

	"varve/internal/value"
)

// Contract is what one dataset is: its source, columns, keys, order and targets. Parse gives only valid ones.
type Contract struct {
	Dataset     string `json:"dataset"`
	Description string `json:"description,omitempty"`
	Source      Source `json:"source"`
	// Columns are the source's, in declared order.
	Columns []Column `json:"columns"`
	Keys    []string `json:"keys"`
	// SequenceBy is a column, struct(a, b, …) of several, or Arrival.
	SequenceBy     string `json:"sequence_by"`
	ApplyAsDeletes string `json:"apply_as_deletes,omitempty"`
	// ColumnList and ExceptColumnList choose the columns that targets have; at most one of them is set. Kept resolves them.
	ColumnList       []string `json:"column_list,omitempty"`
	ExceptColumnList []string `json:"except_column_list,omitempty"`
	// IgnoreNullUpdates and its two lists are alternatives. IgnoresNull resolves them.
	IgnoreNullUpdates                 bool     `json:"ignore_null_updates,omitempty"`
	IgnoreNullUpdatesColumnList       []string `json:"ignore_null_updates_column_list,omitempty"`
	IgnoreNullUpdatesExceptColumnList []string `json:"ignore_null_updates_except_column_list,omitempty"`
	// Absent says what a column means that a record does not mention. Default AbsentKeep.
	Absent  Absent   `json:"absent"`
	Targets []Target `json:"targets"`
	// MaxInvalidShare is the share of a batch's records that may go to quarantine before the day stops. Default 1: never.
	MaxInvalidShare float64  `json:"max_invalid_share"`
	Layout          Layout   `json:"layout"`
	Schedule        Schedule `json:"schedule"`

	// Warnings are what Parse found odd but not wrong. They are not published.
	Warnings []Problem `json:"-"`

	lines map[string]int
}

// Arrival is the sequence of a source that has none: the day, the file's path, the row.
const Arrival = "_arrival"

// DeletedColumn says, in a target with logical deletes, that a key is deleted.
const DeletedColumn = "is_deleted"

// Absent says what a column means that a record does not mention.
type Absent string

// What an absent column may mean.
const (
	// AbsentKeep lets it keep the value that is known.
	AbsentKeep Absent = "keep"
	// AbsentNull makes it null.
	AbsentNull Absent = "null"
	// AbsentRefuse sends the record to quarantine.
	AbsentRefuse Absent = "refuse"
)

// The formats and deliveries of a source.
const (
	FormatJSON = "json"
	FormatCSV  = "csv"
	// DeliveryChanges is a feed of changes, deletes among them.
	DeliveryChanges = "changes"
	// DeliveryIncremental is new and changed records, never a delete.
	DeliveryIncremental = "incremental"
)

// Source is where a dataset's records come from.
type Source struct {
	// Path is a pattern of files below the landing location; {day} stands for the logical day.
	Path string `json:"path"`
	// Format is FormatJSON (one object a line) or FormatCSV.
	Format string `json:"format"`
	// Delivery is DeliveryChanges or DeliveryIncremental. Default DeliveryChanges.
	Delivery string `json:"delivery"`
	// CSV is the dialect of CSV files, zero for other formats.
	CSV Dialect `json:"csv,omitzero"`
}

// Dialect says how CSV files are written.
type Dialect struct {
	// Delimiter stands between two fields. Default a comma.
	Delimiter string `json:"delimiter"`
	// Quote is the character around fields. Default a double quote.
	Quote string `json:"quote"`
	// Header says that the first record names the fields; without it they are the contract's columns, in order. Default true.
	Header bool `json:"header"`
	// NullText is an unquoted text that stands for null, beside the empty one. Default none.
	NullText string `json:"null_text,omitempty"`
}

// Column is one column of a source.
type Column struct {
	Name string
	Type value.Type
	// Required sends a record to quarantine in which the column is null.
	Required    bool
	Description string
}

// The ways in which a target shows a deleted key.
const (
	// DeletesPhysical takes the row away.
	DeletesPhysical = "physical"
	// DeletesLogical keeps it, with DeletedColumn true.
	DeletesLogical = "logical"
)

// Target is a table that a dataset maintains.
type Target struct {
	// Table is its name, layer.name.
	Table string `json:"table"`
	// SCDType is 1 or 2. Default 1.
	SCDType int `json:"stored_as_scd_type"`
	// MaxDeleteShare is the share of live rows that a commit may delete without asking. Default 0.1; 1 switches it off.
	MaxDeleteShare float64 `json:"max_delete_share"`
	// Deletes is DeletesPhysical or DeletesLogical. Default DeletesPhysical.
	Deletes string `json:"deletes"`
	// History is zero for SCD type 1.
	History History `json:"history,omitzero"`
	// TrackHistoryColumnList and TrackHistoryExceptColumnList choose the columns that open a version; at most one is set.
	// Contract.Tracked resolves them.
	TrackHistoryColumnList       []string `json:"track_history_column_list,omitempty"`
	TrackHistoryExceptColumnList []string `json:"track_history_except_column_list,omitempty"`
}

// History names the interval columns of an SCD type 2 target, and says where its bounds come from.
type History struct {
	// Start, End and Current name columns. Default __START_AT, __END_AT, is_current.
	Start   string `json:"start"`
	End     string `json:"end"`
	Current string `json:"current"`
	// By is a column or an SQL expression over the record and _day. Default the sequence (with Arrival: _day).
	By string `json:"by,omitempty"`
	// DeleteBy is the column of a delete record that is its bound. Default _day, where By is a date or timestamp.
	DeleteBy string `json:"delete_by,omitempty"`
	// MaxBehind and MaxAhead are how far a bound may lie from the day; 0 is no limit. Default 0, and with By a year ahead.
	MaxBehind Duration `json:"max_behind,omitempty"`
	MaxAhead  Duration `json:"max_ahead,omitempty"`
}

// Layout is how a target's files are kept.
type Layout struct {
	// ZOrder is the column that maintenance orders files by: one or none.
	ZOrder []string `json:"zorder,omitempty"`
	// DeletionVectors is auto or off. Default auto.
	DeletionVectors string `json:"deletion_vectors"`
	// TargetFileSize is in bytes; 0 leaves it to the table's size.
	TargetFileSize int64 `json:"target_file_size,omitempty"`
}

// The days that a scheduled start may mean.
const (
	// DayPrevious is the day before the date of the start's nominal time.
	DayPrevious = "previous"
	// DaySame is the date of the start's nominal time.
	DaySame = "same"
)

// Schedule is when a dataset's days are done. With an empty Cron a dataset has none.
type Schedule struct {
	// Cron has five fields: minute, hour, day of month, month, day of week; a time must match all of them.
	Cron string `json:"cron,omitempty"`
	// TimeZone is an IANA name. Default UTC.
	TimeZone string `json:"time_zone"`
	// Day is DayPrevious or DaySame. Default DayPrevious.
	Day string `json:"day"`
	// CatchUp is how old a missing day may be to be repaired. Default 7d.
	CatchUp Duration `json:"catch_up"`
}

// Line gives the line of a field of a parsed contract, as targets[0].table; 0 where it is not known.
func (c Contract) Line(field string) int { return c.lines[field] }

// Column gives the column of that name.
func (c Contract) Column(name string) (Column, bool) {
	for _, col := range c.Columns {
		if col.Name == name {
			return col, true
		}
	}
	return Column{}, false
}

// SourceSchema gives the source's columns, all nullable.
func (c Contract) SourceSchema() value.Schema {
	out := make(value.Schema, 0, len(c.Columns))
	for _, col := range c.Columns {
		out = append(out, col.field())
	}
	return out
}

// Kept gives the columns that targets have, keys among them, in declared order.
func (c Contract) Kept() []Column {
	out := make([]Column, 0, len(c.Columns))
	for _, col := range c.Columns {
		if c.keeps(col.Name) {
			out = append(out, col)
		}
	}
	return out
}

func (c Contract) keeps(name string) bool {
	if len(c.ColumnList) > 0 {
		return slices.Contains(c.ColumnList, name)
	}
	return !slices.Contains(c.ExceptColumnList, name)
}

// KeyColumns gives the key's columns, in the order of Keys.
func (c Contract) KeyColumns() []Column {
	out := make([]Column, 0, len(c.Keys))
	for _, k := range c.Keys {
		if col, ok := c.Column(k); ok {
			out = append(out, col)
		}
	}
	return out
}

// IsArrival says that the source has no sequence of its own.
func (c Contract) IsArrival() bool { return c.SequenceBy == Arrival }

// SequenceColumns gives the columns that SequenceBy names, none for Arrival.
func (c Contract) SequenceColumns() []string {
	if c.IsArrival() || c.SequenceBy == "" {
		return nil
	}
	inner, ok := cutStruct(c.SequenceBy)
	if !ok {
		return []string{c.SequenceBy}
	}
	names := strings.Split(inner, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// cutStruct gives what stands inside struct(…).
func cutStruct(text string) (string, bool) {
	const open = "struct("
	if len(text) <= len(open) || !strings.EqualFold(text[:len(open)], open) || !strings.HasSuffix(text, ")") {
		return "", false
	}
	return text[len(open) : len(text)-1], true
}

// SequenceType gives the type of the sequence: a column's, or a struct of its parts.
func (c Contract) SequenceType() value.Type {
	if c.IsArrival() {
		return value.Type{Kind: value.StructKind, Fields: []value.Field{
			{Name: "day", Type: value.Type{Kind: value.DateKind}},
			{Name: "flow", Type: value.Type{Kind: value.StringKind}},
			{Name: "path", Type: value.Type{Kind: value.StringKind}},
			{Name: "row", Type: value.Type{Kind: value.Long}},
		}}
	}
	names := c.SequenceColumns()
	_, several := cutStruct(c.SequenceBy)
	out := value.Type{Kind: value.StructKind}
	for _, name := range names {
		col, _ := c.Column(name)
		if !several {
			return col.Type
		}
		out.Fields = append(out.Fields, value.Field{Name: name, Type: col.Type, Nullable: true})
	}
	return out
}

// IgnoresNull says whether a null in the column leaves what is known.
func (c Contract) IgnoresNull(column string) bool {
	switch {
	case slices.Contains(c.Keys, column):
		return false
	case c.IgnoreNullUpdates:
		return true
	case len(c.IgnoreNullUpdatesColumnList) > 0:
		return slices.Contains(c.IgnoreNullUpdatesColumnList, column)
	case len(c.IgnoreNullUpdatesExceptColumnList) > 0:
		return !slices.Contains(c.IgnoreNullUpdatesExceptColumnList, column)
	}
	return false
}

// Tracked gives the columns whose change opens a version of a history, in declared order: those the target lists, by
// default every kept one that is not a key, not of the sequence and not read by history.by.
func (c Contract) Tracked(t Target) []string {
	if t.SCDType != 2 {
		return nil
	}
	never := slices.Concat(c.Keys, c.SequenceColumns())
	if len(t.TrackHistoryColumnList) == 0 && len(t.TrackHistoryExceptColumnList) == 0 {
		never = append(never, c.readBy(t.History.By)...)
	}
	var out []string
	for _, col := range c.Kept() {
		listed := len(t.TrackHistoryColumnList) == 0 || slices.Contains(t.TrackHistoryColumnList, col.Name)
		if listed && !slices.Contains(t.TrackHistoryExceptColumnList, col.Name) && !slices.Contains(never, col.Name) {
			out = append(out, col.Name)
		}
	}
	return out
}

// TargetSchema gives the columns of a target's table: the kept ones, keys not nullable, then is_deleted for logical
// deletes, or the interval columns of a history, whose bounds have the given type.
func (c Contract) TargetSchema(t Target, boundType value.Type) value.Schema {
	var out value.Schema
	for _, col := range c.Kept() {
		f := col.field()
		f.Nullable = !slices.Contains(c.Keys, col.Name)
		out = append(out, f)
	}
	boolean := value.Type{Kind: value.Boolean}
	if t.Logical() {
		out = append(out, value.Field{Name: DeletedColumn, Type: boolean, Nullable: true})
	}
	if t.SCDType == 2 {
		out = append(out,
			value.Field{Name: t.History.Start, Type: boundType, Nullable: true},
			value.Field{Name: t.History.End, Type: boundType, Nullable: true},
			value.Field{Name: t.History.Current, Type: boolean, Nullable: true})
	}
	return out
}

// Logical says that the target keeps the rows of deleted keys.
func (t Target) Logical() bool { return t.SCDType == 1 && t.Deletes == DeletesLogical }

// added names the columns that the target has beside the kept ones, each with the field that names it.
func (t Target) added() []namedColumn {
	if t.SCDType == 2 {
		return []namedColumn{{"history.start", t.History.Start}, {"history.end", t.History.End}, {"history.current", t.History.Current}}
	}
	if t.Logical() {
		return []namedColumn{{"deletes", DeletedColumn}}
	}
	return nil
}

type namedColumn struct{ field, name string }

func (col Column) field() value.Field {
	f := value.Field{Name: col.Name, Type: col.Type, Nullable: true}
	if col.Description != "" {
		f.Metadata = map[string]any{"comment": col.Description}
	}
	return f
}
