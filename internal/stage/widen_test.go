package stage_test

import (
	"fmt"
	"strings"
	"testing"

	"varve/internal/object/memstore"
	"varve/internal/stage"
	"varve/schemas"
)

const growing = `dataset: thing
source: {path: "thing/{day}/*.json", format: json}
columns: {id: {type: bigint}, n: {type: "%s"}, op: {type: string}, seq: {type: bigint}}
keys: [id]
sequence_by: seq
apply_as_deletes: op = 'D'
except_column_list: [op, seq]
targets:
  - {table: silver.now}
  - {table: silver.history, stored_as_scd_type: 2}
`

// TestWideningGivesTheTablesOfTheWiderType widens a column day by day, while late events need what is remembered of deleted
// and replaced rows. The tables are those that the widest type would have given from the first day.
func TestWideningGivesTheTablesOfTheWiderType(t *testing.T) {
	t.Parallel()
	for _, steps := range [][]string{
		{"tinyint", "smallint", "int", "bigint", "decimal(20,0)"},
		{"tinyint", "decimal(10,0)", "decimal(12,2)", "decimal(20,4)"},
		{"int", "decimal(12,2)"},
	} {
		t.Run(strings.Join(steps, " "), func(t *testing.T) {
			t.Parallel()
			worlds := []world{on(t, memstore.New(), memstore.New()), on(t, memstore.New(), memstore.New())}
			for i, step := range steps {
				day := fmt.Sprintf("2026-01-%02d", i+1)
				// key 1 is deleted on the first day and gets late events below its delete, key 2 late ones between others
				lines := fmt.Sprintf(`{"id":1,"n":%d,"seq":%d}`+"\n"+`{"id":1,"op":"D","seq":100}`+"\n"+`{"id":2,"n":%d,"seq":%d}`+"\n", i, 50-i, i, 90-2*i) +
					fmt.Sprintf(`{"id":2,"seq":%d}`+"\n"+`{"id":3,"n":1,"seq":%d}`+"\n", 91-2*i, i)
				for j, kind := range []string{step, steps[len(steps)-1]} {
					w := worlds[j]
					c, err := schemas.Parse(fmt.Appendf(nil, growing, kind))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := stage.PublishContract(t.Context(), w.warehouse, c); err != nil {
						t.Fatal(err)
					}
					if err := w.Landing.Put(t.Context(), "thing/"+day+"/a.json", []byte(lines)); err != nil {
						t.Fatal(err)
					}
					w.run(t, "thing", day)
				}
			}
			if diff := differences(content(t, worlds[0].warehouse), content(t, worlds[1].warehouse)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}
