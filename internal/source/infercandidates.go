package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"varve/internal/value"
	"varve/schemas"
)

// Words in the names of columns, in lower case, that speak for a role.
const (
	sequenceWords = "sequence seq lsn scn gtid version offset position commit updated modified changed event_time change_time ts timestamp"
	landingWords  = "ingest landed load loaded received processed arrival"
	deleteWords   = "operation op action change_type changetype event_type deleted is_deleted is_delete delete_flag deleted_at rowkind"
	keyWords      = "id key code number no nr uuid guid sku"
)

// wordsOf cuts a column's name into its words: customerId, customer_id and CUSTOMER-ID alike.
func wordsOf(name string) []string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.FieldsFunc(strings.ToLower(b.String()), func(r rune) bool { return r == '_' || r == '-' || r == ' ' || r == '.' })
}

// speaks says whether a name, or one of its words, is in a list of words.
func speaks(name, words string) bool {
	parts := wordsOf(name)
	list := strings.Fields(words)
	return slices.Contains(list, strings.Join(parts, "_")) || slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(list, p) })
}

// nameable says whether a contract can have a column of that name.
func nameable(name string) bool {
	lower := strings.ToLower(name)
	return name != "" && !strings.ContainsAny(name, " ,;{}()=.'\"`\t\r\n") && !strings.HasPrefix(lower, "_varve") && lower != schemas.Arrival &&
		Schema().Index(lower) < 0
}

// sequences gives the columns that could order the records of a key.
func (s *sample) sequences(columns []DraftColumn) []Candidate {
	var out []Candidate
	for _, column := range columns {
		ordered := column.Type.Kind == value.Long || column.Type.Kind == value.TimestampKind
		if !ordered || !nameable(column.Name) || column.Nulls+column.Absent > 0 || column.Distinct < 2 && !speaks(column.Name, sequenceWords) {
			continue
		}
		c := s.columns[column.Name]
		named, rising := speaks(column.Name, sequenceWords), c.steps > 0 && c.rises == c.steps
		if !named && (!rising || speaks(column.Name, keyWords)) {
			continue
		}
		found := Candidate{Columns: []string{column.Name}}
		facts := []string{fmt.Sprintf("a %s that is never null", column.Type)}
		if named {
			found.score += 10
			facts = append(facts, "its name speaks for an order")
		}
		if column.Type.Kind == value.Long && named {
			found.score += 2
		}
		if rising {
			found.score += 3
			facts = append(facts, "it never falls within the files")
		} else {
			facts = append(facts, fmt.Sprintf("it falls %d times of %d within the files", c.steps-c.rises, c.steps))
		}
		if speaks(column.Name, landingWords) {
			found.score -= 20
			facts = append(facts, "but its name speaks for the time of loading, which is no order of the source")
		}
		found.Evidence = strings.Join(facts, ", ")
		out = append(out, found)
	}
	return best(out)
}

// deletes gives the conditions that could say that a record is a delete.
func (s *sample) deletes(columns []DraftColumn) []Candidate {
	var out []Candidate
	for _, column := range columns {
		if !nameable(column.Name) || !speaks(column.Name, deleteWords) {
			continue
		}
		c := s.columns[column.Name]
		found := Candidate{Columns: []string{column.Name}, score: 1}
		switch column.Type.Kind {
		case value.Boolean:
			found.Expr, found.score = inSQL(column.Name), 8
			found.Evidence = fmt.Sprintf("a boolean of that name, true in %d records", c.distinct["true"])
		case value.DateKind, value.TimestampKind:
			found.Expr = inSQL(column.Name) + " IS NOT NULL"
			found.Evidence = fmt.Sprintf("a time of that name, there in %d of %d records", c.records-c.nulls, s.records-s.bad)
		case value.StringKind, value.Long:
			if !found.byValue(c) {
				continue
			}
		default:
			continue
		}
		out = append(out, found)
	}
	return best(out)
}

// deleteBeside is how sources that write an insert in one way write a delete.
func deleteBeside() map[string]string {
	return map[string]string{"I": "D", "i": "d", "INSERT": "DELETE", "insert": "delete", "Insert": "Delete", "c": "d", "+I": "-D"}
}

// byValue looks for the value that means a delete.
func (f *Candidate) byValue(c *columnSample) bool {
	const most = 20 // more values are no operation
	if len(c.distinct) > most {
		return false
	}
	var counts []string
	for _, v := range slices.Sorted(maps.Keys(c.distinct)) {
		counts = append(counts, fmt.Sprintf("%s %d", v, c.distinct[v]))
		if slices.Contains([]string{"d", "del", "delete", "deleted", "remove", "removed"}, strings.ToLower(v)) {
			f.Expr, f.score = inSQL(f.Columns[0])+" = '"+strings.ReplaceAll(v, "'", "''")+"'", 10
		}
	}
	f.Evidence = "its values: " + strings.Join(counts, ", ")
	if f.Expr == "" {
		for _, insert := range slices.Sorted(maps.Keys(c.distinct)) {
			guess, ok := deleteBeside()[insert]
			if !ok {
				continue
			}
			f.Expr, f.score = inSQL(f.Columns[0])+" = '"+guess+"'", 5
			f.Evidence += "; there is no delete among them, its value is a guess"
			break
		}
	}
	return f.Expr != ""
}

// keys gives the columns, alone or in pairs, that could identify an entity: never null, and unique, alone or together with
// the sequence. Records that are the same throughout count once.
func (s *sample) keys(d Draft) []Candidate {
	names := s.possibleKeys(d)
	var out []Candidate
	for _, name := range names {
		if found, ok := s.key(d, name); ok {
			out = append(out, found)
		}
	}
	if len(out) > 0 && out[0].score > 0 && best(out)[0].score >= 10 {
		return out
	}
	for i, a := range names {
		for _, b := range names[i+1:] {
			if slices.ContainsFunc(out, func(c Candidate) bool { return c.Columns[0] == a || c.Columns[0] == b }) {
				continue
			}
			if found, ok := s.key(d, a, b); ok {
				out = append(out, found)
			}
		}
	}
	return best(out)
}

// possibleKeys gives the columns that may be a part of a key; of many only the first few, so that pairs stay few.
func (s *sample) possibleKeys(d Draft) []string {
	const most = 30
	role := map[string]bool{}
	for _, c := range slices.Concat(d.Sequences, d.Deletes) {
		role[c.Columns[0]] = c.score > 5
	}
	var names []string
	for _, column := range d.Columns {
		fit := slices.Contains([]value.Kind{value.StringKind, value.Long, value.DateKind}, column.Type.Kind) && s.columns[column.Name].scalars > 0
		if fit && nameable(column.Name) && column.Nulls+column.Absent == 0 && !role[column.Name] && len(names) < most {
			names = append(names, column.Name)
		}
	}
	return names
}

func (s *sample) key(d Draft, columns ...string) (Candidate, bool) {
	found := Candidate{Columns: columns, score: -2 * len(columns)}
	for _, name := range columns {
		words := wordsOf(name)
		if speaks(words[len(words)-1], keyWords) {
			found.score += 12 / len(columns)
		}
	}
	n := s.distinct(columns...)
	records := len(s.rows)
	switch {
	case n == records:
		found.score += 4
		found.Evidence = fmt.Sprintf("never null, and unique in %d different records", records)
		return found, true
	case len(d.Sequences) == 0:
		return found, false
	}
	sequence := d.Sequences[0].Columns[0]
	together := s.distinct(append(slices.Clone(columns), sequence)...)
	if together != records {
		return found, false
	}
	alone := s.distinct(sequence)
	found.Evidence = fmt.Sprintf("never null, %d different values, and unique together with %s in %d different records", n, sequence, records)
	if alone == records {
		found.score -= 3
		found.Evidence += fmt.Sprintf(" (%s is unique alone, so that this says little)", sequence)
	}
	return found, true
}
