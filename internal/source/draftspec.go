package source

import (
	"strings"

	"varve/schemas"
)

// Spec gives the draft as the contract language renders it, for a dataset whose files have a path in its landing.
func (d Draft) Spec(dataset, path string) schemas.DraftSpec {
	spec := schemas.DraftSpec{Dataset: dataset, Path: path, Format: d.Dialect.Format}
	if d.Dialect.Format == CSV {
		spec.CSV = schemas.Dialect{
			Delimiter: d.Dialect.Delimiter, Quote: string(d.Dialect.Quote), Header: d.Dialect.Header, NullText: d.Dialect.Null,
		}
	}
	required := map[string]bool{}
	for i, key := range d.Keys {
		spec.Keys = append(spec.Keys, schemas.KeyCandidate{Columns: key.Columns, Evidence: key.Evidence})
		if i == 0 {
			for _, name := range key.Columns {
				required[name] = true
			}
		}
	}
	for _, column := range d.Columns {
		spec.Columns = append(spec.Columns, schemas.DraftColumn{
			Name: column.Name, Type: column.Type, Required: required[column.Name], Evidence: column.Evidence,
		})
	}
	for i, s := range d.Sequences {
		spec.Sequences = append(spec.Sequences, schemas.Candidate{Value: s.Columns[0], Evidence: s.Evidence})
		if i == 0 {
			spec.Except = append(spec.Except, s.Columns[0])
		}
	}
	for i, c := range d.Deletes {
		spec.Deletes = append(spec.Deletes, schemas.Candidate{Value: c.Expr, Evidence: c.Evidence})
		if i == 0 {
			spec.Except = append(spec.Except, c.Columns[0])
		}
	}
	return spec
}

// inSQL is a column's name in an expression, quoted where it must be.
func inSQL(name string) string {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
	}
	return name
}
