package normalize_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"varve/internal/delta"
	"varve/internal/normalize"
	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/source"
	"varve/internal/sql"
	"varve/internal/value"
	"varve/schemas"
)

const (
	day    = "2026-09-14"
	dayNum = value.Date(20710)
)

func clock() time.Time { return time.Date(2099, 9, 15, 3, 30, 0, 0, time.UTC) }

func kind(k value.Kind) value.Type { return value.Type{Kind: k} }

func column(name string, t value.Type) schemas.Column { return schemas.Column{Name: name, Type: t} }

// changes is a contract for a feed of changes of customers.
func changes() schemas.Published {
	return schemas.Published{Number: 1, Contract: schemas.Contract{
		Dataset: "customer", Source: schemas.Source{Path: "customer/{day}/*.json", Format: schemas.FormatJSON},
		Columns: []schemas.Column{
			column("customer_id", kind(value.StringKind)), column("city", kind(value.StringKind)),
			column("amount", value.Type{Kind: value.DecimalKind, Precision: 5, Scale: 2}),
			column("address", value.Type{Kind: value.StructKind, Fields: []value.Field{
				{Name: "street", Type: kind(value.StringKind), Nullable: true}, {Name: "no", Type: kind(value.Long), Nullable: true},
			}}),
			column("operation", kind(value.StringKind)), column("sequence_num", kind(value.Long)),
		},
		Keys: []string{"customer_id"}, SequenceBy: "sequence_num", ApplyAsDeletes: "operation = 'DELETE'",
		ExceptColumnList: []string{"operation", "sequence_num"}, Absent: schemas.AbsentKeep, MaxInvalidShare: 1,
		Targets: []schemas.Target{{Table: "silver.customer", SCDType: 1}},
	}}
}

// arrivals is a contract for CSV files without a sequence.
func arrivals() schemas.Published {
	p := changes()
	c := &p.Contract
	c.Source = schemas.Source{
		Path: "customer/{day}/*", Format: schemas.FormatCSV,
		CSV: schemas.Dialect{Delimiter: ",", Quote: `"`, Header: true, NullText: `\N`},
	}
	c.Columns = []schemas.Column{
		column("id", kind(value.Long)), column("name", kind(value.StringKind)), column("since", kind(value.DateKind)),
	}
	c.Keys, c.SequenceBy, c.ApplyAsDeletes, c.ExceptColumnList = []string{"id"}, schemas.Arrival, "", nil
	c.Targets = []schemas.Target{
		{Table: "gold.now", SCDType: 1},
		{Table: "gold.then", SCDType: 2, History: schemas.History{By: "coalesce(since, _day)", MaxAhead: schemas.Duration(365 * 24 * time.Hour)}},
	}
	return p
}

type world struct {
	warehouse, landing object.Store
	deps               normalize.Deps
}

func newWorld(t *testing.T) world {
	t.Helper()
	db, err := sql.Open(sql.Options{Dir: t.TempDir(), MemoryMiB: 256, Threads: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	w := world{warehouse: memstore.New(), landing: memstore.New()}
	w.deps = normalize.Deps{Warehouse: w.warehouse, DB: db, Now: clock}
	return w
}

// anew gives an empty world with the same engine, which is what takes time to start.
func (w world) anew() world {
	w.warehouse, w.landing = memstore.New(), memstore.New()
	w.deps.Warehouse = w.warehouse
	return w
}

// land brings one file into bronze and gives its batch.
func (w world) land(t *testing.T, p schemas.Published, name, body string) []source.Batch {
	t.Helper()
	require.NoError(t, w.landing.Put(t.Context(), "customer/"+day+"/"+name, []byte(body)))
	batches, err := source.Claim(t.Context(), w.warehouse, w.landing, p.Contract, day, clock)
	require.NoError(t, err)
	require.Len(t, batches, 1)
	_, err = source.Land(t.Context(), w.warehouse, w.landing, p.Contract, clock)
	require.NoError(t, err)
	return batches
}

// run normalizes batches and gives the change set with its events.
func (w world) run(t *testing.T, p schemas.Published, batches []source.Batch, attempt string) (normalize.ChangeSet, []normalize.Event) {
	t.Helper()
	cs, err := normalize.Run(t.Context(), w.deps, p, batches, attempt)
	require.NoError(t, err)
	var events []normalize.Event
	for e, err := range normalize.Read(t.Context(), w.warehouse, cs, p.Contract) {
		require.NoError(t, err)
		events = append(events, e)
	}
	require.Len(t, events, int(cs.Events))
	return cs, events
}

// quarantine gives the quarantined records: row, reason, detail, record.
func (w world) quarantine(t *testing.T) [][4]any {
	t.Helper()
	snap, err := delta.At(w.warehouse, "quarantine/customer").Latest(t.Context())
	require.NoError(t, err)
	var rows [][4]any
	for row, err := range snap.Scan(t.Context(), nil) {
		require.NoError(t, err)
		record := row[6]
		if record == nil {
			record = row[7]
		}
		rows = append(rows, [4]any{row[2], row[4], row[5], record})
	}
	return rows
}
