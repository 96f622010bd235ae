package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"varve/internal/object"
)

// logFile is a file of the log as a listing has it.
type logFile struct {
	logName
	size     int64
	modified time.Time
}

// segment is the files that make a version of a table.
type segment struct {
	version int64
	// checkpoint is the files of one complete checkpoint; empty where the table is replayed from its first commit.
	checkpoint []logFile
	// deltas are the commits and compactions after the checkpoint, oldest first.
	deltas []logFile
	// modified is the time of the version's commit file.
	modified time.Time
}

// noVersion stands for the newest version, and for none.
const noVersion = -1

// maxListings is how often the log is listed until no commit is missing that is there.
const maxListings = 10

// gapError says that a listing of the log lacks a commit below one that it has.
type gapError struct{ missing int64 }

func (e *gapError) Error() string { return "missing from the log" }

// segment finds the files that make a version; noVersion asks for the newest one. A store may leave out of a listing what
// comes while it is made, and have what came after it: then what lies below was the newest version when it began.
func (t Table) segment(ctx context.Context, version int64) (segment, error) {
	for listing := 1; ; listing++ {
		s, err := t.list(ctx, version)
		gap, ok := errors.AsType[*gapError](err)
		if !ok {
			return s, err
		}
		name := logName{version: gap.missing}
		if _, found := t.Store.Read(ctx, join(t.Root, logDir, name.String()), 0, 0); found != nil || listing == maxListings {
			return segment{}, t.corrupt(gap.missing, logDir+"/"+name.String(), err)
		}
		if version == noVersion && gap.missing > 0 {
			version = gap.missing - 1
		}
	}
}

// list finds the files in one listing. _last_checkpoint saves a listing of the whole log and is not trusted in anything.
func (t Table) list(ctx context.Context, version int64) (segment, error) {
	if hint := t.lastCheckpoint(ctx); hint > 0 && (version == noVersion || hint <= version) {
		files, err := t.listLog(ctx, hint, version)
		if err != nil {
			return segment{}, err
		}
		if checkpoint := newestCheckpoint(files); len(checkpoint) > 0 {
			return t.assemble(files, checkpoint, version)
		}
	}
	files, err := t.listLog(ctx, 0, version)
	if err != nil {
		return segment{}, err
	}
	if len(files) == 0 {
		if version != noVersion && t.exists(ctx) {
			return segment{}, t.noVersion(version)
		}
		return segment{}, fmt.Errorf("%w at %q", ErrNoTable, t.Root)
	}
	return t.assemble(files, newestCheckpoint(files), version)
}

// noVersion is the error for a version that is not there.
func (t Table) noVersion(version int64) error {
	return fmt.Errorf("delta table %q, version %d: %w", t.Root, version, ErrNoVersion)
}

// exists tells whether the log has any file.
func (t Table) exists(ctx context.Context) bool {
	files, err := t.listLog(ctx, 0, noVersion)
	return err == nil && len(files) > 0
}

// listLog lists the files of the log from a version on, up to another one unless that is noVersion.
func (t Table) listLog(ctx context.Context, from, to int64) ([]logFile, error) {
	prefix := join(t.Root, logDir) + "/"
	after := ""
	if from > 0 {
		after = fmt.Sprintf("%s%020d", prefix, from)
	}
	var files []logFile
	for info, err := range t.Store.List(ctx, prefix, after) {
		if err != nil {
			return nil, fmt.Errorf("delta table %q: list the log: %w", t.Root, err)
		}
		name := strings.TrimPrefix(info.Key, prefix)
		if name > ":" { // after every name that begins with a digit
			break
		}
		n, ok := parseLogName(name)
		if !ok {
			continue
		}
		if to != noVersion && n.version > to {
			break
		}
		if to == noVersion || n.end <= to {
			files = append(files, logFile{logName: n, size: info.Size, modified: info.Modified})
		}
	}
	slices.SortStableFunc(files, func(a, b logFile) int { return a.compare(b.logName) })
	return files, nil
}

// newestCheckpoint gives the files of the newest complete checkpoint.
func newestCheckpoint(files []logFile) []logFile {
	for i := len(files) - 1; i >= 0; i-- {
		switch f := files[i]; f.kind {
		case classicCheckpoint, uuidCheckpoint:
			return files[i : i+1]
		case partCheckpoint:
			if parts := allParts(files, f); parts != nil {
				return parts
			}
		default:
		}
	}
	return nil
}

// allParts gives the parts of the multi-part checkpoint that one part belongs to, or nil where any is missing.
func allParts(files []logFile, one logFile) []logFile {
	var parts []logFile
	for _, f := range files {
		if f.kind == partCheckpoint && f.version == one.version && f.parts == one.parts {
			parts = append(parts, f)
		}
	}
	if len(parts) != one.parts {
		return nil
	}
	return parts
}

// assemble picks the files after a checkpoint, so that no version is missing.
func (t Table) assemble(files, checkpoint []logFile, version int64) (segment, error) {
	s := segment{checkpoint: checkpoint, version: noVersion}
	if len(checkpoint) > 0 {
		s.version, s.modified = checkpoint[0].version, checkpoint[0].modified
	}
	newest := s.version
	for _, f := range files {
		newest = max(newest, f.end)
		if f.kind == commitFile && f.version == newest {
			s.modified = f.modified
		}
	}
	// The commits are the truth. A compaction stands in for those that are gone.
	var missing int64
	if s.deltas, missing = chain(files, s.version, newest, commitFile); missing <= newest {
		if s.deltas, missing = chain(files, s.version, newest, compactedFile); missing <= newest {
			return segment{}, t.gap(files, missing, version)
		}
	}
	if s.version = newest; version != noVersion && version != newest {
		return segment{}, t.noVersion(version)
	}
	return s, nil
}

// chain gives the files that lead from after one version to another: commits, and where the kind asked for is compactions
// the one that reaches farthest. It stops at the first version that none of them has.
func chain(files []logFile, after, newest int64, kind logKind) ([]logFile, int64) {
	next := make(map[int64]logFile, len(files))
	for _, f := range files {
		if best, ok := next[f.version]; (f.kind == commitFile || f.kind == kind) && (!ok || f.end > best.end) {
			next[f.version] = f
		}
	}
	var deltas []logFile
	version := after + 1
	for version <= newest {
		f, ok := next[version]
		if !ok {
			break
		}
		deltas = append(deltas, f)
		version = f.end + 1
	}
	return deltas, version
}

// gap is the error for a missing commit: of a version before the oldest that can be made, the version is what is missing.
func (t Table) gap(files []logFile, missing, asked int64) error {
	oldest := files[len(files)-1].version
	for _, f := range files {
		if f.kind == commitFile {
			oldest = min(oldest, f.version)
		}
	}
	if asked != noVersion && missing == 0 && oldest > 0 {
		return t.noVersion(asked)
	}
	return &gapError{missing: missing}
}

// corrupt names what is wrong with a file; an UnsupportedError stays what it is, and so does a failure of the store.
func (t Table) corrupt(version int64, file string, err error) error {
	if unsupported, ok := errors.AsType[*UnsupportedError](err); ok {
		return &UnsupportedError{Table: t.Root, Feature: unsupported.Feature, Write: unsupported.Write}
	}
	for _, condition := range []error{
		object.ErrNotFound, object.ErrUnavailable, object.ErrDenied, object.ErrFull, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, condition) {
			return fmt.Errorf("delta table %q, version %d: read %q: %w", t.Root, version, file, err)
		}
	}
	return &CorruptError{Table: t.Root, Version: version, File: file, Err: err}
}
