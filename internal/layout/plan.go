package layout

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"varve/internal/value"
)

// job is pieces of one partition and one group that become new files together.
type job struct {
	partition map[string]value.Value
	group     int
	pieces    []piece
	// files is how many files they become: ranges of the column to order by, or one.
	files int
}

// plan decides what is rewritten.
func (w *work) plan(ctx context.Context) ([]job, error) {
	partitions := map[string][]piece{}
	for _, a := range w.snap.Files() {
		key, err := partitionKey(a)
		if err != nil {
			return nil, err
		}
		partitions[key] = append(partitions[key], w.pieceOf(a))
	}
	var jobs []job
	for _, key := range slices.Sorted(maps.Keys(partitions)) {
		some, err := w.partition(ctx, partitions[key])
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, some...)
	}
	return jobs, nil
}

// partition plans the files of one partition. Files are read to learn their groups only where there may be something to do.
func (w *work) partition(ctx context.Context, files []piece) ([]job, error) {
	partition, err := w.snap.Partition(files[0].add)
	if err != nil {
		return nil, err
	}
	if !w.worthwhile(files) {
		return nil, nil
	}
	groups := map[int][]piece{}
	for _, p := range files {
		if w.ZOrder == "" && !p.forced && !w.small(p.size) {
			continue
		}
		whole, err := w.whole(ctx, p)
		if err != nil {
			return nil, err
		}
		if !whole {
			continue
		}
		pieces, err := w.split(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, one := range pieces {
			groups[one.group] = append(groups[one.group], one)
		}
	}
	var out []job
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		for _, j := range w.jobs(groups[g]) {
			j.partition, j.group = partition, g
			out = append(out, j)
		}
	}
	return out, nil
}

// worthwhile says whether files might have to be rewritten, whatever groups their rows are of.
func (w *work) worthwhile(files []piece) bool {
	small := 0
	for _, p := range files {
		if w.small(p.size) {
			small++
		}
	}
	return small > 1 || len(w.jobs(files)) > 0
}

// whole says whether a file has every hidden column.
func (w *work) whole(ctx context.Context, p piece) (bool, error) {
	for _, f := range w.Hidden {
		has, err := w.snap.HasColumn(ctx, p.add, f.Name)
		if err != nil || !has {
			return false, err
		}
	}
	return true, nil
}

// jobs plans pieces of one group.
func (w *work) jobs(pieces []piece) []job {
	if w.ZOrder == "" {
		return w.bins(pieces)
	}
	return w.ranges(pieces)
}

// small says that a file is not big enough to be left alone.
func (w *work) small(size int64) bool { return size < w.TargetFileSize/2 }

// bins packs small pieces together, each into the first bin that has room for it.
func (w *work) bins(pieces []piece) []job {
	pieces = slices.DeleteFunc(slices.Clone(pieces), func(p piece) bool { return !p.forced && !w.small(p.size) })
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.add.Path, b.add.Path)) })
	var bins []job
	var sizes []int64
	for _, p := range pieces {
		i := slices.IndexFunc(sizes, func(size int64) bool { return size+p.size <= w.TargetFileSize })
		if i < 0 {
			i = len(bins)
			bins, sizes = append(bins, job{files: 1}), append(sizes, 0)
		}
		bins[i].pieces = append(bins[i].pieces, p)
		sizes[i] += p.size
	}
	return slices.DeleteFunc(bins, func(j job) bool { return len(j.pieces) == 1 && !j.pieces[0].forced })
}

// ranges joins pieces that overlap, then neighbours that are small. What stands alone stays as it is, unless it is a file
// of twice the target that was never ordered.
func (w *work) ranges(pieces []piece) []job {
	var out []job
	for _, pieces := range w.clusters(pieces) {
		size := sizeOf(pieces)
		if len(pieces) == 1 && !pieces[0].forced && (pieces[0].run != "" || size <= 2*w.TargetFileSize) {
			continue
		}
		out = append(out, job{pieces: pieces, files: int((size + w.TargetFileSize - 1) / w.TargetFileSize)})
	}
	return out
}

// clusters cuts pieces, in order of the column, where none reaches over the cut and one side of it is big enough.
func (w *work) clusters(pieces []piece) [][]piece {
	pieces = slices.Clone(pieces)
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(known(a)-known(b), value.Compare(a.low, b.low), value.Compare(a.high, b.high), cmp.Compare(a.add.Path, b.add.Path))
	})
	var out [][]piece
	for _, p := range pieces {
		last := len(out) - 1
		if last >= 0 && (slices.ContainsFunc(out[last], func(q piece) bool { return overlap(q, p) }) ||
			(w.small(sizeOf(out[last])) && w.small(p.size))) {
			out[last] = append(out[last], p)
			continue
		}
		out = append(out, []piece{p})
	}
	return out
}

// overlap says whether two pieces may hold a value each between the other's. A shared bound is no overlap, and files of one
// run have none.
func overlap(a, b piece) bool {
	switch {
	case a.run != "" && a.run == b.run:
		return false
	case !a.known || !b.known:
		return true
	}
	return value.Compare(a.high, b.low) > 0 && value.Compare(b.high, a.low) > 0
}

func sizeOf(pieces []piece) int64 {
	var size int64
	for _, p := range pieces {
		size += p.size
	}
	return size
}

func known(p piece) int {
	if p.known {
		return 1
	}
	return 0
}
