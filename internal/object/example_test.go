package object_test

import (
	"context"
	"errors"
	"fmt"

	"varve/internal/object"
	"varve/internal/object/memstore"
)

func Example() {
	ctx := context.Background()
	warehouse := memstore.New()
	claim := func(who string) {
		err := warehouse.PutIfAbsent(ctx, "bronze/customer/_batches/7.json", []byte(who))
		fmt.Println(who, "lost:", errors.Is(err, object.ErrExists))
	}
	claim("one")
	claim("two")
	claim("one") // its own again, as after a crash
	for info, err := range warehouse.List(ctx, "bronze/customer/_batches/", "") {
		fmt.Println(info.Key, info.Size, err)
	}
	// Output:
	// one lost: false
	// two lost: true
	// one lost: false
	// bronze/customer/_batches/7.json 3 <nil>
}
