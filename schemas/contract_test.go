package schemas_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"varve/internal/value"
	"varve/schemas"
)

// parse gives the contract that edits make of base.
func parse(t *testing.T, edits string) schemas.Contract {
	t.Helper()
	c, err := schemas.Parse([]byte(change(base, edits)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func names(columns []schemas.Column) string {
	out := make([]string, 0, len(columns))
	for _, c := range columns {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

// ddl gives a schema as text, with ! behind what may not be null.
func ddl(s value.Schema) string {
	out := make([]string, 0, len(s))
	for _, f := range s {
		text := f.Name + " " + f.Type.String()
		if !f.Nullable {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestUnsetFieldsHaveTheirDefaults(t *testing.T) {
	t.Parallel()
	c := parse(t, "")
	got := fmt.Sprintf("%s %s %v %v %v\n%v", c.Source.Delivery, c.Absent, c.MaxInvalidShare, c.Layout, c.Schedule, c.Targets)
	want := "changes keep 1 {[] auto 0} { UTC previous 1w}\n[" +
		"{silver.customer_current 1 0.1 physical {     0s 0s} [] []} " +
		"{silver.customer_history 2 0.1 physical {__START_AT __END_AT is_current   0s 0s} [] []}]"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKeptColumnsStandInDeclaredOrder(t *testing.T) {
	t.Parallel()
	c := parse(t, "drop except_column_list\ncolumn_list: [city, customer_id]\n")
	if got := names(c.Kept()); got != "customer_id city" {
		t.Errorf("column_list keeps %q", got)
	}
	if got := names(parse(t, "").Kept()); got != "customer_id customer_name city address tags" {
		t.Errorf("except_column_list keeps %q", got)
	}
}

func TestTargetSchemaIsTheKeptColumnsAndWhatTheTargetAdds(t *testing.T) {
	t.Parallel()
	c := parse(t, `except_column_list: [operation, effective_date, tags, address]
targets:
  - {table: silver.a}
  - {table: silver.b, deletes: logical}
  - {table: silver.c, stored_as_scd_type: 2, history: {start: effective_date, end: ended, current: now, by: effective_date}}
`)
	want := []string{
		"customer_id string!, customer_name string, city string, sequence_num bigint",
		"customer_id string!, customer_name string, city string, sequence_num bigint, is_deleted boolean",
		"customer_id string!, customer_name string, city string, sequence_num bigint, effective_date date, ended date, now boolean",
	}
	for i, target := range c.Targets {
		if got := ddl(c.TargetSchema(target, value.Type{Kind: value.DateKind})); got != want[i] {
			t.Errorf("%s:\n got %s\nwant %s", target.Table, got, want[i])
		}
	}
}

func TestTrackedByDefaultIsWhatIsNoKeyNoSequenceAndNotReadByBy(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]string{
		"":                                     "customer_name city address effective_date",
		"coalesce(effective_date, _day)":       "customer_name city address",
		`"Effective_Date"`:                     "customer_name city address",
		"'city' || effective_date -- city":     "customer_name city address",
		"address.zip":                          "customer_name city effective_date",
		"city(1e5) + /* customer_name */ _day": "customer_name city address effective_date",
	} {
		edits := "except_column_list: [operation, tags]\ntargets:\n  - {table: silver.a, stored_as_scd_type: 2}\n"
		if by != "" {
			edits = strings.Replace(edits, "2}", fmt.Sprintf("2, history: {by: %q}}", by), 1)
		}
		c := parse(t, edits)
		if got := strings.Join(c.Tracked(c.Targets[0]), " "); got != want {
			t.Errorf("by %q tracks %q, want %q", by, got, want)
		}
	}
}

func TestTrackedIsWhatIsListed(t *testing.T) {
	t.Parallel()
	c := parse(t, `targets:
  - {table: silver.a, stored_as_scd_type: 2, track_history_column_list: [city, customer_name]}
  - {table: silver.b, stored_as_scd_type: 2, track_history_except_column_list: [city, tags]}
  - {table: silver.c}
`)
	for i, want := range []string{"customer_name city", "customer_name address", ""} {
		if got := strings.Join(c.Tracked(c.Targets[i]), " "); got != want {
			t.Errorf("%s tracks %q, want %q", c.Targets[i].Table, got, want)
		}
	}
}

func TestSequenceTypeIsThatOfItsColumns(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]string{
		"sequence_num":                           "bigint",
		"[sequence_num]":                         "bigint",
		"[effective_date, sequence_num]":         "struct<effective_date:date,sequence_num:bigint>",
		"struct( effective_date , sequence_num)": "struct<effective_date:date,sequence_num:bigint>",
		"_arrival":                               "struct<day:date,flow:string,path:string,row:bigint>",
	} {
		c := parse(t, "sequence_by: "+by+"\n")
		if got := c.SequenceType().String(); got != want {
			t.Errorf("%s is %s, want %s", by, got, want)
		}
		if c.IsArrival() != (by == "_arrival") {
			t.Errorf("%s: IsArrival is %v", by, c.IsArrival())
		}
	}
	if got := parse(t, "sequence_by: [effective_date, sequence_num]\n").SequenceColumns(); !slices.Equal(got, []string{"effective_date", "sequence_num"}) {
		t.Errorf("columns are %q", got)
	}
}

func TestIgnoreNullHasThreeForms(t *testing.T) {
	t.Parallel()
	for edit, want := range map[string]string{
		"":                           "",
		"ignore_null_updates: false": "",
		"ignore_null_updates: true":  "customer_name city address tags",
		"ignore_null_updates_column_list: [city]":        "city",
		"ignore_null_updates_except_column_list: [city]": "customer_name address tags",
		"ignore_null_updates_except_column_list: []":     "customer_name city address tags",
	} {
		c := parse(t, edit+"\n")
		var got []string
		for _, col := range c.Kept() {
			if c.IgnoresNull(col.Name) {
				got = append(got, col.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q ignores null in %q, want %q", edit, got, want)
		}
	}
}

func TestLineGivesWhereAFieldStands(t *testing.T) {
	t.Parallel()
	c := parse(t, "targets:\n  - {table: silver.a}\n  - table: silver.b\n    stored_as_scd_type: 2\n    history: {by: effective_date}\n")
	for field, want := range map[string]int{"dataset": 1, "columns.city": 6, "targets[1].history.by": 20, "layout": 0} {
		if got := c.Line(field); got != want {
			t.Errorf("%s is on line %d, want %d", field, got, want)
		}
	}
}

func TestBoundsByAColumnAreAtMostAYearAheadByDefault(t *testing.T) {
	t.Parallel()
	c := parse(t, "targets:\n  - {table: silver.a, stored_as_scd_type: 2, history: {by: effective_date}}\n"+
		"  - {table: silver.b, stored_as_scd_type: 2, history: {by: effective_date, max_ahead: 2w, max_behind: 30y, delete_by: effective_date}}\n")
	if got := fmt.Sprint(c.Targets[0].History.MaxAhead, c.Targets[0].History.MaxBehind, c.Targets[1].History.MaxAhead, c.Targets[1].History.MaxBehind); got != "1y 0s 2w 30y" {
		t.Errorf("limits are %s", got)
	}
}

func TestDurationsAreReadAndWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"15m": 15 * time.Minute, "7d": 168 * time.Hour, "1y": 8760 * time.Hour, "2w": 336 * time.Hour, "36h": 36 * time.Hour, "5s": 5 * time.Second, "292y": 292 * 8760 * time.Hour,
	} {
		d, err := schemas.ParseDuration(text)
		if err != nil || d.Std() != want {
			t.Errorf("%s is %s, %v", text, d.Std(), err)
		}
		again, err := schemas.ParseDuration(d.String())
		if err != nil || again != d {
			t.Errorf("%s is written %s, which is %s, %v", text, d, again, err)
		}
	}
	for _, text := range []string{"", "7", "d", "-1d", "+1d", "1.5h", "7 d", "293y", "99999999999999999999s", "1mo"} {
		if d, err := schemas.ParseDuration(text); err == nil {
			t.Errorf("%q is %s", text, d)
		}
	}
}

func TestTableNamesHaveALayer(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"silver.customer": true, "bronze.x": true, "my_layer.T9": true,
		"customer": false, "a.b.c": false, "silver.": false, ".x": false, "silver/customer": false, "_varve.x": false, "silver.x y": false, "../a.b": false,
	} {
		if got := schemas.IsTableName(name); got != want {
			t.Errorf("IsTableName(%q) is %v", name, got)
		}
	}
	if !schemas.IsReservedTable("Bronze.x") || schemas.IsReservedTable("silver.bronze") {
		t.Error("reserved layers are told wrong")
	}
}

func TestProjectOfAWarehouseInS3MayHaveACache(t *testing.T) {
	t.Parallel()
	p, err := schemas.ParseProject([]byte("warehouse: {s3: bkt}\nlanding: in\nlimits: {cache: 20GiB}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(20 << 30); p.Limits.CacheBytes != want {
		t.Errorf("got %d, want %d", p.Limits.CacheBytes, want)
	}
}

func TestProjectHasDefaults(t *testing.T) {
	t.Parallel()
	p, err := schemas.ParseProject([]byte("warehouse: w\nlanding: {s3: bkt/in, region: eu-central-1}\nlimits: {memory: 3GiB}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := schemas.Project{
		Warehouse: schemas.Location{Path: "w"}, Landing: schemas.Location{S3: "bkt/in", Region: "eu-central-1"},
		Temporal: schemas.Temporal{TaskQueue: "varve"}, Limits: schemas.Limits{MemoryMiB: 3072},
	}
	if p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}
