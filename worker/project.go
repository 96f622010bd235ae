package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"varve/internal/object"
	"varve/internal/object/cachestore"
	"varve/internal/object/filestore"
	"varve/internal/object/overlay"
	"varve/internal/object/s3store"
	"varve/internal/stage"
	"varve/schemas"
)

// ProjectFile is the file that makes a folder a project.
const ProjectFile = "varve.yaml"

// Project is a user's folder: settings, contracts, models, and the stores they speak of.
type Project struct {
	Dir      string
	Settings schemas.Project
	Engine   *stage.Engine
}

// NoProjectError says that a folder is not a project.
type NoProjectError struct{ Dir string }

func (e *NoProjectError) Error() string {
	return fmt.Sprintf("%q is not a project (it has no %s): make one with varve init, or name one with --project", e.Dir, ProjectFile)
}

// OpenProject opens the project in dir and its stores.
func OpenProject(ctx context.Context, dir string, log *slog.Logger) (*Project, error) {
	file := filepath.Join(dir, ProjectFile)
	body, err := os.ReadFile(file) //nolint:gosec // the folder is the user's to name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoProjectError{Dir: dir}
	}
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	settings, err := schemas.ParseProject(body)
	if err != nil {
		return nil, schemas.InFile(err, file)
	}
	landing, err := openStore(ctx, dir, settings.Landing, false)
	if err != nil {
		return nil, fmt.Errorf("open the landing zone: %w", err)
	}
	warehouse, err := openStore(ctx, dir, settings.Warehouse, true)
	if err != nil {
		return nil, fmt.Errorf("open the warehouse: %w", err)
	}
	warehouse = withCache(ctx, warehouse, dir, settings, log)
	scratch := filepath.Join(dir, ".varve", "scratch")
	if err := os.MkdirAll(scratch, 0o750); err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	return &Project{Dir: dir, Settings: settings, Engine: stage.New(stage.Options{
		Warehouse: warehouse, Landing: landing, Dir: scratch, MemoryMiB: settings.Limits.MemoryMiB, Log: log,
		Now: time.Now, //nolint:forbidigo // the process's one clock
	})}, nil
}

// openStore opens a location. One that is not writable is only read, from the first moment; a folder that is not there is
// made if it is.
func openStore(ctx context.Context, dir string, l schemas.Location, writable bool) (object.Store, error) {
	if l.S3 != "" {
		bucket, prefix, _ := strings.Cut(l.S3, "/")
		return s3store.Open(ctx, s3store.Config{
			Bucket: bucket, Prefix: prefix, Endpoint: l.Endpoint, Region: l.Region, PathStyle: l.PathStyle, ReadOnly: !writable,
		})
	}
	root := l.Path
	if !filepath.IsAbs(root) {
		root = filepath.Join(dir, root)
	}
	if writable {
		if err := os.MkdirAll(root, 0o750); err != nil {
			return nil, err
		}
		return filestore.Open(root)
	}
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder %q is missing: make it, or correct landing in %s", root, ProjectFile)
	}
	return filestore.OpenReadOnly(root)
}

// withCache keeps copies of the warehouse's immutable files in the project's folder, if the project gives them room.
func withCache(ctx context.Context, warehouse object.Store, dir string, settings schemas.Project, log *slog.Logger) object.Store {
	if settings.Limits.CacheBytes == 0 || settings.Warehouse.S3 == "" {
		return warehouse
	}
	return cachestore.New(ctx, warehouse, cachestore.Options{
		Dir: filepath.Join(dir, ".varve", "cache"), MaxBytes: settings.Limits.CacheBytes, Log: log,
		Scope: settings.Warehouse.Endpoint + " " + settings.Warehouse.S3,
	})
}

// Contracts reads every contract of the project. All problems of all files are one error; the contracts that are right come
// beside it.
func (p *Project) Contracts(ctx context.Context) ([]schemas.Contract, error) {
	files, err := p.contracts(ctx)
	out := make([]schemas.Contract, len(files))
	for i, f := range files {
		out[i] = f.contract
	}
	return out, err
}

// contractFile is a contract with the file that it stands in, below the project's folder.
type contractFile struct {
	path     string
	contract schemas.Contract
}

func (p *Project) contracts(ctx context.Context) ([]contractFile, error) {
	files, err := p.files("datasets", ".yaml", ".yml", ".sql")
	if err != nil {
		return nil, err
	}
	var out []contractFile
	var all []error
	for _, f := range files {
		if filepath.Ext(f) == ".sql" {
			all = append(all, fmt.Errorf("%s: contracts in AUTO CDC SQL come with a later version: write the contract in YAML", f))
			continue
		}
		c, err := p.contract(ctx, f)
		if err != nil {
			all = append(all, err)
			continue
		}
		out = append(out, contractFile{path: f, contract: c})
	}
	out, err = apart(out)
	return out, errors.Join(append(all, err)...)
}

// contract reads one file and holds it against both halves of the rules: shape and SQL.
func (p *Project) contract(ctx context.Context, file string) (schemas.Contract, error) {
	body, err := os.ReadFile(filepath.Join(p.Dir, file)) //nolint:gosec // a file of the user's project
	if err != nil {
		return schemas.Contract{}, fmt.Errorf("read a contract: %w", err)
	}
	c, err := schemas.Parse(body)
	if err != nil {
		return c, schemas.InFile(err, file)
	}
	problems, err := p.Engine.CheckContract(ctx, c)
	if err != nil {
		return c, err
	}
	if len(problems) > 0 {
		return c, &schemas.Problems{File: file, List: problems}
	}
	return c, nil
}

// apart leaves out contracts that have a dataset or a target in common, which is the error. Names that differ only by case
// are the same: some stores know no other.
func apart(files []contractFile) ([]contractFile, error) {
	owners := map[string][]string{} // the paths, by what they own
	for _, f := range files {
		own := make([]string, 0, 1+len(f.contract.Targets))
		own = append(own, fmt.Sprintf("dataset %q", strings.ToLower(f.contract.Dataset)))
		for _, t := range f.contract.Targets {
			own = append(own, fmt.Sprintf("table %q", strings.ToLower(t.Table)))
		}
		for _, name := range own {
			owners[name] = append(owners[name], f.path)
		}
	}
	clashing := map[string]bool{}
	var all []error
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		paths := owners[name]
		if len(paths) == 1 {
			continue
		}
		all = append(all, fmt.Errorf("%s: %s is in each of them, and may have one owner", strings.Join(paths, ", "), name))
		for _, path := range paths {
			clashing[path] = true
		}
	}
	return slices.DeleteFunc(files, func(f contractFile) bool { return clashing[f.path] }), errors.Join(all...)
}

// Models reads every SQL model of the project, by table name: the file's name without .sql.
func (p *Project) Models() (map[string]string, error) {
	files, err := p.files("models", ".sql")
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		table := strings.TrimSuffix(filepath.Base(f), ".sql")
		if !schemas.IsTableName(table) || schemas.IsReservedTable(table) {
			return nil, fmt.Errorf("%s: a model's file is named after its table, as models/gold.sales.sql, and varve keeps bronze, quarantine and ops to itself", f)
		}
		body, err := os.ReadFile(filepath.Join(p.Dir, f)) //nolint:gosec // a file of the user's project
		if err != nil {
			return nil, fmt.Errorf("read a model: %w", err)
		}
		if strings.TrimSpace(string(body)) == "" {
			return nil, fmt.Errorf("%s: it is empty; write a query, or remove the file to withdraw the model", f)
		}
		out[table] = string(body)
	}
	return out, nil
}

// files lists the project's files in a folder that end so, in order.
func (p *Project) files(folder string, ends ...string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(p.Dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the project: %w", err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(ends, filepath.Ext(e.Name())) {
			out = append(out, filepath.Join(folder, e.Name()))
		}
	}
	return out, nil
}

// Publish publishes every contract and model of the project that differs from its newest publication. show is told what
// is about to change, before it does. What is wrong is one error and is not published; it keeps nothing else from being so,
// and the contracts that are right come beside it.
func (p *Project) Publish(ctx context.Context, show func(line string)) ([]schemas.Published, error) {
	files, err := p.contracts(ctx)
	all := []error{err}
	var out []schemas.Published
	for _, f := range files {
		published, err := p.publish(ctx, f.contract, show)
		if err != nil {
			all = append(all, schemas.InFile(err, f.path))
			continue
		}
		out = append(out, published)
	}
	models, err := p.Models()
	if err != nil {
		return out, errors.Join(append(all, err)...)
	}
	return out, errors.Join(append(all, p.publishModels(ctx, models, show))...)
}

func (p *Project) publish(ctx context.Context, c schemas.Contract, show func(line string)) (schemas.Published, error) {
	preview, err := stage.PreviewContract(ctx, p.Engine.Warehouse, c)
	if err != nil {
		return schemas.Published{}, err
	}
	if preview.New {
		show(fmt.Sprintf("contract %s: publishing number %d", c.Dataset, preview.Published.Number))
		for _, change := range preview.Changes {
			show("  " + change.String())
		}
		for _, warning := range c.Warnings {
			show("  " + warning.String())
		}
	}
	done, err := stage.PublishContract(ctx, p.Engine.Warehouse, c)
	return done.Published, err
}

// Preview shows what Publish would change, and changes nothing.
func (p *Project) Preview(ctx context.Context, show func(line string)) error {
	dry := *p
	dry.Engine = p.Engine.On(overlay.New(p.Engine.Warehouse))
	_, err := dry.Publish(ctx, show)
	return err
}

// Published reads the newest published contract of every dataset: what workers go by, whatever stands in the project's files.
func (p *Project) Published(ctx context.Context) ([]schemas.Published, error) {
	names, err := stage.Datasets(ctx, p.Engine.Warehouse)
	if err != nil {
		return nil, err
	}
	out := make([]schemas.Published, len(names))
	for i, name := range names {
		if out[i], err = stage.LoadContract(ctx, p.Engine.Warehouse, name, 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// publishModels publishes the models that changed and withdraws those whose files are gone.
func (p *Project) publishModels(ctx context.Context, models map[string]string, show func(line string)) error {
	var all []error
	for _, table := range slices.Sorted(maps.Keys(models)) {
		changed, err := p.Engine.PublishModel(ctx, table, models[table])
		if err != nil {
			all = append(all, fmt.Errorf("models/%s.sql: %w", table, err))
			continue
		}
		if changed {
			show("model " + table + ": published")
		}
	}
	published, err := stage.Models(ctx, p.Engine.Warehouse)
	if err != nil {
		return errors.Join(append(all, err)...)
	}
	for _, table := range published {
		if _, there := models[table]; there {
			continue
		}
		if _, err := p.Engine.PublishModel(ctx, table, ""); err != nil {
			return errors.Join(append(all, err)...)
		}
		show("model " + table + ": withdrawn, its table stays as it is")
	}
	return errors.Join(all...)
}
