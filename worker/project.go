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

// Contracts reads every contract of the project. All problems of all files are one error.
func (p *Project) Contracts(ctx context.Context) ([]schemas.Contract, error) {
	files, err := p.files("datasets", ".yaml", ".yml", ".sql")
	if err != nil {
		return nil, err
	}
	var out []schemas.Contract
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
		out = append(out, c)
	}
	return out, errors.Join(append(all, clash(out))...)
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

// clash says which datasets and targets stand in more than one contract.
func clash(contracts []schemas.Contract) error {
	owner := map[string]string{}
	var all []error
	take := func(kind, name, dataset string) {
		if other, taken := owner[kind+name]; taken {
			all = append(all, fmt.Errorf("%s %q is in the contracts of %q and %q: it may have one owner", kind, name, other, dataset))
		}
		owner[kind+name] = dataset
	}
	for _, c := range contracts {
		take("dataset", c.Dataset, c.Dataset)
		for _, t := range c.Targets {
			take("table", t.Table, c.Dataset)
		}
	}
	return errors.Join(all...)
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
// is about to change, before it does.
func (p *Project) Publish(ctx context.Context, show func(line string)) ([]schemas.Published, error) {
	contracts, err := p.Contracts(ctx)
	if err != nil {
		return nil, err
	}
	models, err := p.Models()
	if err != nil {
		return nil, err
	}
	var out []schemas.Published
	for _, c := range contracts {
		preview, err := stage.PreviewContract(ctx, p.Engine.Warehouse, c)
		if err != nil {
			return nil, err
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
		if err != nil {
			return nil, err
		}
		out = append(out, done.Published)
	}
	return out, p.publishModels(ctx, models, show)
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
	for _, table := range slices.Sorted(maps.Keys(models)) {
		changed, err := p.Engine.PublishModel(ctx, table, models[table])
		if err != nil {
			return err
		}
		if changed {
			show("model " + table + ": published")
		}
	}
	published, err := stage.Models(ctx, p.Engine.Warehouse)
	if err != nil {
		return err
	}
	for _, table := range published {
		if _, there := models[table]; there {
			continue
		}
		if _, err := p.Engine.PublishModel(ctx, table, ""); err != nil {
			return err
		}
		show("model " + table + ": withdrawn, its table stays as it is")
	}
	return nil
}
