package value_test

import (
	"testing"

	"varve/internal/value"
)

func TestWideningKeepsTheCanonicalText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ from, to, text string }{
		{"tinyint", "smallint", "-7"},
		{"int", "bigint", "2147483647"},
		{"int", "decimal(12,2)", "-42"},
		{"bigint", "decimal(20,0)", "9223372036854775807"},
		{"decimal(10,2)", "decimal(14,4)", "12.50"},
		{"string", "string", "x"},
	} {
		from, to := parsed(t, tc.from), parsed(t, tc.to)
		if !value.Widens(from, to) {
			t.Errorf("%s does not widen to %s", from, to)
		}
		v, err := value.Parse(from, tc.text)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := value.Canonical(value.Widen(v, to)), value.Canonical(v); got != want {
			t.Errorf("%s to %s: got %s, want %s", from, to, got, want)
		}
	}
}

func TestWhatLosesSomethingDoesNotWiden(t *testing.T) {
	t.Parallel()
	for _, tc := range [][2]string{
		{"bigint", "int"},
		{"int", "double"},
		{"bigint", "double"},
		{"double", "float"},
		{"float", "double"},
		{"int", "string"},
		{"int", "decimal(10,2)"},
		{"smallint", "decimal(5,0)"},
		{"bigint", "decimal(19,0)"},
		{"decimal(10,2)", "decimal(10,3)"},
		{"decimal(10,2)", "decimal(12,1)"},
		{"date", "timestamp_ntz"},
		{"struct<a:int>", "struct<a:bigint>"},
		{"array<int>", "array<bigint>"},
	} {
		if from, to := parsed(t, tc[0]), parsed(t, tc[1]); value.Widens(from, to) {
			t.Errorf("%s widens to %s", from, to)
		}
	}
}

func parsed(t *testing.T, text string) value.Type {
	t.Helper()
	got, err := value.ParseType(text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
