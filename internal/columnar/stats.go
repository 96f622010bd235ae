package columnar

import (
	"math"
	"slices"
	"strings"

	"varve/internal/value"
)

// Stats are what is known of a written file's values. Names are the names in the file: the physical name where a field
// has one, nested fields joined by dots. Strings are whole: shortening them is the reader of Stats' business.
type Stats struct {
	// NumRecords is the number of rows.
	NumRecords int64
	// Min and Max are bounds of the leaves that have an order. Leaves of booleans, binaries, variants, arrays and maps,
	// leaves that are always null, and float leaves that hold a NaN have none.
	Min, Max map[string]value.Value
	// NullCount counts a leaf's nulls, those of the structs around it included.
	NullCount map[string]int64
}

// defaultStatsLeaves is how many leaves have statistics where nothing else is asked for (delta.dataSkippingNumIndexedCols).
const defaultStatsLeaves = 32

// leafStats collects the statistics of one leaf, or of one array or map.
type leafStats struct {
	name     string
	bounded  bool
	nan      bool
	nulls    int64
	min, max value.Value
}

func (s *leafStats) add(v value.Value) {
	if v == nil {
		s.nulls++
		return
	}
	if !s.bounded {
		return
	}
	switch f := v.(type) {
	case float64:
		s.nan = s.nan || math.IsNaN(f)
	case float32:
		s.nan = s.nan || math.IsNaN(float64(f))
	}
	if s.min == nil || value.Compare(v, s.min) < 0 {
		s.min = v
	}
	if s.max == nil || value.Compare(v, s.max) > 0 {
		s.max = v
	}
}

// statsOf chooses the leaves that have statistics: the first ones of the table's, or those that are named.
type statsOf struct {
	columns []string
	leaves  []*leafStats
}

// choose walks the fields of a node that lies outside of arrays and maps; the first ones are visible in the table.
func (s *statsOf) choose(c *column, fields []value.Field, physical string, visible int) {
	for i, child := range c.children {
		field := fields[c.fields[i]]
		name := join(physical, physicalName(field))
		if field.Type.Kind == value.StructKind {
			inner := 0
			if c.fields[i] < visible {
				inner = len(field.Type.Fields)
			}
			s.choose(child, field.Type.Fields, name, inner)
		} else if s.wanted(child.path, c.fields[i] < visible) {
			leaf := &leafStats{name: name, bounded: bounded(field.Type.Kind)}
			s.leaves = append(s.leaves, leaf)
			child.stats = []*leafStats{leaf}
		}
		c.stats = append(c.stats, child.stats...)
	}
}

func (s *statsOf) wanted(path string, visible bool) bool {
	if s.columns == nil {
		return visible && len(s.leaves) < defaultStatsLeaves
	}
	return slices.ContainsFunc(s.columns, func(name string) bool {
		return path == name || strings.HasPrefix(path, name+".")
	})
}

func bounded(k value.Kind) bool {
	switch k {
	case value.Boolean, value.BinaryKind, value.VariantKind, value.ArrayKind, value.MapKind:
		return false
	default:
		return true
	}
}

// result gives the statistics of so many rows.
func (s *statsOf) result(rows int64) Stats {
	out := Stats{
		NumRecords: rows,
		Min:        make(map[string]value.Value), Max: make(map[string]value.Value),
		NullCount: make(map[string]int64),
	}
	for _, leaf := range s.leaves {
		out.NullCount[leaf.name] = leaf.nulls
		if leaf.min != nil && !leaf.nan {
			out.Min[leaf.name], out.Max[leaf.name] = leaf.min, leaf.max
		}
	}
	return out
}
