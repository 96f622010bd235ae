package overlay_test

import (
	"errors"
	"testing"

	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
	"varve/internal/object/overlay"
)

func TestOverlayIsAStore(t *testing.T) {
	t.Parallel()
	objecttest.Run(t, func(*testing.T) object.Store { return overlay.New(memstore.New()) })
}

func TestBaseStaysAsItIs(t *testing.T) {
	t.Parallel()
	base := memstore.New()
	for _, key := range []string{"a", "b", "c"} {
		if err := base.Put(t.Context(), key, []byte("base "+key)); err != nil {
			t.Fatal(err)
		}
	}
	s := overlay.New(base)
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "b", []byte("changed")); err != nil {
		t.Fatal(err)
	}
	if err := s.PutIfAbsent(t.Context(), "c", []byte("other")); !errors.Is(err, object.ErrExists) {
		t.Fatalf("put over base's object: %v, want %v", err, object.ErrExists)
	}
	if err := s.PutIfAbsent(t.Context(), "d", []byte("new")); err != nil {
		t.Fatal(err)
	}
	check := func(store object.Store, want map[string]string) {
		t.Helper()
		got := map[string]string{}
		for info, err := range store.List(t.Context(), "", "") {
			if err != nil {
				t.Fatal(err)
			}
			body, err := store.Read(t.Context(), info.Key, 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			got[info.Key] = string(body)
		}
		for key, body := range want {
			if got[key] != body {
				t.Errorf("%q holds %q, want %q", key, got[key], body)
			}
		}
		if len(got) != len(want) {
			t.Errorf("it has %v, want %v", got, want)
		}
	}
	check(s, map[string]string{"b": "changed", "c": "base c", "d": "new"})
	check(base, map[string]string{"a": "base a", "b": "base b", "c": "base c"})
	if _, err := s.Read(t.Context(), "a", 0, -1); !errors.Is(err, object.ErrNotFound) {
		t.Fatalf("read what was deleted: %v, want %v", err, object.ErrNotFound)
	}
}
