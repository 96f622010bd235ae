package stage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"varve/internal/delta"
	"varve/internal/format"
	"varve/internal/normalize"
	"varve/internal/object"
	"varve/internal/value"
	"varve/schemas"
)

// The folders of what is published: a folder a name, a numbered file a publication.
const (
	contractsDir = "_varve/contracts"
	modelsDir    = "_varve/models"
)

// NoContractError says that no contract of that name, or of that number, is published.
type NoContractError struct {
	Dataset string
	Number  int64
	Known   []string
}

func (e *NoContractError) Error() string {
	if e.Number > 0 {
		return fmt.Sprintf("dataset %q: no contract number %d is published", e.Dataset, e.Number)
	}
	if len(e.Known) == 0 {
		return fmt.Sprintf("dataset %q: no contract is published: write datasets/%s.yaml and publish it with varve dev or varve run", e.Dataset, e.Dataset)
	}
	return fmt.Sprintf("dataset %q: no contract is published; there are %s", e.Dataset, strings.Join(e.Known, ", "))
}

// Datasets names every dataset that has a published contract, in order.
func Datasets(ctx context.Context, store object.Store) ([]string, error) {
	return published(ctx, store, contractsDir)
}

// published names what has a publication below dir.
func published(ctx context.Context, store object.Store, dir string) ([]string, error) {
	var names []string
	for info, err := range store.List(ctx, dir+"/", "") {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
		name := path.Base(path.Dir(info.Key))
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// newest gives the highest number published under dir/name, 0 where there is none.
func newest(ctx context.Context, store object.Store, dir, name string) (int64, error) {
	var last int64
	prefix := path.Join(dir, name) + "/"
	for info, err := range store.List(ctx, prefix, "") {
		if err != nil {
			return 0, fmt.Errorf("list %s: %w", prefix, err)
		}
		number, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, prefix), ".json")
		if n, err := strconv.ParseInt(number, 10, 64); ok && err == nil {
			last = max(last, n)
		}
	}
	return last, nil
}

func publicationKey(dir, name string, number int64) string {
	return path.Join(dir, name, strconv.FormatInt(number, 10)+".json")
}

// LoadContract reads a published contract; number 0 means the newest.
func LoadContract(ctx context.Context, store object.Store, dataset string, number int64) (schemas.Published, error) {
	if number == 0 {
		n, err := newest(ctx, store, contractsDir, dataset)
		if err != nil {
			return schemas.Published{}, err
		}
		if n == 0 {
			known, err := Datasets(ctx, store)
			if err != nil {
				return schemas.Published{}, err
			}
			return schemas.Published{}, &NoContractError{Dataset: dataset, Known: known}
		}
		number = n
	}
	key := publicationKey(contractsDir, dataset, number)
	body, err := store.Read(ctx, key, 0, -1)
	if errors.Is(err, object.ErrNotFound) {
		return schemas.Published{}, &NoContractError{Dataset: dataset, Number: number}
	}
	if err != nil {
		return schemas.Published{}, fmt.Errorf("read contract %s: %w", dataset, err)
	}
	return schemas.ReadPublished(key, body)
}

// Publication tells what publishing a contract did.
type Publication struct {
	Published schemas.Published
	// New is false where the newest contract is the same.
	New bool
	// Changes are the differences from the newest before, empty for a first one.
	Changes []schemas.Change
}

// PreviewContract tells what publishing c would do, without doing it. A change that the dataset's tables cannot follow is
// an error.
func PreviewContract(ctx context.Context, store object.Store, c schemas.Contract) (Publication, error) {
	last, err := newest(ctx, store, contractsDir, c.Dataset)
	if err != nil {
		return Publication{}, err
	}
	next, err := c.Publish(last + 1)
	if err != nil {
		return Publication{}, fmt.Errorf("publish contract %s: %w", c.Dataset, err)
	}
	out := Publication{New: true}
	if out.Published, err = schemas.ReadPublished(publicationKey(contractsDir, c.Dataset, last+1), next); err != nil || last == 0 {
		return out, err
	}
	before, err := LoadContract(ctx, store, c.Dataset, last)
	if err != nil {
		return Publication{}, err
	}
	if before.Hash == out.Published.Hash {
		return Publication{Published: before}, nil
	}
	if err := compatible(ctx, store, last, c); err != nil {
		return Publication{}, fmt.Errorf("publish contract %s: %w", c.Dataset, err)
	}
	out.Changes = schemas.Diff(before.Contract, c)
	return out, nil
}

// compatible holds every target of a contract whose table is there against the newest publication that has it: a target that
// was left out for a while goes on as it was, and what no table has may be taken back.
func compatible(ctx context.Context, store object.Store, last int64, c schemas.Contract) error {
	left := make(map[string]bool, len(c.Targets)) // tables that no publication had so far
	have := map[string]bool{}                     // their columns
	for _, t := range c.Targets {
		snap, err := delta.At(store, Root(t.Table)).Latest(ctx)
		if errors.Is(err, delta.ErrNoTable) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open table %s: %w", t.Table, err)
		}
		left[t.Table] = true
		for _, name := range snap.Schema().Names() {
			have[name] = true
		}
	}
	for n := last; n > 0 && len(left) > 0; n-- {
		p, err := LoadContract(ctx, store, c.Dataset, n)
		if err != nil {
			return err
		}
		before := p.Contract
		kept := before.Kept()
		before.Columns = slices.DeleteFunc(slices.Clone(before.Columns), func(col schemas.Column) bool {
			return !have[col.Name] && slices.ContainsFunc(kept, func(k schemas.Column) bool { return k.Name == col.Name })
		})
		before.Targets = slices.DeleteFunc(slices.Clone(before.Targets), func(t schemas.Target) bool { return !left[t.Table] })
		if err := schemas.Compatible(before, c); err != nil {
			return err
		}
		for _, t := range before.Targets {
			delete(left, t.Table)
		}
	}
	return nil
}

// PublishContract makes c the newest contract of its dataset, if it differs from the newest.
func PublishContract(ctx context.Context, store object.Store, c schemas.Contract) (Publication, error) {
	for {
		p, err := PreviewContract(ctx, store, c)
		if err != nil || !p.New {
			return p, err
		}
		body, err := c.Publish(p.Published.Number)
		if err != nil {
			return Publication{}, fmt.Errorf("publish contract %s: %w", c.Dataset, err)
		}
		err = store.PutIfAbsent(ctx, publicationKey(contractsDir, c.Dataset, p.Published.Number), body)
		if errors.Is(err, object.ErrExists) {
			continue // somebody published in between: look again
		}
		if err != nil {
			return Publication{}, fmt.Errorf("publish contract %s: %w", c.Dataset, err)
		}
		return p, nil
	}
}

// CheckContract holds the contract's SQL expressions against its columns: the half of a contract's rules that needs a
// database.
func (e *Engine) CheckContract(ctx context.Context, c schemas.Contract) ([]schemas.Problem, error) {
	db, err := e.database()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	columns := append(c.SourceSchema(), value.Field{Name: "_day", Type: value.Type{Kind: value.DateKind}})
	var problems []schemas.Problem
	check := func(field, expr string) {
		if expr == "" {
			return
		}
		if _, err := db.Check(ctx, expr, columns); err != nil {
			problems = append(problems, schemas.Problem{Line: c.Line(field), Field: field, Message: err.Error()})
		}
	}
	check("apply_as_deletes", c.ApplyAsDeletes)
	for i, t := range c.Targets {
		check(fmt.Sprintf("targets[%d].history.by", i), t.History.By)
		check(fmt.Sprintf("targets[%d].history.delete_by", i), t.History.DeleteBy)
	}
	if len(problems) > 0 {
		return problems, nil
	}
	if err := normalize.Check(ctx, db, c); err != nil {
		problems = append(problems, schemas.Problem{Line: c.Line("dataset"), Field: "dataset", Message: err.Error()})
	}
	return problems, nil
}

// Model is a published SQL model: a table that is a query's outcome.
type Model struct {
	Format int    `json:"format"`
	Number int64  `json:"number"`
	Table  string `json:"table"`
	Hash   string `json:"hash"`
	SQL    string `json:"sql"`
}

// modelFormat is the newest format of published models.
const modelFormat = 1

// PublishModel makes query the newest text of the model, if it differs from the newest; it tells whether it did. An empty
// query withdraws the model: its table stays as it is. A query that cannot be parsed is refused, and one that closes a circle.
func (e *Engine) PublishModel(ctx context.Context, table, query string) (bool, error) {
	if query != "" {
		if err := e.checkModelName(ctx, table); err != nil {
			return false, err
		}
		all, err := models(ctx, e.Warehouse)
		if err != nil {
			return false, err
		}
		all = slices.DeleteFunc(all, func(m Model) bool { return m.Table == table })
		placed, err := e.place(ctx, append(all, Model{Table: table, SQL: query}))
		if err != nil {
			return false, err
		}
		if _, err := order(placed); err != nil {
			return false, err
		}
	}
	return publishModel(ctx, e.Warehouse, table, query)
}

// checkModelName refuses a model that has the name of a dataset's target.
func (e *Engine) checkModelName(ctx context.Context, table string) error {
	datasets, err := Datasets(ctx, e.Warehouse)
	if err != nil {
		return err
	}
	for _, dataset := range datasets {
		p, err := LoadContract(ctx, e.Warehouse, dataset, 0)
		if err != nil {
			return err
		}
		for _, t := range p.Contract.Targets {
			if t.Table == table {
				return fmt.Errorf("model %s: dataset %q keeps a target of that name: give the model another one", table, dataset)
			}
		}
	}
	return nil
}

func publishModel(ctx context.Context, store object.Store, table, query string) (bool, error) {
	sum := sha256.Sum256([]byte(query))
	m := Model{Format: modelFormat, Table: table, Hash: hex.EncodeToString(sum[:]), SQL: query}
	for {
		last, err := newest(ctx, store, modelsDir, table)
		if err != nil {
			return false, err
		}
		if last > 0 {
			before, err := loadModel(ctx, store, table, last)
			if err != nil || before.Hash == m.Hash {
				return false, err
			}
		}
		m.Number = last + 1
		body, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return false, fmt.Errorf("publish model %s: %w", table, err)
		}
		err = store.PutIfAbsent(ctx, publicationKey(modelsDir, table, m.Number), append(body, '\n'))
		if errors.Is(err, object.ErrExists) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("publish model %s: %w", table, err)
		}
		return true, nil
	}
}

func loadModel(ctx context.Context, store object.Store, table string, number int64) (Model, error) {
	key := publicationKey(modelsDir, table, number)
	body, err := store.Read(ctx, key, 0, -1)
	if err != nil {
		return Model{}, fmt.Errorf("read model %s: %w", table, err)
	}
	var m Model
	err = format.Decode(key, body, modelFormat, &m)
	return m, err
}

// Models names the models that are published and not withdrawn, in order.
func Models(ctx context.Context, store object.Store) ([]string, error) {
	all, err := models(ctx, store)
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.Table
	}
	return names, err
}

// models reads the newest of every model that is not withdrawn.
func models(ctx context.Context, store object.Store) ([]Model, error) {
	names, err := published(ctx, store, modelsDir)
	if err != nil {
		return nil, err
	}
	out := make([]Model, 0, len(names))
	for _, name := range names {
		last, err := newest(ctx, store, modelsDir, name)
		if err != nil {
			return nil, err
		}
		m, err := loadModel(ctx, store, name, last)
		if err != nil {
			return nil, err
		}
		if m.SQL != "" {
			out = append(out, m)
		}
	}
	return out, nil
}
