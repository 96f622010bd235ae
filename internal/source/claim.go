package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"varve/internal/delta"
	"varve/internal/object"
	"varve/schemas"
)

// settled is how long before a claim a file must have been written for its time to prove that it is the same file: a
// write within the clock's grain would not show.
const settled = 5 * time.Second

// Claim takes the files of a day that no batch has as the next batch, and gives it; none where there is nothing new. Of
// two that claim at once, one gets a file.
func Claim(ctx context.Context, warehouse, landing object.Store, c schemas.Contract, day string, now func() time.Time) ([]Batch, error) {
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return nil, fmt.Errorf("day %q is not a date such as 2026-09-14", day)
	}
	found, missing := listing{landing: landing, pattern: c.Source.Path}.files(ctx, day)
	if _, ok := errors.AsType[*MissingError](missing); missing != nil && !ok {
		return nil, missing
	}
	hashes := map[string]File{}
	for {
		batches, err := Batches(ctx, warehouse, c.Dataset)
		if err != nil {
			return nil, err
		}
		if missing != nil && !hasDay(batches, day) {
			return nil, missing
		}
		_, landed, err := landMark(ctx, delta.At(warehouse, Root(c.Dataset)))
		if err != nil {
			return nil, err
		}
		if landed >= nextNumber(batches) {
			return nil, &LostError{Dataset: c.Dataset, Batch: landed, Table: "bronze." + c.Dataset}
		}
		fresh, err := unclaimed(ctx, landing, found, batches, landed, hashes)
		if err != nil || len(fresh) == 0 {
			return nil, err
		}
		b := Batch{
			Format: Format, Number: nextNumber(batches), Dataset: c.Dataset, Day: day, Attempt: uuid.NewString(), Files: fresh,
			ClaimedAt: now().UTC(),
		}
		switch err := store(ctx, warehouse, batchKey(c.Dataset, b.Number), b); {
		case errors.Is(err, object.ErrExists): // another claim was first: see what it left
		case err != nil:
			return nil, fmt.Errorf("claim batch %d of %s: %w", b.Number, c.Dataset, err)
		default:
			return []Batch{b}, nil
		}
	}
}

// hasDay says whether files of a day were claimed, so that it is no fault that the source took them away since.
func hasDay(batches []Status, day string) bool {
	return slices.ContainsFunc(batches, func(s Status) bool { return s.Batch.Day == day && s.State != Rejected })
}

func nextNumber(batches []Status) int64 {
	next := int64(1)
	for _, s := range batches {
		next = max(next, s.Batch.Number+1)
	}
	return next
}

type owned struct {
	file    File
	batch   int64
	claimed time.Time
}

// unclaimed gives the files that no batch has, hashed. A rejected batch has none. Batches up to landed are in bronze: what
// changed of a later one is found when it is landed.
func unclaimed(ctx context.Context, landing object.Store, found []object.Info, batches []Status, landed int64, hashes map[string]File) ([]File, error) {
	owners := map[string]owned{}
	for _, s := range batches {
		if s.State == Rejected {
			continue
		}
		for _, f := range s.Batch.Files {
			owners[f.Path] = owned{file: f, batch: s.Batch.Number, claimed: s.Batch.ClaimedAt}
		}
	}
	var fresh []File
	for _, info := range found {
		owner, has := owners[info.Key]
		if has && same(info, owner) {
			continue
		}
		f, ok := hashes[info.Key]
		if !ok {
			var err error
			f, err = hash(ctx, landing, info)
			if errors.Is(err, object.ErrNotFound) {
				continue // it was taken away since it was listed
			}
			if err != nil {
				return nil, err
			}
			hashes[info.Key] = f
		}
		switch {
		case !has:
			fresh = append(fresh, f)
		case f.SHA256 != owner.file.SHA256 && owner.batch <= landed:
			return nil, &ReplacedError{File: info.Key, Batch: owner.batch}
		}
	}
	return fresh, nil
}

// same says whether a listing alone proves that a file is the one that was claimed.
func same(info object.Info, o owned) bool {
	return info.Size == o.file.Size && info.Modified.Equal(o.file.Modified) && info.Modified.Before(o.claimed.Add(-settled))
}

func hash(ctx context.Context, landing object.Store, info object.Info) (File, error) {
	h := sha256.New()
	size, err := io.Copy(h, newReader(ctx, landing, info.Key))
	switch {
	case errors.Is(err, object.ErrDenied):
		return File{}, &UnreadableError{File: info.Key, Err: err}
	case err != nil:
		return File{}, fmt.Errorf("read source file %q: %w", info.Key, err)
	}
	return File{Path: info.Key, Size: size, SHA256: hex.EncodeToString(h.Sum(nil)), Modified: info.Modified.UTC()}, nil
}
