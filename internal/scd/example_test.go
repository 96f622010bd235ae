package scd_test

import (
	"fmt"

	"varve/internal/scd"
	"varve/internal/value"
)

// A late event splits the history where it belongs; what is current stays.
func Example() {
	spec := scd.Spec{Columns: []scd.Column{{Name: "town", Tracked: true}}}
	at := func(seq int64, town string) scd.Event {
		return scd.Event{Seq: seq, Authored: spec.Author(map[string]value.Value{"town": town})}
	}
	key := value.KeyText([]value.Value{int64(7)})
	line := spec.Fold(key, []scd.Event{at(10, "Lund"), at(30, "Ystad"), at(20, "Malmö")}, scd.Barriers{})
	for _, r := range line.History() {
		fmt.Println(r.Values[0], r.Start, r.End)
	}
	row, _ := line.Current()
	fmt.Println("now", row.Values[0])
	// Output:
	// Lund 10 20
	// Malmö 20 30
	// Ystad 30 <nil>
	// now Ystad
}
