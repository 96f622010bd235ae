package delta

import (
	"bytes"
	"encoding/json"
	"testing"
)

func FuzzActionsAreReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"add":{"path":"a","partitionValues":{"p":null},"size":1,"modificationTime":2,"dataChange":true,"stats":"{}"}}`))
	f.Add([]byte(`{"metaData":{"id":"x","schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[]}}`))
	f.Add([]byte(`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["x"]}}`))
	f.Add([]byte(`{"remove":{"path":"a","deletionVector":{"storageType":"i","pathOrInlineDv":"x","offset":null,"sizeInBytes":1,"cardinality":1}}}`))
	f.Add([]byte("{\"commitInfo\":{\"txnId\":1}}\n\n{\"txn\":{\"appId\":\"a\",\"version\":1}}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		actions, err := parseActions(body)
		if err != nil {
			return
		}
		s := newState()
		s.apply(actions)
		for _, a := range actions {
			raw, err := appendJSON(nil, a)
			if err != nil {
				t.Fatalf("an action that was read cannot be written: %v", err)
			}
			back, err := parseActions(raw)
			if err != nil || len(back) != 1 {
				t.Fatalf("an action that was written cannot be read: %v in %s", err, raw)
			}
			again, err := json.Marshal(back[0])
			if err != nil {
				t.Fatal(err)
			}
			first, err := json.Marshal(a)
			if err != nil || !bytes.Equal(first, again) {
				t.Fatalf("got %s, want %s: %v", again, first, err)
			}
		}
	})
}

func FuzzLogNamesRoundTrip(f *testing.F) {
	f.Add("00000000000000000007.json")
	f.Add("00000000000000000007.00000000000000000009.compacted.json")
	f.Add("00000000000000000007.checkpoint.0000000001.0000000002.parquet")
	f.Add("00000000000000000007.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json")
	f.Fuzz(func(t *testing.T, name string) {
		if n, ok := parseLogName(name); ok && n.String() != name {
			t.Fatalf("got %q, want %q", n.String(), name)
		}
	})
}

func FuzzZ85IsReadOrRefused(f *testing.F) {
	f.Add("HelloWorld")
	f.Add("##093")
	f.Add("^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := decodeZ85(s)
		if err == nil && len(b)%4 == 0 && encodeZ85(b) != s {
			t.Fatalf("got %q, want %q", encodeZ85(b), s)
		}
	})
}

func FuzzDeletionVectorsAreReadOrRefused(f *testing.F) {
	for _, inline := range []string{"^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"} {
		b, err := decodeZ85(inline)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, blob []byte) {
		rows, err := parseRowSet(blob)
		if err != nil {
			return
		}
		if greatest := rows.max(); greatest >= 0 && !rows.has(greatest) {
			t.Fatalf("the greatest row %d is not in the set", greatest)
		}
		rows.cardinality()
	})
}
