package schemas

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"varve/internal/value"
	"varve/schemas/spelling"
)

// Parse reads a contract in YAML. The error is a *Problems with all that is wrong, by line. What is odd and not wrong is in
// the contract's Warnings.
func Parse(src []byte) (Contract, error) {
	r := &reader{lines: map[string]int{}, later: later, home: home}
	c := defaults()
	if root := r.document(src); root != nil {
		r.mapping(root, "", r.contract(&c))
		if root.Kind == yaml.MappingNode {
			r.check(&c)
		}
	}
	var wrong []Problem
	for _, p := range sorted(r.problems) {
		if p.Warning {
			c.Warnings = append(c.Warnings, p)
		} else {
			wrong = append(wrong, p)
		}
	}
	if len(wrong) > 0 {
		return Contract{}, &Problems{List: wrong}
	}
	c.lines = r.lines
	return settled(c), nil
}

func defaults() Contract {
	return Contract{
		Source:          Source{Delivery: DeliveryChanges},
		Absent:          AbsentKeep,
		MaxInvalidShare: 1,
		Layout:          Layout{DeletionVectors: "auto"},
		Schedule:        Schedule{TimeZone: "UTC", Day: DayPrevious, CatchUp: Duration(week)},
	}
}

// settled gives equal contracts one form, so that they have one hash.
func settled(c Contract) Contract {
	if len(c.ExceptColumnList) == 0 {
		c.ExceptColumnList = nil
	}
	if l := c.IgnoreNullUpdatesExceptColumnList; l != nil && len(l) == 0 {
		c.IgnoreNullUpdates, c.IgnoreNullUpdatesExceptColumnList = true, nil
	}
	for i := range c.Targets {
		if len(c.Targets[i].TrackHistoryExceptColumnList) == 0 {
			c.Targets[i].TrackHistoryExceptColumnList = nil
		}
	}
	if len(c.Layout.ZOrder) == 0 {
		c.Layout.ZOrder = nil
	}
	return c
}

func (r *reader) contract(c *Contract) []field {
	return []field{
		{"dataset", r.text(&c.Dataset)},
		{"description", r.text(&c.Description)},
		{"source", func(n *yaml.Node, path string) {
			if r.mapping(n, path, r.source(&c.Source)) {
				r.require("source.path", `as path: "customer/{day}/*.json"`)
				r.require("source.format", "json or csv")
			}
		}},
		{"columns", r.columns(&c.Columns)},
		{"keys", r.names(&c.Keys)},
		{"sequence_by", r.sequence(&c.SequenceBy)},
		{"apply_as_deletes", r.text(&c.ApplyAsDeletes)},
		{"column_list", r.names(&c.ColumnList)},
		{"except_column_list", r.names(&c.ExceptColumnList)},
		{"ignore_null_updates", r.boolean(&c.IgnoreNullUpdates)},
		{"ignore_null_updates_column_list", r.names(&c.IgnoreNullUpdatesColumnList)},
		{"ignore_null_updates_except_column_list", r.names(&c.IgnoreNullUpdatesExceptColumnList)},
		{"absent", func(n *yaml.Node, path string) {
			s := string(c.Absent)
			if isNull(n) && n.Value == "null" {
				s = "null" // the word that YAML takes for its own
			} else {
				r.oneOf(&s, "keep", "null", "refuse")(n, path)
			}
			c.Absent = Absent(s)
		}},
		{"targets", r.targets(&c.Targets)},
		{"max_invalid_share", r.share(&c.MaxInvalidShare)},
		{"quality", func(n *yaml.Node, path string) { r.mapping(n, path, nil) }},
		{"layout", func(n *yaml.Node, path string) {
			r.mapping(n, path, []field{
				{"zorder", r.names(&c.Layout.ZOrder)},
				{"deletion_vectors", r.oneOf(&c.Layout.DeletionVectors, "auto", "off")},
				{"target_file_size", r.size(&c.Layout.TargetFileSize)},
			})
		}},
		{"schedule", func(n *yaml.Node, path string) {
			ok := r.mapping(n, path, []field{
				{"cron", r.text(&c.Schedule.Cron)},
				{"time_zone", r.text(&c.Schedule.TimeZone)},
				{"day", r.oneOf(&c.Schedule.Day, DayPrevious, DaySame)},
				{"catch_up", r.duration(&c.Schedule.CatchUp)},
			})
			if ok && !r.has("schedule.every") {
				r.require("schedule.cron", `as cron: "30 3 * * *", every day at 3:30`)
			}
		}},
	}
}

func (r *reader) source(s *Source) []field {
	return []field{
		{"path", r.text(&s.Path)},
		{"format", r.oneOf(&s.Format, FormatJSON, FormatCSV)},
		{"delivery", r.oneOf(&s.Delivery, DeliveryChanges, DeliveryIncremental)},
		{"csv", func(n *yaml.Node, path string) {
			s.CSV = defaultDialect()
			r.mapping(n, path, []field{
				{"delimiter", r.letter(&s.CSV.Delimiter)},
				{"quote", r.letter(&s.CSV.Quote)},
				{"header", r.boolean(&s.CSV.Header)},
				{"null_text", r.literal(&s.CSV.NullText)},
			})
		}},
	}
}

// literal reads a scalar as it is written, whatever YAML takes it for: NULL, -999.
func (r *reader) literal(to *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode || n.Value == "" {
			r.text(to)(n, path)
			return
		}
		*to = n.Value
	}
}

func defaultDialect() Dialect { return Dialect{Delimiter: ",", Quote: `"`, Header: true} }

// letter reads one character of the ASCII kind.
func (r *reader) letter(to *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		s, ok := r.plain(n, path, true)
		switch {
		case !ok:
		case len(s) != 1 || s[0] >= 0x80 || s == "\n" || s == "\r":
			hint := ""
			if s == `\t` {
				hint = `write "\t" in double quotes`
			}
			r.add(n.Line, path, "must be one ASCII character that is not a line end", hint)
		default:
			*to = s
		}
	}
}

// sequence reads a column, a list of columns, struct(a, b), or _arrival.
func (r *reader) sequence(to *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.SequenceNode {
			s, ok := r.plain(n, path, false)
			if !ok {
				return
			}
			*to = strings.TrimSpace(s)
			if inner, several := cutStruct(*to); several {
				names := strings.Split(inner, ",")
				for i := range names {
					names[i] = strings.TrimSpace(names[i])
				}
				*to = structOf(names)
			}
			return
		}
		var names []string
		r.names(&names)(n, path)
		switch len(names) {
		case 0:
			r.add(n.Line, path, "names no column", "a column, a list of columns, or "+Arrival)
		case 1:
			*to = names[0]
		default:
			*to = structOf(names)
		}
	}
}

func structOf(names []string) string { return "struct(" + strings.Join(names, ", ") + ")" }

func (r *reader) columns(to *[]Column) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if !r.is(n, yaml.MappingNode, path, "a mapping of column names to their types") {
			return
		}
		out := []Column{}
		r.pairs(n, path, func(name string, key, v *yaml.Node, at string) {
			if key.ShortTag() != "!!str" {
				r.add(key.Line, at, "a column's name must be text, is "+kindName(key), fmt.Sprintf("put it in quotes: %q", name))
			}
			col := Column{Name: name}
			if v.Kind == yaml.ScalarNode {
				r.columnType(&col.Type)(v, at)
			} else if r.mapping(v, at, []field{
				{"type", r.columnType(&col.Type)},
				{"required", r.boolean(&col.Required)},
				{"description", r.text(&col.Description)},
			}) {
				r.require(at+".type", "as "+name+": {type: string}")
			}
			out = append(out, col)
		})
		*to = out
	}
}

func (r *reader) columnType(to *value.Type) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		text, ok := r.plain(n, path, false)
		if !ok {
			return
		}
		t, err := value.ParseType(text)
		if err != nil {
			message, hint := fmt.Sprintf("%q is not a type", text), typeHint(text)
			if bad, ok := errors.AsType[*value.TypeError](err); ok && hint == "" {
				message += ": " + bad.Reason
			}
			r.add(n.Line, path, message, hint)
			return
		}
		if holds(t, value.Void, value.VariantKind) {
			r.add(n.Line, path, fmt.Sprintf("a column cannot have the type %s", t), "")
			return
		}
		*to = t
	}
}

const quotedType = `put a type with commas in quotes: type: "decimal(10,2)"`

// typeHint names the type that a word most likely means, "" where none is near.
func typeHint(text string) string {
	if strings.Count(text, "(") != strings.Count(text, ")") || strings.Count(text, "<") != strings.Count(text, ">") {
		return quotedType
	}
	switch strings.ToLower(text) {
	case "text", "varchar", "char", "str", "uuid":
		return `did you mean "string"?`
	case "int8", "int64", "integer64":
		return `did you mean "bigint"?`
	case "number", "numeric", "money":
		return `did you mean "decimal(18,2)"?`
	case "datetime", "timestamptz":
		return `did you mean "timestamp"?`
	case "bool":
		return `did you mean "boolean"?`
	case "float64":
		return `did you mean "double"?`
	}
	words := []string{"string", "bigint", "int", "smallint", "tinyint", "float", "double", "boolean", "binary", "date", "timestamp", "timestamp_ntz"}
	if near := spelling.Nearest(text, words); near != "" && !strings.ContainsAny(text, "(<") {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// holds says whether a type is, or has inside, one of the kinds.
func holds(t value.Type, kinds ...value.Kind) bool {
	if slices.Contains(kinds, t.Kind) {
		return true
	}
	for _, f := range t.Fields {
		if holds(f.Type, kinds...) {
			return true
		}
	}
	return t.Key != nil && holds(*t.Key, kinds...) || t.Elem != nil && holds(*t.Elem, kinds...)
}

func (r *reader) targets(to *[]Target) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if !r.is(n, yaml.SequenceNode, path, "a list of targets") {
			return
		}
		*to = []Target{}
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			r.lines[at] = item.Line
			t := Target{SCDType: 1, MaxDeleteShare: 0.1, Deletes: DeletesPhysical}
			if r.mapping(item, at, r.target(&t)) {
				r.require(at+".table", "as table: silver.customer")
			}
			if t.SCDType == 2 {
				t.History = t.History.withDefaults()
			}
			*to = append(*to, t)
		}
	}
}

func (h History) withDefaults() History {
	for _, d := range []struct {
		name *string
		word string
	}{{&h.Start, "__START_AT"}, {&h.End, "__END_AT"}, {&h.Current, "is_current"}} {
		if *d.name == "" {
			*d.name = d.word
		}
	}
	if h.By != "" && h.MaxAhead == 0 {
		h.MaxAhead = Duration(year)
	}
	return h
}

func (r *reader) target(t *Target) []field {
	return []field{
		{"table", r.text(&t.Table)},
		{"stored_as_scd_type", r.scdType(&t.SCDType)},
		{"max_delete_share", r.share(&t.MaxDeleteShare)},
		{"deletes", r.oneOf(&t.Deletes, DeletesPhysical, DeletesLogical)},
		{"history", func(n *yaml.Node, path string) {
			r.mapping(n, path, []field{
				{"start", r.text(&t.History.Start)},
				{"end", r.text(&t.History.End)},
				{"current", r.text(&t.History.Current)},
				{"by", r.text(&t.History.By)},
				{"delete_by", r.text(&t.History.DeleteBy)},
				{"max_behind", r.duration(&t.History.MaxBehind)},
				{"max_ahead", r.duration(&t.History.MaxAhead)},
			})
		}},
		{"track_history_column_list", r.names(&t.TrackHistoryColumnList)},
		{"track_history_except_column_list", r.names(&t.TrackHistoryExceptColumnList)},
	}
}

func (r *reader) scdType(to *int) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		switch {
		case n.Kind == yaml.ScalarNode && strings.EqualFold(n.Value, "BITEMPORAL"):
			r.refuse(n.Line, path, "stored_as_scd_type: BITEMPORAL")
		case n.Kind == yaml.ScalarNode && (n.Value == "1" || n.Value == "2"):
			*to = int(n.Value[0] - '0')
		default:
			r.add(n.Line, path, "must be 1 or 2", "1 keeps the current state, 2 the history")
		}
	}
}

// refuse adds the problem of what the table of later features names.
func (r *reader) refuse(line int, path, name string) {
	way, _ := r.later(name)
	r.add(line, path, fmt.Sprintf("%q comes with a later version", name), way)
}
