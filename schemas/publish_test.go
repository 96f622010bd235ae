package schemas_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"varve/schemas"
)

// full uses every field of a contract that is published.
const full = `description: The CRM's customers.
source: {path: "customer/{day}/*.csv", format: csv, delivery: incremental, csv: {delimiter: ";", quote: "'", header: false, null_text: NULL}}
columns:
  customer_id: {type: int, required: true, description: "the CRM's <number> & nothing else"}
  city: {type: string}
  amount: {type: "decimal(10,2)"}
  operation: {type: string}
  changed: {type: date}
  number: {type: bigint}
sequence_by: [changed, number]
ignore_null_updates_column_list: [city]
absent: refuse
except_column_list: [operation, number]
max_invalid_share: 0.01
targets:
  - {table: silver.current, deletes: logical, max_delete_share: 1}
  - table: silver.history
    stored_as_scd_type: 2
    history: {start: valid_from, end: valid_to, current: valid, by: changed, delete_by: changed, max_behind: 30y, max_ahead: 7d}
    track_history_column_list: [city]
layout: {zorder: [customer_id], deletion_vectors: off, target_file_size: 128MiB}
schedule: {cron: "30 3 * * *", time_zone: Europe/Berlin, day: same, catch_up: 3d}
`

// sameContract compares contracts without the lines they came from.
func sameContract(t *testing.T, a, b schemas.Contract) bool {
	t.Helper()
	forget := func(c schemas.Contract) schemas.Contract {
		body, err := c.Publish(1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := schemas.ReadPublished("contract.json", body)
		if err != nil {
			t.Fatal(err)
		}
		return p.Contract
	}
	return reflect.DeepEqual(forget(a), forget(b)) && len(schemas.Diff(a, b)) == 0
}

func TestPublishedContractIsReadBack(t *testing.T) {
	t.Parallel()
	for _, edits := range []string{"", full, "sequence_by: _arrival\nignore_null_updates_except_column_list: []\n"} {
		c := parse(t, edits)
		body, err := c.Publish(7)
		if err != nil {
			t.Fatal(err)
		}
		p, err := schemas.ReadPublished("contract.json", body)
		if err != nil {
			t.Fatal(err)
		}
		if p.Number != 7 || p.Format != schemas.PublishedFormat || len(p.Hash) != 64 || !sameContract(t, p.Contract, c) {
			t.Errorf("got %+v of %+v", p, c)
		}
		again, err := p.Contract.Publish(7)
		if err != nil || !bytes.Equal(again, body) {
			t.Errorf("publishing what was read gives\n%s\n%v", again, err)
		}
	}
}

func TestHashSpeaksOfTheContractOnly(t *testing.T) {
	t.Parallel()
	of := func(text string, n int64) string {
		c, err := schemas.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		body, err := c.Publish(n)
		if err != nil {
			t.Fatal(err)
		}
		p, err := schemas.ReadPublished("contract.json", body)
		if err != nil {
			t.Fatal(err)
		}
		return p.Hash
	}
	plain := of(base, 1)
	if of("# a comment\n"+base+"\nabsent: keep\nlayout: {zorder: []}\n", 9) != plain {
		t.Error("a comment, a default written out or the number changes the hash")
	}
	if of(base+"absent: refuse\n", 1) == plain {
		t.Error("another contract has the same hash")
	}
}

func TestNewerOrChangedPublicationIsRefused(t *testing.T) {
	t.Parallel()
	body, err := parse(t, "").Publish(3)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"newer format":    {`"format": 1`, `"format": 2`, "or a newer one"},
		"no format":       {`"format": 1`, `"format": 0`, "no format number"},
		"changed":         {`"city"`, `"town"`, "was changed since"},
		"unknown field":   {`"number": 3`, `"number": 3, "colour": 1`, "newer varve"},
		"cut":             {"\n}\n", "", "is damaged"},
		"not an object":   {string(body), "[]", "is damaged"},
		"something after": {"\n}\n", "\n}{}\n", "is damaged"},
	} {
		changed := strings.Replace(string(body), c.from, c.to, 1)
		if _, err := schemas.ReadPublished("contract.json", []byte(changed)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := parse(t, "").Publish(0); err == nil {
		t.Error("number 0 was published")
	}
}

// TestFixtureOfFormat1IsRead holds every later version to files that were written with the first.
func TestFixtureOfFormat1IsRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join("testdata", "published-format-1.json")
	c := parse(t, full)
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := schemas.ReadPublished("contract.json", body)
	if err != nil {
		t.Fatal(err)
	}
	if p.Format != 1 || p.Number != 12 || !sameContract(t, p.Contract, c) {
		t.Errorf("got %+v; differs in %v", p, schemas.Diff(p.Contract, c))
	}
}
