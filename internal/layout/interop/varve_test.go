package interop_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/value"
)

// scenario is a table that varve writes.
type scenario struct {
	schema    value.Schema
	partition []string
	config    map[string]string
	// protocol is the table's. Default the least that does.
	protocol *delta.Protocol
	// write makes the table's versions after the empty one.
	write func(w *table)
	// where are conditions of which each finds rows in some files only.
	where []condition
	// changes says that the table has a change feed.
	changes bool
	// refuses are engines that do not read such tables, with the reason. One that reads it must go off the list.
	refuses map[string]string
}

// changeFeed is the protocol of tables with a change feed.
func changeFeed() *delta.Protocol {
	return &delta.Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{"appendOnly", "invariants", "changeDataFeed"}}
}

// vectorsAndFeed is the protocol of tables with deletion vectors and a change feed.
func vectorsAndFeed() *delta.Protocol {
	return &delta.Protocol{
		MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"deletionVectors"},
		WriterFeatures: []string{"appendOnly", "changeDataFeed", "deletionVectors", "invariants"},
	}
}

// movedAndGone moves a row to another partition, renames one, and lets one go.
func movedAndGone(row value.Row) []value.Row {
	switch row[0] {
	case int64(1):
		row[2] = "y"
	case int64(2):
		row[1] = "Dora"
	case int64(3):
		return nil
	}
	return []value.Row{row}
}

// withoutLarge lets rows go from an id on.
func withoutLarge(from int64) func(value.Row) []value.Row {
	return func(row value.Row) []value.Row {
		if id, _ := row[0].(int64); id >= from {
			return nil
		}
		return []value.Row{row}
	}
}

// written are the tables that varve writes. What it learns to write becomes one entry more, whose write does it; where that
// leaves deletion vectors, pyarrow refuses.
func written() map[string]scenario {
	return map[string]scenario{
		"appended and rewritten": {
			schema: people(),
			write: func(w *table) {
				w.insert(value.Row{int64(1), "Ann"}, value.Row{int64(2), nil}, value.Row{int64(3), "Cid"})
				w.insert(value.Row{int64(30), "Bob"}, value.Row{int64(40), "ü"})
				w.rewrite("MERGE", func(row value.Row) []value.Row {
					if row[0] == int64(2) {
						row[1] = "Dora"
					}
					return []value.Row{row}
				})
				w.rewrite("DELETE", func(row value.Row) []value.Row {
					if row[0] == int64(30) {
						return nil
					}
					return []value.Row{row}
				})
			},
			where: []condition{{column: "id", op: ">", value: int64(10)}, {column: "name", op: "=", value: "Dora"}},
		},
		"without rows": {schema: people(), write: func(w *table) {
			w.insert(value.Row{int64(1), "Ann"})
			w.rewrite("DELETE", func(value.Row) []value.Row { return nil })
		}},
		"every scalar type": {
			schema: scalars(),
			write: func(w *table) {
				for i := range int64(3) {
					w.insert(scalarRow(i*10), scalarRow(i*10+1), onlyID(scalars(), i*10+2))
				}
			},
			where: scalarConditions(),
		},
		"extremes": {schema: scalars(), write: func(w *table) { w.insert(extremes()...) }},
		"timestamps without a zone": {
			schema: value.Schema{column("id", kind(value.Long)), column("at", kind(value.TimestampNTZ))},
			write: func(w *table) {
				w.insert(value.Row{int64(1), value.LocalTimestamp(-1)}, value.Row{int64(2), nil})
				w.insert(value.Row{int64(3), value.LocalTimestamp(1_700_000_000_123_999)})
			},
			where: []condition{{column: "at", op: ">", value: value.LocalTimestamp(1_700_000_000_123_998), blind: []string{duckdb}}},
		},
		"statistics at the edges": {
			schema: edges(),
			write: func(w *table) {
				w.insert(edgeRows(1)...)
				w.insert(edgeRows(2)...)
				w.insert(edgeRows(3)...)
			},
			where: edgeConditions(),
		},
		"nested": {
			schema: nested(),
			write: func(w *table) {
				w.insert(nestedRows()...)
				w.insert(onlyID(nested(), 100))
			},
			where: []condition{{column: "id", op: ">", value: int64(50)}},
		},
		"columns added": {
			schema: value.Schema{column("id", kind(value.Long)), column("s", structOf(column("a", kind(value.Long))))},
			write: func(w *table) {
				w.insert(value.Row{int64(1), value.Struct{{Name: "a", Value: int64(5)}}}, value.Row{int64(2), nil})
				w.grow(value.Schema{
					column("id", kind(value.Long)), column("s", structOf(column("a", kind(value.Long)), column("b", kind(value.StringKind)))),
					column("late", kind(value.DateKind)),
				}, func(row value.Row) value.Row {
					if s, ok := row[1].(value.Struct); ok {
						row[1] = append(slices.Clone(s), value.Member{Name: "b"})
					}
					return append(row, nil)
				})
				w.insert(value.Row{int64(3), value.Struct{{Name: "a", Value: nil}, {Name: "b", Value: "x"}}, value.Date(3)})
			},
			where: []condition{{column: "id", op: ">", value: int64(2)}},
		},
		"partitions": {
			schema: value.Schema{
				column("id", kind(value.Long)), column("place", kind(value.StringKind)), column("day", kind(value.DateKind)),
				column("n", kind(value.Integer)), column("name", kind(value.StringKind)),
			},
			partition: []string{"place", "day", "n"},
			write: func(w *table) {
				w.insert(
					value.Row{int64(1), "Köln", value.Date(20000), int64(1), "a"}, value.Row{int64(2), `a b/c=d%20:"e"`, value.Date(-1), int64(-5), "b"},
					value.Row{int64(3), nil, nil, nil, "c"}, value.Row{int64(4), "Köln", nil, int64(0), "d"}, value.Row{int64(5), "Köln", value.Date(20000), int64(1), nil},
				)
				w.rewrite("DELETE", func(row value.Row) []value.Row {
					if row[0] == int64(1) {
						return nil
					}
					return []value.Row{row}
				})
			},
			where: []condition{{column: "place", op: "=", value: "Köln"}, {column: "day", op: "<", value: value.Date(5)}, {column: "n", op: ">=", value: int64(0)}},
		},
		"partitions of other types": {
			schema: value.Schema{
				column("id", kind(value.Long)), column("at", kind(value.TimestampKind)), column("price", decimal(9, 2)),
				column("flag", kind(value.Boolean)), column("local", kind(value.TimestampNTZ)),
			},
			partition: []string{"at", "price", "flag", "local"},
			write: func(w *table) {
				w.insert(
					value.Row{int64(1), value.Timestamp(1_700_000_000_000_000), value.Decimal{Unscaled: big.NewInt(150), Scale: 2}, true, value.LocalTimestamp(1_700_000_000_500_000)},
					value.Row{int64(2), value.Timestamp(1_700_000_000_123_456), value.Decimal{Unscaled: big.NewInt(107), Scale: 2}, false, value.LocalTimestamp(0)},
					value.Row{int64(3), nil, nil, nil, nil},
				)
			},
			where: []condition{{column: "price", op: ">", value: value.Decimal{Unscaled: big.NewInt(0), Scale: 2}}},
		},
		"partitions of negative decimals": {
			schema: value.Schema{column("id", kind(value.Long)), column("price", decimal(9, 2))}, partition: []string{"price"},
			write: func(w *table) {
				w.insert(value.Row{int64(1), value.Decimal{Unscaled: big.NewInt(-7), Scale: 2}}, value.Row{int64(2), nil})
			},
			refuses: map[string]string{pyarrow: "deltalake gives the value to Arrow as 0.-7"},
		},
		"checkpoint": {
			schema: append(scalars(), nested()[1:]...), partition: []string{"whole"},
			write: func(w *table) {
				for i, row := range nestedRows() {
					w.insert(append(scalarRow(int64(i)), row[1:]...))
				}
				w.rewrite("DELETE", func(row value.Row) []value.Row {
					if row[0] == int64(1) {
						return nil
					}
					return []value.Row{row}
				})
				w.checkpoint()
				w.insert(onlyID(w.now().schema, 50))
				w.insert(append(scalarRow(60), nestedRows()[0][1:]...))
			},
			where: []condition{{column: "id", op: ">", value: int64(40)}, {column: "text", op: "<", value: strings.Repeat("text", 5) + " 001", blind: []string{polars}}},
		},
		"checkpoints by the interval": {
			schema: people(), config: map[string]string{"delta.checkpointInterval": "3"},
			write: func(w *table) {
				for i := range int64(8) {
					w.insert(value.Row{i, fmt.Sprint("name ", i)})
				}
			},
			where: []condition{{column: "id", op: ">=", value: int64(6)}},
		},
		"laid out": {
			schema: people(), config: map[string]string{"delta.enableChangeDataFeed": "true"}, protocol: changeFeed(),
			write: func(w *table) {
				for i := range int64(6) {
					w.insert(value.Row{i * 7 % 6, fmt.Sprint("name ", i)}, value.Row{i*5%6 + 6, nil})
				}
				w.optimize("")
				w.insert(value.Row{int64(100), "late"})
				w.optimize("id")
				w.insert(value.Row{int64(200), "latest"})
			},
			where: []condition{{column: "id", op: ">", value: int64(150)}}, changes: true,
		},
		"change feed of appends": {
			schema: append(people(), column("place", kind(value.StringKind))), partition: []string{"place"},
			config: map[string]string{"delta.enableChangeDataFeed": "true"}, protocol: changeFeed(),
			write: func(w *table) {
				w.insert(value.Row{int64(1), "Ann", "x"}, value.Row{int64(2), nil, nil})
				w.insert(value.Row{int64(30), "Bob", "y"})
				w.checkpoint()
				w.insert(value.Row{int64(31), "Cid", "y"})
			},
			where: []condition{{column: "id", op: ">", value: int64(10)}},
		},
		"change feed of rows that change": {
			schema: append(people(), column("place", kind(value.StringKind))), partition: []string{"place"},
			config: map[string]string{"delta.enableChangeDataFeed": "true"}, protocol: changeFeed(),
			write: func(w *table) {
				w.insert(value.Row{int64(1), "Ann", "x"}, value.Row{int64(2), nil, nil}, value.Row{int64(3), "Cid", "x"})
				w.insert(value.Row{int64(40), "Bob", "y"})
				w.rewrite("MERGE", movedAndGone)
				w.insert(value.Row{int64(50), "Eve", "z"})
				w.rewrite("DELETE", withoutLarge(50))
			},
			where: []condition{{column: "id", op: ">", value: int64(10)}}, changes: true,
		},
		"deletion vectors and change feed": {
			schema: append(people(), column("place", kind(value.StringKind))), partition: []string{"place"},
			config: map[string]string{
				"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true", "delta.checkpointInterval": "3",
			},
			protocol: vectorsAndFeed(),
			write: func(w *table) {
				w.insert(value.Row{int64(1), "Ann", "x"}, value.Row{int64(2), nil, nil}, value.Row{int64(3), "Cid", "x"}, value.Row{int64(4), "Dot", "x"})
				w.insert(value.Row{int64(40), "Bob", "y"}, value.Row{int64(41), "Fay", "y"}, value.Row{int64(51), "Gus", "y"})
				w.replace("MERGE", movedAndGone)
				w.replace("DELETE", withoutLarge(50))
				w.replace("UPDATE", func(row value.Row) []value.Row {
					if row[0] == int64(41) || row[0] == int64(4) {
						row[1] = "new"
					}
					return []value.Row{row}
				})
				w.insert(value.Row{int64(60), "Hal", nil})
			},
			where: []condition{{column: "id", op: ">", value: int64(55)}}, changes: true,
			refuses: map[string]string{pyarrow: "deltalake gives Arrow no tables with deletion vectors"},
		},
		"deletion vectors read as changes": {
			schema: people(), config: map[string]string{"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"},
			protocol: vectorsAndFeed(),
			write: func(w *table) {
				for part := range int64(3) {
					rows := make([]value.Row, 100)
					for i := range rows {
						rows[i] = value.Row{part*100 + int64(i), fmt.Sprint("name ", i)}
					}
					w.insert(rows...)
				}
				for _, share := range []int64{7, 5, 3} {
					w.replace("DELETE", func(row value.Row) []value.Row {
						if id, _ := row[0].(int64); id%share == 0 {
							return nil
						}
						return []value.Row{row}
					})
				}
				w.replace("DELETE", withoutLarge(250))
			},
			where: []condition{{column: "id", op: ">", value: int64(240)}}, changes: true,
			refuses: map[string]string{pyarrow: "deltalake gives Arrow no tables with deletion vectors"},
		},
		"many rows": {
			schema: append(people(), column("n", kind(value.Double))),
			write: func(w *table) {
				for part := range int64(2) {
					rows := make([]value.Row, 6000)
					for i := range rows {
						n := int64(i) + part*6000
						rows[i] = value.Row{n, fmt.Sprint("name ", n%97), float64(n) / 3}
						if n%11 == 0 {
							rows[i][1] = nil
						}
					}
					w.insert(rows...)
				}
			},
			where: []condition{{column: "id", op: ">=", value: int64(11_990)}},
		},
		"names that must be quoted": {
			schema: value.Schema{column("select", kind(value.Long)), column("ü-x", kind(value.StringKind)), column("UPPER", kind(value.Long))},
			write: func(w *table) {
				w.insert(value.Row{int64(1), "a", nil})
				w.insert(value.Row{int64(2), "b", int64(5)})
			},
			where: []condition{{column: "select", op: "=", value: int64(2)}, {column: "ü-x", op: "=", value: "a"}},
		},
	}
}

// edgeConditions are conditions that hold for one row only, which is the least or the greatest of its file.
func edgeConditions() []condition {
	out := make([]condition, 0, 2*len(edges()))
	for i, f := range edges()[1:] {
		for _, row := range [][]value.Value{edgeRows(2)[0], edgeRows(2)[1]} {
			c := condition{column: f.Name, op: "=", value: row[i+1]}
			switch f.Type.Kind {
			case value.TimestampKind, value.TimestampNTZ:
				c.blind = []string{duckdb}
			default:
			}
			if f.Name == "maybe" { // where there is NaN there are no bounds, which deltalake gives to Arrow as null, so that nothing is within
				c.blind, c.loses = []string{spark, deltalake, duckdb, polars}, []string{pyarrow}
			}
			out = append(out, c)
		}
	}
	return out
}

// scalarConditions gives a condition for each type that statistics are kept of: the last file has the rows.
func scalarConditions() []condition {
	out := make([]condition, 0, len(scalars()))
	for i, f := range scalars() {
		c := condition{column: f.Name, op: ">", value: scalarRow(15)[i]}
		switch f.Type.Kind {
		case value.Boolean, value.BinaryKind:
			continue
		case value.Float, value.Double:
			c.blind = []string{polars} // their statistics may hide NaN
		case value.TimestampKind:
			c.blind = []string{duckdb}
		default:
		}
		out = append(out, c)
	}
	return out
}

func TestWhatVarveWritesEveryEngineReads(t *testing.T) {
	t.Parallel()
	for name, s := range written() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTable(t, delta.NewMetadata(s.schema, s.partition, s.config), s.protocol, hidden())
			s.write(w)
			read := slices.DeleteFunc(readers(), func(engine string) bool { return s.refuses[engine] != "" })
			w.check(read...)
			for engine, reason := range s.refuses {
				_, err := tryAsk[rowsReply](t, map[string]any{"verb": "read", "engine": engine, "path": w.path})
				require.Error(t, err, "%s reads it, although %s: take it off the list", engine, reason)
			}
			for _, c := range s.where {
				w.checkSkipping(c, read...)
			}
			w.checkHistory(spark, deltalake)
			if s.changes {
				w.checkChanges(spark, deltalake)
			}
		})
	}
}
