package normalize_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/normalize"
	"varve/internal/object/objecttest"
	"varve/internal/scd"
	"varve/internal/source"
	"varve/internal/value"
	"varve/schemas"
)

func money(unscaled int64) value.Decimal {
	return value.Decimal{Unscaled: big.NewInt(unscaled), Scale: 2}
}

func TestEventsAreSortedByKeyAndSequenceAndAuthorOnlyWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	batches := w.land(t, changes(), "1.json", strings.Join([]string{
		`{"customer_id": "C2", "sequence_num": 1, "operation": "INSERT", "city": null, "amount": 1.5, "extra": {"x": 1}}`,
		`{"customer_id": "C1", "sequence_num": 20, "operation": "DELETE", "amount": "no number", "city": "gone"}`,
		`{"customer_id": "C1", "sequence_num": 10, "operation": null, "address": {"no": 7}, "city": "Old", "city": "Pune"}`,
		`{"customer_id": "C1", "sequence_num": 30, "address": null}`,
	}, "\n"))
	cs, events := w.run(t, changes(), batches, "run/1")
	file := "customer/2026-09-14/1.json"
	require.Equal(t, []normalize.Event{
		{
			Key: value.Row{"C1"}, Seq: int64(10), Batch: 1, File: file, Row: 3, Day: dayNum, By: map[string]value.Value{},
			Columns: map[string]value.Value{"address": value.Struct{{Name: "no", Value: int64(7)}}, "city": "Pune"},
		},
		{Key: value.Row{"C1"}, Op: scd.Delete, Seq: int64(20), Batch: 1, File: file, Row: 2, Day: dayNum, By: map[string]value.Value{}},
		{
			Key: value.Row{"C1"}, Seq: int64(30), Batch: 1, File: file, Row: 4, Day: dayNum, By: map[string]value.Value{},
			Columns: map[string]value.Value{"address": nil},
		},
		{
			Key: value.Row{"C2"}, Seq: int64(1), Batch: 1, File: file, Row: 1, Day: dayNum, By: map[string]value.Value{},
			Columns: map[string]value.Value{"city": nil, "amount": money(150)},
		},
	}, events)
	require.Equal(t, int64(1), cs.Deletes)
	require.Equal(t, map[string]int64{"extra": 1}, cs.Unknown)
	require.Equal(t, []string{"address", "amount", "city"}, cs.Authored)
	require.Zero(t, cs.Quarantined)
	loaded, err := normalize.Load(t.Context(), w.warehouse, cs.Key())
	require.NoError(t, err)
	require.Equal(t, cs.Path, loaded.Path)
}

func TestABadRecordGoesToQuarantineByItselfWithItsReasonAndNoValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	p.Contract.Columns[1].Required = true
	lines := []struct{ record, reason, detail string }{
		{`{"customer_id": "C1", "sequence_num": 1`, normalize.Malformed, "it is not one JSON object"},
		{`{"customer_id": "C1", secret}`, normalize.Malformed, "it is not valid JSON at byte 22"},
		{`"secret"`, normalize.Malformed, "it is not one JSON object"},
		{`{"sequence_num": 1, "city": "x"} {}`, normalize.Malformed, "it is not one JSON object"},
		{`{"sequence_num": 1, "city": "x"}`, normalize.NullKey, `key column "customer_id" is not there`},
		{`{"customer_id": null, "sequence_num": 1, "operation": "DELETE"}`, normalize.NullKey, `key column "customer_id" is null`},
		{`{"customer_id": "C1", "city": "x"}`, normalize.NullSequence, `the sequence "sequence_num" is null`},
		{`{"customer_id": "C1", "sequence_num": "secret"}`, normalize.NotConverted, `column "sequence_num": not a bigint: it is not a whole number`},
		{
			`{"customer_id": "C1", "sequence_num": 1, "amount": 1.234}`, normalize.NotConverted,
			`column "amount": not a decimal(5,2): it has more than 2 digits after the point`,
		},
		{`{"customer_id": "C1", "sequence_num": 1, "city": null}`, normalize.Required, `column "city" is required and null`},
		{"\xff secret", normalize.Encoding, "it is not UTF-8"},
	}
	all := append(make([]string, 0, len(lines)+1), `{"customer_id": "C0", "sequence_num": 0, "city": "good"}`)
	want := make([][4]any, 0, len(lines))
	for i, l := range lines {
		all = append(all, l.record)
		record := any(l.record)
		if l.reason == normalize.Encoding {
			record = value.Binary(l.record)
		}
		want = append(want, [4]any{int64(i + 2), l.reason, l.detail, record})
	}
	batches := w.land(t, p, "1.json", strings.Join(all, "\n"))
	cs, events := w.run(t, p, batches, "1")
	require.Len(t, events, 1)
	require.Equal(t, int64(len(lines)), cs.Quarantined)
	require.Equal(t, int64(4), cs.Reasons[normalize.Malformed])
	require.Equal(t, want, w.quarantine(t))
}

func TestCSVColumnsAreMatchedByTheHeaderOfEachFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := arrivals()
	p.Contract.Targets = p.Contract.Targets[:1]
	batches := w.land(t, p, "1.csv", "name,other,id\nAda,1,1\n\"\",2,2\n,3,3\n\\N,4,4\n\"\\N\",5,5\n")
	_, events := w.run(t, p, batches, "1")
	names := make([]any, 0, len(events))
	for i, e := range events {
		require.Equal(t, value.Row{int64(i + 1)}, e.Key)
		require.NotContains(t, e.Columns, "since")
		names = append(names, e.Columns["name"])
	}
	require.Equal(t, []any{"Ada", "", nil, nil, `\N`}, names)
	require.Equal(t, value.Struct{
		{Name: "day", Value: dayNum}, {Name: "flow", Value: ""}, {Name: "path", Value: "customer/2026-09-14/1.csv"}, {Name: "row", Value: int64(5)},
	}, events[4].Seq)
	batches = w.land(t, p, "2.csv", "id,since,name\n7,2026-01-02,Bob\n")
	_, events = w.run(t, p, batches, "2")
	require.Equal(t, map[string]value.Value{"since": value.Date(20455), "name": "Bob"}, events[0].Columns)
}

func TestCSVRecordsThatDoNotFitTheirHeaderAreQuarantined(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	batches := w.land(t, arrivals(), "1.csv", "id,name,since\n1,a,2026-01-01,x\n2,b\nx,c,\n4,d,01.02.2026\n5,e,\n\"6\" ,f,\n7,\"never\nends,\n")
	cs, events := w.run(t, arrivals(), batches, "1")
	require.Len(t, events, 1)
	require.Equal(t, map[string]int64{
		normalize.TooManyFields: 1, normalize.TooFewFields: 1, normalize.NotConverted: 2, normalize.Malformed: 2,
	}, cs.Reasons)
	require.Equal(t, [4]any{int64(1), normalize.TooManyFields, "it has 4 fields, not 3", "1,a,2026-01-01,x"}, w.quarantine(t)[0])
}

func TestAHeaderWithoutAKeyColumnCondemnsTheFileAndNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.landing.Put(t.Context(), "customer/2026-09-14/0.csv", []byte("name,since\nx,\ny,\n")))
	batches := w.land(t, arrivals(), "1.csv", "id,name,since\n1,a,\n")
	cs, events := w.run(t, arrivals(), batches, "1")
	require.Len(t, events, 1)
	require.Equal(t, map[string]int64{normalize.BadHeader: 2}, cs.Reasons)
	require.Equal(t, `the file's header lacks the key column "id"`, w.quarantine(t)[0][2])
}

// TestAFileThatIsNothingButABadHeaderIsTold has files all of whose records are taken for a header.
func TestAFileThatIsNothingButABadHeaderIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		bad  int64
	}{
		"lines that end in CR":    {"id,name\r1,a\r2,b\r", 1},
		"a quote that never ends": {"\"id,name\n1,a\n", 1},
		"something compressed":    {"\x1f\x8b\x08\x00\x00", 1},
		"no column of ours":       {"PAR1", 1},
		"a header and no record":  {"id,name\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			require.NoError(t, w.landing.Put(t.Context(), "customer/2026-09-14/0.csv", []byte(c.body)))
			batches := w.land(t, arrivals(), "1.csv", "id,name,since\n1,a,\n")
			cs, events := w.run(t, arrivals(), batches, "1")
			require.Len(t, events, 1)
			require.Equal(t, c.bad, cs.Reasons[normalize.BadHeader])
			require.Equal(t, c.bad, cs.Quarantined)
		})
	}
}

// TestAKeyOrASequenceIsNeverRounded has numbers that a double cannot tell apart.
func TestAKeyOrASequenceIsNeverRounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	p.Contract.Columns[0].Type, p.Contract.Columns[5].Type = kind(value.Double), kind(value.Float)
	p.Contract.Columns[1].Type = kind(value.Double)
	batches := w.land(t, p, "1.json", strings.Join([]string{
		`{"customer_id": 9007199254740993, "sequence_num": 1}`,
		`{"customer_id": "9007199254740993", "sequence_num": 1}`,
		`{"customer_id": 9007199254740992, "sequence_num": 16777217}`,
		`{"customer_id": 9007199254740992, "sequence_num": 16777216, "city": 9007199254740993}`,
		`{"customer_id": 0.1, "sequence_num": 1e3}`,
	}, "\n"))
	cs, events := w.run(t, p, batches, "1")
	require.Equal(t, map[string]int64{normalize.NotConverted: 3}, cs.Reasons)
	require.Len(t, events, 2)
	require.NotContains(t, w.quarantine(t)[0][2], "9007199254740993")
}

func TestAPartOfAKeyIsNeverNull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	p.Contract.Keys = []string{"address"}
	batches := w.land(t, p, "1.json", strings.Join([]string{
		`{"address": {"street": "a", "no": 1}, "sequence_num": 1}`,
		`{"address": {"street": "a", "no": null}, "sequence_num": 1}`,
		`{"address": {"street": "a"}, "sequence_num": 1}`,
		`{"address": {}, "sequence_num": 1}`,
	}, "\n"))
	cs, events := w.run(t, p, batches, "1")
	require.Equal(t, map[string]int64{normalize.NullKey: 3}, cs.Reasons)
	require.Len(t, events, 1)
}

func TestBoundsComeFromTheRecordAndMustBeNearItsDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := arrivals()
	p.Contract.Targets[1].History.MaxBehind = p.Contract.Targets[1].History.MaxAhead
	batches := w.land(t, p, "1.csv", "id,name,since\n1,a,2026-01-01\n2,b,\n3,c,2027-09-14\n4,d,2027-09-15\n5,e,1926-01-01\n")
	cs, events := w.run(t, p, batches, "1")
	require.Equal(t, map[string]int64{normalize.ByOutOfRange: 2}, cs.Reasons)
	bounds := make([]value.Value, 0, len(events))
	for _, e := range events {
		require.Len(t, e.By, 1)
		bounds = append(bounds, e.By["gold.then"])
	}
	require.Equal(t, []value.Value{value.Date(20454), dayNum, dayNum + 365}, bounds)

	p.Number, p.Contract.Targets[1].History.By = 2, "since"
	cs, _ = w.run(t, p, batches, "2")
	require.Equal(t, int64(1), cs.Reasons[normalize.NullBy])

	p.Number, p.Contract.Targets[1].History.By = 3, ""
	_, events = w.run(t, p, batches, "3")
	require.Len(t, events, 5)
	require.Equal(t, dayNum, events[4].By["gold.then"])
	bound, err := normalize.BoundType(t.Context(), w.deps.DB, p.Contract, p.Contract.Targets[1])
	require.NoError(t, err)
	require.Equal(t, kind(value.DateKind), bound)
}

func TestADeleteIsBoundByItsOwnColumnElseByItsDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	p.Contract.Columns = append(p.Contract.Columns, column("at", kind(value.TimestampKind)), column("gone", kind(value.DateKind)))
	p.Contract.Targets = []schemas.Target{{Table: "silver.h", SCDType: 2, History: schemas.History{By: "at", DeleteBy: "gone"}}}
	batches := w.land(t, p, "1.json", strings.Join([]string{
		`{"customer_id": "C1", "sequence_num": 1, "operation": "DELETE", "gone": "2026-09-01", "at": "no time"}`,
		`{"customer_id": "C2", "sequence_num": 1, "operation": "DELETE"}`,
		`{"customer_id": "C3", "sequence_num": 1, "operation": "DELETE", "gone": "no date"}`,
		`{"customer_id": "C4", "sequence_num": 1, "at": "2026-09-01T12:00:00Z"}`,
	}, "\n"))
	cs, events := w.run(t, p, batches, "1")
	require.Equal(t, map[string]int64{normalize.NotConverted: 1}, cs.Reasons)
	const september = value.Timestamp(1788220800000000)
	require.Equal(t, september, events[0].By["silver.h"])
	require.Equal(t, value.Timestamp(int64(dayNum)*86400e6), events[1].By["silver.h"])
	require.Equal(t, september+43200e6, events[2].By["silver.h"])
}

func TestAbsentColumnsMeanWhatTheContractSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	batches := w.land(t, p, "1.json", `{"customer_id": "C1", "sequence_num": 1, "operation": "x", "city": "a"}`)
	p.Number, p.Contract.Absent = 2, schemas.AbsentNull
	_, events := w.run(t, p, batches, "2")
	require.Equal(t, map[string]value.Value{"city": "a", "amount": nil, "address": nil}, events[0].Columns)
	p.Number, p.Contract.Absent = 3, schemas.AbsentRefuse
	cs, events := w.run(t, p, batches, "3")
	require.Empty(t, events)
	require.Equal(t, map[string]int64{normalize.AbsentColumn: 1}, cs.Reasons)
}

func TestASequenceOfSeveralColumnsIsAStruct(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	p.Contract.SequenceBy = "struct(sequence_num, operation)"
	batches := w.land(t, p, "1.json", `{"customer_id": "C1", "sequence_num": 2}
{"customer_id": "C1", "sequence_num": 1, "operation": "b"}
{"customer_id": "C1", "sequence_num": 1, "operation": "a"}
{"customer_id": "C1"}`)
	cs, events := w.run(t, p, batches, "1")
	require.Equal(t, map[string]int64{normalize.NullSequence: 1}, cs.Reasons)
	require.Equal(t, value.Struct{{Name: "sequence_num", Value: int64(1)}, {Name: "operation", Value: "a"}}, events[0].Seq)
	require.Equal(t, value.Struct{{Name: "sequence_num", Value: int64(2)}, {Name: "operation"}}, events[2].Seq)
}

func TestAnExpressionThatFailsForARecordQuarantinesItAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	p.Contract.ApplyAsDeletes = "operation::BIGINT = 1"
	batches := w.land(t, p, "1.json", `{"customer_id": "C1", "sequence_num": 2, "operation": "secret"}
{"customer_id": "C2", "sequence_num": 1, "operation": "1"}`)
	_, events := w.run(t, p, batches, "1")
	require.Len(t, events, 1)
	require.Equal(t, scd.Delete, events[0].Op)
	require.Equal(t, `apply_as_deletes: expression "operation::BIGINT = 1" cannot be computed: conversion`, w.quarantine(t)[0][2])
}

func TestTooManyBadRecordsStopTheDayAndAreInQuarantineAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	p.Contract.MaxInvalidShare = 0.5
	good := `{"customer_id": "C1", "sequence_num": 2}`
	batches := w.land(t, p, "1.json", good+"\nbad\nbad\n{}")
	_, err := normalize.Run(t.Context(), w.deps, p, batches, "1")
	share, ok := errors.AsType[*normalize.InvalidShareError](err)
	require.True(t, ok, err)
	require.ErrorContains(t, share, "3 of 4 records of customer are bad, most of them for malformed (2)")
	require.Len(t, w.quarantine(t), 3)
	more := w.land(t, p, "2.json", good+"\n"+good+"\nbad\nbad")
	_, err = normalize.Run(t.Context(), w.deps, p, more, "2")
	require.NoError(t, err, "exactly half is not more than half")
}

func TestNormalizingAgainChangesNothingAndAnotherContractReplacesTheQuarantine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	first := w.land(t, p, "1.json", `{"customer_id": "C1", "sequence_num": 1, "amount": 12345}`+"\nbad")
	second := w.land(t, p, "2.json", "bad too")
	both := slices.Concat(first, second)
	_, events := w.run(t, p, both, "1")
	_, sameEvents := w.run(t, p, both, "1, another attempt")
	require.Equal(t, events, sameEvents)
	quarantined := w.quarantine(t)
	require.Len(t, quarantined, 3)

	p.Number, p.Contract.Columns[2].Type.Precision = 2, 9
	_, events = w.run(t, p, first, "2")
	require.Len(t, events, 1)
	require.Len(t, w.quarantine(t), 2)
	snap, err := delta.At(w.warehouse, "quarantine/customer").Latest(t.Context())
	require.NoError(t, err)
	w.run(t, p, first, "3")
	after, err := delta.At(w.warehouse, "quarantine/customer").Latest(t.Context())
	require.NoError(t, err)
	require.Equal(t, snap.Version(), after.Version(), "no new version where nothing changed")
}

func TestABatchThatIsNotLandedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	batches := w.land(t, changes(), "1.json", "{}")
	batches[0].Number = 2
	_, err := normalize.Run(t.Context(), w.deps, changes(), batches, "1")
	require.ErrorContains(t, err, "batch 2 is not landed")
}

func TestAContractWhoseExpressionsDoNotFitIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := changes()
	batches := w.land(t, p, "1.json", "{}")
	p.Contract.ApplyAsDeletes = "operatoin = 'D'"
	_, err := normalize.Run(t.Context(), w.deps, p, batches, "1")
	require.ErrorContains(t, err, `contract of customer: apply_as_deletes: expression "operatoin = 'D'" at 1: no column is named "operatoin"`)
	p.Contract.ApplyAsDeletes = "operation"
	_, err = normalize.Run(t.Context(), w.deps, p, batches, "1")
	require.ErrorContains(t, err, "not true or false")
}

func TestACrashAtAnyStoreOperationLeavesOneChangeSetAndOneQuarantine(t *testing.T) {
	t.Parallel()
	shared := newWorld(t)
	for _, after := range []bool{false, true} {
		for at, done := 1, false; !done; at++ {
			w := shared.anew()
			batches := w.land(t, changes(), "1.json", `{"customer_id": "C1", "sequence_num": 1}`+"\nbad")
			faults := objecttest.NewFaults(w.warehouse)
			faults.DieAt(at, after)
			d := w.deps
			d.Warehouse = faults
			_, err := normalize.Run(t.Context(), d, changes(), batches, "1")
			done = faults.Count() < at
			if done {
				require.NoError(t, err)
			}
			cs, events := w.run(t, changes(), batches, "2")
			require.Len(t, events, 1, "operation %d, after %t", at, after)
			require.Equal(t, int64(1), cs.Quarantined)
			require.Len(t, w.quarantine(t), 1)
		}
	}
}

func TestEveryRecordBecomesOneEventOrOneBadRecord(t *testing.T) {
	t.Parallel()
	kinds := []string{
		`{"customer_id": "C1", "sequence_num": 1, "city": "a"}`, `{"customer_id": "C2", "sequence_num": 2, "operation": "DELETE"}`,
		`{"customer_id": null}`, `7`, `{`, `{"customer_id": "C1", "sequence_num": 1.5}`, `{"customer_id": "C1", "sequence_num": 1.0}`,
		`{"customer_id": "\u0000", "sequence_num": 9223372036854775807}`, `{"customer_id": 12345678901234567890123, "sequence_num": -1}`,
	}
	shared := newWorld(t)
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 1))
		lines := make([]string, 1+random.IntN(30))
		for i := range lines {
			lines[i] = kinds[random.IntN(len(kinds))]
		}
		cut := random.IntN(len(lines) + 1)
		w, p := shared.anew(), changes()
		batches := w.land(t, p, "1.json", strings.Join(lines[:cut], "\n"))
		batches = append(batches, w.land(t, p, "2.json", strings.Join(lines[cut:], "\n"))...)
		_, err := source.Land(t.Context(), w.warehouse, w.landing, p.Contract, clock)
		require.NoError(t, err)
		all, events := w.run(t, p, batches, "all")
		require.Equal(t, int64(len(lines)), all.Records, "seed %d", seed)
		require.Equal(t, all.Records, all.Events+all.Quarantined, "seed %d", seed)
		var apart int64
		for _, b := range batches {
			cs, _ := w.run(t, p, []source.Batch{b}, fmt.Sprintf("apart %d", b.Number))
			apart += cs.Events
		}
		require.Equal(t, all.Events, apart, "seed %d", seed)
		for i := 1; i < len(events); i++ {
			a, b := events[i-1], events[i]
			order := value.Compare(a.Key[0], b.Key[0])
			require.True(t, order < 0 || order == 0 && value.Compare(a.Seq, b.Seq) <= 0, "seed %d", seed)
		}
	}
}
