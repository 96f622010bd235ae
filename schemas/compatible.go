package schemas

import (
	"fmt"
	"slices"

	"varve/internal/value"
)

const wayOut = "restating a table comes with a later version; until then give the target a new name, or keep the field as it was"

// Compatible says whether the tables that before made can go on under after. The error is a *Problems with all reasons
// why not. New columns, wider types, new targets and targets left out are fine.
func Compatible(before, after Contract) error {
	c := comparison{before: before, after: after}
	if before.Dataset != after.Dataset {
		c.refuse("dataset", fmt.Sprintf("%q cannot follow %q", after.Dataset, before.Dataset), "a dataset has contracts of its own")
	}
	shared := false
	for i, t := range after.Targets {
		for _, old := range before.Targets {
			if old.Table == t.Table {
				shared = true
				c.target(fmt.Sprintf("targets[%d]", i), old, t)
			}
		}
	}
	if shared {
		c.keys()
		c.sequence()
		c.columns()
	}
	if len(c.problems) == 0 {
		return nil
	}
	return &Problems{List: sorted(c.problems)}
}

type comparison struct {
	before, after Contract
	problems      []Problem
}

func (c *comparison) refuse(field, message, hint string) {
	c.problems = append(c.problems, Problem{Line: c.after.Line(field), Field: field, Message: message, Hint: hint})
}

func (c *comparison) keys() {
	if !slices.Equal(c.before.Keys, c.after.Keys) {
		c.refuse("keys", fmt.Sprintf("were %s: rows are known by them", list(c.before.Keys)), wayOut)
		return
	}
	for i, old := range c.before.KeyColumns() {
		if col := c.after.KeyColumns()[i]; !col.Type.Equal(old.Type) {
			c.refuse("columns."+col.Name, fmt.Sprintf("the key's type was %s and cannot become %s", old.Type, col.Type), wayOut)
		}
	}
}

func (c *comparison) sequence() {
	from, to := c.before.SequenceType(), c.after.SequenceType()
	if !from.Equal(to) {
		c.refuse("sequence_by", fmt.Sprintf("the sequence's type was %s and cannot become %s", from, to), wayOut)
	}
}

func (c *comparison) columns() {
	for _, old := range c.before.Kept() {
		col, there := c.after.Column(old.Name)
		switch {
		case slices.Contains(c.before.Keys, old.Name): // compared with the keys
		case !there:
			c.refuse("columns", fmt.Sprintf("the column %q is gone, and tables have it", old.Name), wayOut)
		case !c.after.keeps(old.Name):
			c.refuse("columns."+old.Name, "is not kept any more, and tables have it", wayOut)
		case !value.Widens(old.Type, col.Type):
			c.refuse("columns."+old.Name, fmt.Sprintf("the type %s does not hold every %s", col.Type, old.Type), wayOut)
		}
	}
}

func (c *comparison) target(at string, old, t Target) {
	if old.SCDType != t.SCDType {
		c.refuse(at+".stored_as_scd_type", fmt.Sprintf("%s was made as type %d", t.Table, old.SCDType), wayOut)
		return
	}
	if old.Deletes != t.Deletes {
		c.refuse(at+".deletes", fmt.Sprintf("%s was made with deletes: %s", t.Table, old.Deletes), wayOut)
	}
	if t.SCDType != 2 {
		return
	}
	for _, f := range []struct{ name, from, to string }{
		{"start", old.History.Start, t.History.Start},
		{"end", old.History.End, t.History.End},
		{"current", old.History.Current, t.History.Current},
		{"by", old.History.By, t.History.By},
	} {
		if f.from != f.to {
			c.refuse(at+".history."+f.name, fmt.Sprintf("%s was made with %q", t.Table, f.from), wayOut)
		}
	}
	// A column that only one of the contracts has says nothing of what is tracked: its rows begin with it.
	both := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			_, was := c.before.Column(name)
			_, is := c.after.Column(name)
			return !was || !is || !c.before.keeps(name) || !c.after.keeps(name)
		})
	}
	from, to := both(c.before.Tracked(old)), both(c.after.Tracked(t))
	slices.Sort(from)
	slices.Sort(to)
	if !slices.Equal(from, to) {
		c.refuse(at, fmt.Sprintf("the columns whose change opens a version were %s and cannot become %s", list(from), list(to)), wayOut)
	}
}
