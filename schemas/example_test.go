package schemas_test

import (
	"errors"
	"fmt"

	"varve/schemas"
)

func ExampleParse() {
	_, err := schemas.Parse([]byte(`dataset: customer
source: {path: "customer/{day}/*.json", format: json}
columns:
  customer_id: {type: string}
  sequence_num: {type: bigint}
keys: [customer]
sequnce_by: sequence_num
targets:
  - {table: silver.customer, stored_as_scd_type: 3}
`))
	problems, _ := errors.AsType[*schemas.Problems](schemas.InFile(err, "datasets/customer.yaml"))
	for _, p := range problems.List {
		fmt.Println(p)
	}
	// Output:
	// line 1: sequence_by: is missing (the column that orders the changes of a key; a source without one says sequence_by: _arrival)
	// line 6: keys[0]: there is no column "customer" (did you mean "customer_id"?)
	// line 7: sequnce_by: unknown field "sequnce_by" (did you mean "sequence_by"?)
	// line 9: targets[0].stored_as_scd_type: must be 1 or 2 (1 keeps the current state, 2 the history)
}
