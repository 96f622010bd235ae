package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"varve/internal/value"
)

// columnSample is what the values of one column, or of a part of it, have in common.
type columnSample struct {
	records, nulls int64
	distinct       map[string]int64
	// can are the kinds that every value so far is one of.
	can map[value.Kind]bool
	// whole and scale are the most digits before and after the point.
	whole, scale int
	zoned        bool // some timestamp names its offset
	// scalars, objects and arrays count the shapes of JSON values.
	scalars, objects, arrays int64
	fields                   []string
	members                  map[string]*columnSample
	elems                    *columnSample
	// steps and rises count the values that can be ordered and those not below the one before.
	steps, rises int64
	last         value.Value
}

// maxDistinct bounds the values that are remembered of a column.
const maxDistinct = sampleRecords

func newColumnSample() *columnSample {
	return &columnSample{
		distinct: map[string]int64{}, members: map[string]*columnSample{},
		can: map[value.Kind]bool{
			value.Boolean: true, value.Long: true, value.DecimalKind: true, value.Double: true, value.DateKind: true, value.TimestampKind: true,
		},
	}
}

// addCell takes the value of a CSV record.
func (c *columnSample) addCell(cell Cell, row map[string]string, name string) {
	c.records++
	if cell.Text == "" {
		c.nulls++
		return
	}
	row[name] = cell.Text
	c.scalar(cell.Text)
}

// addJSON takes the value of a JSON record.
func (c *columnSample) addJSON(raw json.RawMessage, row map[string]string, name string) {
	c.records++
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		c.nulls++
		return
	}
	var text string
	switch raw[0] {
	case '{':
		c.objects++
		c.object(raw)
		text = string(raw)
	case '[':
		c.arrays++
		c.array(raw)
		text = string(raw)
	case '"':
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		c.only(value.DateKind, value.TimestampKind)
		c.scalar(text)
	case 't', 'f':
		text = string(raw)
		c.only(value.Boolean)
		c.scalar(text)
	default:
		text = string(raw)
		c.only(value.Long, value.DecimalKind, value.Double)
		c.scalar(text)
	}
	if row != nil {
		row[name] = text
	}
}

func (c *columnSample) object(raw json.RawMessage) {
	members, err := value.Members(raw)
	if err != nil {
		return
	}
	for _, name := range memberOrder(raw, members) {
		m, ok := c.members[name]
		if !ok {
			m = newColumnSample()
			c.members[name] = m
			c.fields = append(c.fields, name)
		}
		m.addJSON(members[name], nil, "")
	}
}

func (c *columnSample) array(raw json.RawMessage) {
	var elems []json.RawMessage
	if json.Unmarshal(raw, &elems) != nil {
		return
	}
	if c.elems == nil {
		c.elems = newColumnSample()
	}
	for _, elem := range elems {
		c.elems.addJSON(elem, nil, "")
	}
}

// memberOrder gives the names of an object's members as they first come in its text.
func memberOrder(raw []byte, members map[string]json.RawMessage) []string {
	names := make([]string, 0, len(members))
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return slices.Sorted(maps.Keys(members))
	}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		var skipped json.RawMessage
		if err != nil || !ok || d.Decode(&skipped) != nil {
			return slices.Sorted(maps.Keys(members))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// only takes away every kind but those.
func (c *columnSample) only(kinds ...value.Kind) {
	for k := range c.can {
		if !slices.Contains(kinds, k) {
			delete(c.can, k)
		}
	}
}

// scalar takes one value that is neither null nor nested.
func (c *columnSample) scalar(text string) {
	c.scalars++
	if _, known := c.distinct[text]; known || len(c.distinct) < maxDistinct {
		c.distinct[text]++
	}
	for k := range c.can {
		if !c.fits(k, text) {
			delete(c.can, k)
		}
	}
	c.step(text)
}

// fits says whether a text is of a kind without loss: 007 is no number, for its zeros would go.
func (c *columnSample) fits(k value.Kind, text string) bool {
	switch k {
	case value.Boolean:
		return text == "true" || text == "false"
	case value.Long:
		n, err := strconv.ParseInt(text, 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == text
	case value.DecimalKind:
		return c.decimal(text)
	case value.Double:
		_, err := value.Parse(value.Type{Kind: k}, text)
		return err == nil && !padded(text)
	case value.TimestampKind:
		_, local := value.Parse(value.Type{Kind: value.TimestampNTZ}, text)
		c.zoned = c.zoned || local != nil
	default:
	}
	_, err := value.Parse(value.Type{Kind: k}, text)
	return err == nil
}

// padded says whether a number has zeros or signs in front that a number would lose.
func padded(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return strings.HasPrefix(text, "+") || len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9'
}

func (c *columnSample) decimal(text string) bool {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if padded(text) || whole == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return false
	}
	c.whole, c.scale = max(c.whole, len(whole)), max(c.scale, len(fraction))
	return c.whole+c.scale <= 38
}

// step notes whether the values rise.
func (c *columnSample) step(text string) {
	var v value.Value
	var err error
	switch {
	case c.can[value.Long]:
		v, err = value.Parse(value.Type{Kind: value.Long}, text)
	case c.can[value.TimestampKind]:
		v, err = value.Parse(value.Type{Kind: value.TimestampKind}, text)
	default:
		return
	}
	if err != nil {
		return
	}
	if c.last != nil && fmt.Sprintf("%T", c.last) == fmt.Sprintf("%T", v) {
		c.steps++
		if value.Compare(c.last, v) <= 0 {
			c.rises++
		}
	}
	c.last = v
}

// kind is the narrowest type of all values.
func (c *columnSample) kind() value.Type {
	switch {
	case c.objects > 0 && c.arrays == 0 && c.scalars == 0:
		t := value.Type{Kind: value.StructKind}
		for _, name := range c.fields {
			t.Fields = append(t.Fields, value.Field{Name: name, Type: c.members[name].kind(), Nullable: true})
		}
		if len(t.Fields) == 0 {
			return value.Type{Kind: value.StringKind}
		}
		return t
	case c.arrays > 0 && c.objects == 0 && c.scalars == 0:
		elem := c.elems.kind()
		return value.Type{Kind: value.ArrayKind, Elem: &elem, ElemNullable: true}
	case c.objects+c.arrays > 0 || c.scalars == 0:
		return value.Type{Kind: value.StringKind}
	}
	for _, k := range []value.Kind{value.Boolean, value.Long, value.DecimalKind, value.Double, value.DateKind, value.TimestampKind} {
		switch {
		case !c.can[k]:
		case k == value.DecimalKind && c.whole+c.scale <= 18:
			return value.Type{Kind: k, Precision: 18, Scale: c.scale}
		case k == value.DecimalKind:
			return value.Type{Kind: k, Precision: 38, Scale: c.scale}
		default:
			return value.Type{Kind: k}
		}
	}
	return value.Type{Kind: value.StringKind}
}

func (c *columnSample) draft(name string, records int64) DraftColumn {
	d := DraftColumn{Name: name, Type: c.kind(), Nulls: c.nulls, Absent: records - c.records, Distinct: int64(len(c.distinct))}
	facts := []string{fmt.Sprintf("%d different values", d.Distinct)}
	if c.objects+c.arrays > 0 {
		facts = []string{fmt.Sprintf("%d objects, %d arrays, %d others", c.objects, c.arrays, c.scalars)}
	}
	switch {
	case d.Nulls == 0 && d.Absent == 0:
		facts = append(facts, "never null")
	case d.Absent == 0:
		facts = append(facts, fmt.Sprintf("%d null", d.Nulls))
	default:
		facts = append(facts, fmt.Sprintf("%d null, %d absent", d.Nulls, d.Absent))
	}
	switch {
	case c.records == c.nulls:
		facts = append(facts, "no value to tell the type by")
	case d.Type.Kind == value.TimestampKind && !c.zoned:
		facts = append(facts, "no time zone: read as UTC")
	case d.Type.Kind == value.DecimalKind:
		facts = append(facts, fmt.Sprintf("up to %d digits before and %d after the point", c.whole, c.scale))
	}
	d.Evidence = strings.Join(facts, ", ")
	return d
}
