package stage_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"varve/internal/ledger"
	"varve/internal/object/memstore"
	"varve/internal/quality"
	"varve/internal/stage"
	"varve/schemas"
)

const guarded = `dataset: thing
source: {path: "thing/{day}/*.json", format: json}
columns: {id: {type: bigint}, name: {type: string}, op: {type: string}, seq: {type: bigint}}
keys: [id]
sequence_by: seq
apply_as_deletes: op = 'D'
except_column_list: [op, seq]
targets: [{table: silver.thing, max_delete_share: %g}]
`

// TestGuardSetsADayAsideUntilItIsReplayed deletes most of a table in one day.
func TestGuardSetsADayAsideUntilItIsReplayed(t *testing.T) {
	t.Parallel()
	w := on(t, memstore.New(), memstore.New())
	at := clock()
	w.Now = func() time.Time { // runs follow each other
		at = at.Add(time.Second)
		return at
	}
	publish := func(share float64) {
		t.Helper()
		c, err := schemas.Parse(fmt.Appendf(nil, guarded, share))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stage.PublishContract(t.Context(), w.warehouse, c); err != nil {
			t.Fatal(err)
		}
	}
	publish(0.1)
	put := func(day string, n int, line string) {
		t.Helper()
		var body strings.Builder
		for i := range n {
			fmt.Fprintf(&body, line, i)
		}
		if err := w.Landing.Put(t.Context(), "thing/"+day+"/a.json", []byte(body.String())); err != nil {
			t.Fatal(err)
		}
	}
	put("2026-01-01", 200, `{"id":%d,"name":"x","op":"I","seq":1}`+"\n")
	w.run(t, "thing", "2026-01-01")
	put("2026-01-02", 150, `{"id":%d,"op":"D","seq":2}`+"\n")
	put("2026-01-03", 1, `{"id":%d,"name":"later","op":"I","seq":3}`+"\n")

	day := stage.DayRequest{Dataset: "thing", Day: "2026-01-02", Run: uuid.NewString()}
	_, err := w.Day(t.Context(), day)
	asked, ok := errors.AsType[*quality.ApprovalNeededError](err)
	if !ok || asked.Gone != 150 || asked.Live != 200 {
		t.Fatalf("got %v, want that 150 of 200 ask for approval", err)
	}
	w.run(t, "thing", "2026-01-03") // later days go on
	day.Run = uuid.NewString()
	_, err = w.Day(t.Context(), day)
	if _, aside := errors.AsType[*stage.SetAsideError](err); !aside {
		t.Fatalf("got %v, want that the day still waits", err)
	}
	if got := status(t, w, "2026-01-02"); got != stage.SetAside {
		t.Fatalf("run again without a replay the day is %s", got)
	}
	if n := len(rows(t, w.warehouse, "silver.thing")); n != 200 {
		t.Fatalf("%d rows before the replay, want all 200", n)
	}
	publish(1)
	day.Run, day.Reopen = uuid.NewString(), true
	if _, err := w.Day(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	got := rows(t, w.warehouse, "silver.thing")
	if len(got) != 51 || !strings.Contains(got[0], `name="later"`) {
		t.Fatalf("%d rows after the replay, the first %s; want 51, key 0 as the later day left it", len(got), got[0])
	}
	if got := status(t, w, "2026-01-02"); got != stage.Succeeded {
		t.Fatalf("the replayed day is %s", got)
	}
}

func status(t *testing.T, w world, day string) string {
	t.Helper()
	days, err := ledger.Days(t.Context(), w.warehouse, "thing")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range days {
		if d.Day == day {
			return d.Status
		}
	}
	t.Fatalf("the ledger has no day %s", day)
	return ""
}
