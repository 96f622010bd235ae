package layout_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"varve/internal/delta"
	"varve/internal/layout"
	"varve/internal/object/memstore"
	"varve/internal/value"
)

func ExampleOptimize() {
	ctx := context.Background()
	table := delta.At(memstore.New(), "silver/people")
	m := delta.NewMetadata(columns(), nil, nil)
	c := delta.Commit{ID: uuid.NewString(), Operation: "CREATE TABLE AS SELECT", Metadata: &m}
	for id := range int64(3) {
		add, err := table.WriteFile(ctx, delta.FileOptions{Schema: columns()}, each([]value.Row{{id, "Ann", false}}))
		if err != nil {
			fmt.Println(err)
			return
		}
		c.Adds = append(c.Adds, add)
	}
	if _, err := table.Commit(ctx, -1, c); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		r, err := layout.Optimize(ctx, table, layout.Options{ZOrder: "id"})
		fmt.Println(r.Version, r.Reason, err)
	}
	// Output:
	// 1 3 files became 1 <nil>
	// 1 nothing to do <nil>
}
