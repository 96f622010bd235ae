package delta_test

import (
	"context"
	"fmt"

	"varve/internal/delta"
	"varve/internal/object/memstore"
	"varve/internal/value"
)

func Example() {
	ctx := context.Background()
	table := delta.At(memstore.New(), "silver/people")
	schema := value.Schema{{Name: "name", Type: value.Type{Kind: value.StringKind}, Nullable: true}}

	add, err := table.WriteFile(ctx, delta.FileOptions{Schema: schema}, rowsOf(value.Row{"Ada"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	metadata := delta.NewMetadata(schema, nil, nil)
	version, err := table.Commit(ctx, -1, delta.Commit{
		ID: "7f5c", Operation: "CREATE TABLE AS SELECT", Metadata: &metadata, Adds: []delta.Add{add},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	snapshot, err := table.Version(ctx, version)
	if err != nil {
		fmt.Println(err)
		return
	}
	for row, err := range snapshot.Scan(ctx, nil) {
		fmt.Println(version, row, err)
	}
	// Output: 0 [Ada] <nil>
}
