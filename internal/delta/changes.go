package delta

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"varve/internal/object"
	"varve/internal/value"
)

// propertyChangeFeed turns the change data feed on.
const propertyChangeFeed = "delta.enableChangeDataFeed"

// The columns that a change has besides the table's. A table with a feed has no columns of these names. PROTOCOL.md, Change
// Data Files.
const (
	ChangeTypeColumn      = "_change_type"
	CommitVersionColumn   = "_commit_version"
	CommitTimestampColumn = "_commit_timestamp"
)

// ChangeType says what became of a row.
type ChangeType string

// The types of changes. An update is two changes: the row before it and the row after it.
const (
	RowInserted ChangeType = "insert"
	RowDeleted  ChangeType = "delete"
	RowBefore   ChangeType = "update_preimage"
	RowAfter    ChangeType = "update_postimage"
)

// Change is what a commit did to one row.
type Change struct {
	Type ChangeType
	// Row has a value for each column of the feed's schema.
	Row value.Row
	// Version and At tell of the commit. A writer need not set them.
	Version int64
	At      time.Time
}

// ChangeFeed is the changes of a range of versions.
type ChangeFeed struct {
	table    Table
	schema   value.Schema // of the last version
	from, to int64
	first    *Snapshot
	times    map[int64]time.Time
}

// Changes opens the change data feed from a version to another one, both included; a negative end is the newest version. The
// feed must be on from the first to the last of them: a *NoChangeFeedError names one where it is not. Schemas may gain
// columns and widen types in between; any other change of them is an *UnsupportedError when its version is reached.
// ErrNoVersion says that the table does not have one of them, or not its commit any longer.
func (t Table) Changes(ctx context.Context, from, to int64) (*ChangeFeed, error) {
	last, err := t.snapshot(ctx, max(to, noVersion))
	if err != nil {
		return nil, err
	}
	if from < 0 || from > last.version {
		return nil, fmt.Errorf("delta table %q: changes from version %d to %d: %w", t.Root, from, last.version, ErrNoVersion)
	}
	first := last
	if from < last.version {
		if first, err = t.Version(ctx, from); err != nil {
			return nil, err
		}
	}
	for _, s := range []*Snapshot{first, last} {
		if !s.Metadata().HasChangeFeed() {
			return nil, &NoChangeFeedError{Table: t.Root, Version: s.version}
		}
	}
	f := &ChangeFeed{table: t, schema: last.Schema(), from: from, to: last.version, first: first, times: map[int64]time.Time{}}
	files, err := t.listLog(ctx, from, f.to)
	if err != nil {
		return nil, err
	}
	for _, c := range commitTimes(files) {
		f.times[c.version] = c.at
	}
	for v := from; v <= f.to; v++ {
		if _, ok := f.times[v]; !ok {
			return nil, fmt.Errorf("delta table %q: changes of version %d: its commit is not in the log: %w", t.Root, v, ErrNoVersion)
		}
	}
	return f, nil
}

// Schema gives the columns of the rows: those of the range's last version.
func (f *ChangeFeed) Schema() value.Schema { return f.schema }

// Columns gives the columns that readers show of a change: the schema's, what became of the row, in which version and when.
func (f *ChangeFeed) Columns() value.Schema {
	return append(slices.Clone(f.schema), value.Field{Name: ChangeTypeColumn, Type: value.Type{Kind: value.StringKind}},
		value.Field{Name: CommitVersionColumn, Type: value.Type{Kind: value.Long}},
		value.Field{Name: CommitTimestampColumn, Type: value.Type{Kind: value.TimestampKind}})
}

// Range gives the first and the last version.
func (f *ChangeFeed) Range() (from, to int64) { return f.from, f.to }

// Rows gives the changes, version by version.
func (f *ChangeFeed) Rows(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		at := &Snapshot{table: f.table, version: f.from, state: &state{protocol: f.first.state.protocol, metadata: f.first.state.metadata}}
		for v := f.from; v <= f.to; v++ {
			actions, err := f.table.readCommit(ctx, v)
			if err == nil {
				at, err = f.follow(at, v, actions)
			}
			if err != nil {
				yield(Change{}, err)
				return
			}
			committed := f.committed(at, actions)
			for c, err := range f.version(ctx, at, actions) {
				c.Version, c.At = v, committed
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

// follow gives what the table is at the next version.
func (f *ChangeFeed) follow(before *Snapshot, version int64, actions []action) (*Snapshot, error) {
	s := *before.state
	for _, a := range actions {
		if a.Metadata != nil {
			s.metadata = a.Metadata
		}
	}
	if !s.metadata.HasChangeFeed() {
		return nil, &NoChangeFeedError{Table: f.table.Root, Version: version}
	}
	for _, have := range s.metadata.Schema {
		i := f.schema.Index(have.Name)
		if i < 0 || !have.Type.Equal(f.schema[i].Type) && !value.Widens(have.Type, f.schema[i].Type) {
			return nil, &UnsupportedError{
				Table:   f.table.Root,
				Feature: fmt.Sprintf("a change data feed over a change of column %q, which version %d has and version %d has otherwise,", have.Name, version, f.to),
			}
		}
	}
	return &Snapshot{table: f.table, version: version, state: &s}, nil
}

// committed gives the time of a version.
func (f *ChangeFeed) committed(s *Snapshot, actions []action) time.Time {
	if s.Metadata().flag("delta.enableInCommitTimestamps") {
		for _, a := range actions {
			if ms, ok := a.CommitInfo.number("inCommitTimestamp"); ok {
				return time.UnixMilli(ms).UTC()
			}
		}
	}
	return f.times[s.version]
}

// rowsMoved is what a commit says of one data file: how it was before, how it is after; nil where it was or is not there.
type rowsMoved struct {
	path          string
	before, after *Add
}

// version gives the changes of one commit: those of its change files or, where it has none, those that follow from its data
// files. PROTOCOL.md, Change Data Files, Reader Requirements.
func (f *ChangeFeed) version(ctx context.Context, s *Snapshot, actions []action) iter.Seq2[Change, error] {
	var written []ChangeFile
	var info commitInfo
	for _, a := range actions {
		switch {
		case a.CDC != nil:
			written = append(written, *a.CDC)
		case a.CommitInfo != nil:
			info = a.CommitInfo
		}
	}
	return func(yield func(Change, error) bool) {
		fail := func(file string, err error) { yield(Change{}, f.table.corrupt(s.version, file, err)) }
		for _, file := range written {
			for c, err := range f.changeFile(ctx, s, file) {
				if err != nil {
					fail(file.Path, err)
					return
				}
				if !yield(c, nil) {
					return
				}
			}
		}
		if len(written) > 0 || mergedNothing(info) {
			return
		}
		moved, err := filesMoved(actions)
		if err != nil {
			fail(logDir, err)
			return
		}
		for _, file := range moved {
			for c, err := range f.derived(ctx, s, file) {
				if err != nil {
					fail(file.path, err)
					return
				}
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// mergedNothing tells of a MERGE that changed no row, and may have moved some: Spark's readers leave it out.
func mergedNothing(info commitInfo) bool {
	if info.text("operation") != "MERGE" {
		return false
	}
	metrics := historyEntry(committed{}, info).OperationMetrics
	for _, name := range []string{"numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"} {
		if metrics[name] != "0" {
			return false
		}
	}
	return true
}

// filesMoved pairs the data files that a commit's data change removes and adds, in the order of the actions.
func filesMoved(actions []action) ([]rowsMoved, error) {
	var out []rowsMoved
	index := map[string]int{}
	at := func(raw string) (*rowsMoved, error) {
		path, err := filePath(raw)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", raw, err)
		}
		i, ok := index[path]
		if !ok {
			i = len(out)
			index[path] = i
			out = append(out, rowsMoved{path: path})
		}
		return &out[i], nil
	}
	for _, a := range actions {
		switch {
		case a.Remove != nil && a.Remove.DataChange:
			file, err := at(a.Remove.Path)
			if err != nil {
				return nil, err
			}
			if file.before != nil {
				return nil, fmt.Errorf("%q is removed twice", a.Remove.Path)
			}
			file.before = &Add{
				Path: a.Remove.Path, PartitionValues: a.Remove.PartitionValues, Size: a.Remove.Size, DeletionVector: a.Remove.DeletionVector,
			}
		case a.Add != nil && a.Add.DataChange:
			file, err := at(a.Add.Path)
			if err != nil {
				return nil, err
			}
			if file.after != nil {
				return nil, fmt.Errorf("%q is added twice", a.Add.Path)
			}
			file.after = a.Add
		}
	}
	return out, nil
}

// changeFile gives the changes of a change file.
func (f *ChangeFeed) changeFile(ctx context.Context, s *Snapshot, file ChangeFile) iter.Seq2[Change, error] {
	kind := value.Schema{{Name: ChangeTypeColumn, Type: value.Type{Kind: value.StringKind}, Nullable: true}}
	add := Add{Path: file.Path, PartitionValues: file.PartitionValues, Size: file.Size}
	return func(yield func(Change, error) bool) {
		for row, err := range s.readFile(ctx, add, f.schema, kind) {
			if err != nil {
				yield(Change{}, err)
				return
			}
			n := len(f.schema)
			text, _ := row[n].(string)
			c := Change{Type: ChangeType(text), Row: row[:n:n]}
			if !slices.Contains([]ChangeType{RowInserted, RowDeleted, RowBefore, RowAfter}, c.Type) {
				yield(Change{}, fmt.Errorf("a row whose %s is none", ChangeTypeColumn))
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// derived gives the changes that follow from a data file: the rows that it has after a commit and not before are inserted, the
// others deleted.
func (f *ChangeFeed) derived(ctx context.Context, s *Snapshot, file rowsMoved) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if err := f.derive(ctx, s, file, yield); err != nil {
			yield(Change{}, err)
		}
	}
}

func (f *ChangeFeed) derive(ctx context.Context, s *Snapshot, file rowsMoved, yield func(Change, error) bool) error {
	add := file.after
	if add == nil {
		add = file.before
		if err := f.complete(ctx, s, add); err != nil {
			return err
		}
	}
	opened, err := s.open(ctx, *add)
	if err != nil {
		return err
	}
	was, err := f.live(ctx, s, file.before, opened.NumRows())
	if err != nil {
		return err
	}
	is, err := f.live(ctx, s, file.after, opened.NumRows())
	if err != nil {
		return err
	}
	layout, err := s.layout(*add, f.schema, nil)
	if err != nil {
		return err
	}
	for position, stored := range layout.positions(opened, &err) {
		c := Change{Type: RowInserted}
		switch before, after := was(position), is(position); {
		case before == after:
			continue
		case before:
			c.Type = RowDeleted
		}
		c.Row = layout.row(stored)
		if !yield(c, nil) {
			return nil
		}
	}
	return err
}

// live tells which rows of a file a version has, by their positions.
func (f *ChangeFeed) live(ctx context.Context, s *Snapshot, a *Add, rows int64) (func(int64) bool, error) {
	if a == nil {
		return func(int64) bool { return false }, nil
	}
	deleted, err := s.deleted(ctx, *a, rows)
	return func(position int64) bool { return !deleted.has(position) }, err
}

// complete fills in what a removal may leave out: the size, which the store knows, and partition values, which nobody does.
func (f *ChangeFeed) complete(ctx context.Context, s *Snapshot, a *Add) error {
	if a.PartitionValues == nil && len(s.Metadata().PartitionColumns) > 0 {
		return errors.New("a removal without partition values")
	}
	if a.Size > 0 {
		return nil
	}
	key, err := s.Key(*a)
	if err != nil {
		return err
	}
	for info, err := range f.table.Store.List(ctx, key, "") {
		if err != nil {
			return err
		}
		if info.Key == key {
			a.Size = info.Size
			return nil
		}
		break
	}
	return object.ErrNotFound
}

// HasChangeFeed tells whether commits have to tell which rows they changed.
func (m Metadata) HasChangeFeed() bool { return m.flag(propertyChangeFeed) }

// WriteChanges writes changes into a new file and gives the action that makes them a commit's. A commit that has any must
// have all of its changes so. Of FileOptions, hidden columns and a prefix are not heeded.
func (t Table) WriteChanges(ctx context.Context, o FileOptions, changes iter.Seq2[Change, error]) (ChangeFile, error) {
	o.Hidden = value.Schema{{Name: ChangeTypeColumn, Type: value.Type{Kind: value.StringKind}, Nullable: true}}
	o.Prefix = ""
	rows := func(yield func(value.Row, error) bool) {
		for c, err := range changes {
			if !yield(append(slices.Clip(c.Row), string(c.Type)), err) || err != nil {
				return
			}
		}
	}
	name, w, _, size, err := t.writeFile(ctx, o, changeDir, "cdc", rows)
	if err != nil {
		return ChangeFile{}, err
	}
	return ChangeFile{Path: encodePath(name), PartitionValues: w.partition, Size: size}, nil
}

// checkFeed tells what keeps a table from having the feed that its properties ask for.
func (m Metadata) checkFeed(p Protocol) error {
	if !m.HasChangeFeed() {
		return nil
	}
	const legacy = 4 // the first writer version that stands for the feature. PROTOCOL.md, Change Data Files
	if p.MinWriterVersion < legacy || p.MinWriterVersion == featureWriter && !p.has("changeDataFeed") {
		return errors.New("the change data feed needs the feature \"changeDataFeed\"")
	}
	for _, name := range []string{ChangeTypeColumn, CommitVersionColumn, CommitTimestampColumn} {
		if m.Schema.Index(name) >= 0 {
			return fmt.Errorf("column %q: a table with a change data feed may not have one of this name", name)
		}
	}
	return nil
}

// checkChanges checks the change files of a commit, and that it has some where its changes do not follow from its data files:
// where files are removed and others added, rows may have been updated or only moved.
func (c Commit) checkChanges(m Metadata) error {
	if !m.HasChangeFeed() {
		if len(c.Changes) > 0 {
			return errors.New("change files without a change data feed")
		}
		return nil
	}
	for _, file := range c.Changes {
		if _, err := filePath(file.Path); err != nil {
			return fmt.Errorf("change file %q: %w", file.Path, err)
		}
		if file.DataChange {
			return fmt.Errorf("change file %q: changes no data by itself", file.Path)
		}
	}
	if len(c.Changes) > 0 {
		return nil
	}
	removed := map[string]bool{}
	for _, r := range c.Removes {
		if r.DataChange {
			removed[keyOf(r.Path, nil).path] = true
		}
	}
	for _, a := range c.Adds {
		if a.DataChange && len(removed) > 0 && !removed[keyOf(a.Path, nil).path] {
			return &UnsupportedError{Feature: "a change data feed with files that replace others, and no change file that says which rows changed,", Write: true}
		}
	}
	return nil
}
