package quality_test

import (
	"errors"
	"testing"

	"varve/internal/quality"
)

func TestCheckStopsWhatItShould(t *testing.T) {
	t.Parallel()
	const none, approval, broken = "none", "approval", "broken"
	for name, tc := range map[string]struct {
		figures quality.Figures
		share   float64
		want    string
	}{
		"nothing goes":                       {quality.Figures{Live: 1000}, 0.1, none},
		"few go from a small table":          {quality.Figures{Live: 50, Gone: 50}, 0.1, none},
		"a hundred go":                       {quality.Figures{Live: 200, Gone: 100}, 0.1, none},
		"more than a hundred and the share":  {quality.Figures{Live: 1000, Gone: 101}, 0.1, approval},
		"more than a hundred, not the share": {quality.Figures{Live: 100_000, Gone: 101}, 0.1, none},
		"exactly the share":                  {quality.Figures{Live: 2000, Gone: 200}, 0.1, none},
		"the guard is off":                   {quality.Figures{Live: 1000, Gone: 1000}, 1, none},
		"a share of nothing":                 {quality.Figures{Live: 1000, Gone: 101}, 0, approval},
		"two current rows":                   {quality.Figures{Live: 1000, NotUnique: 1}, 0.1, broken},
		"a null key":                         {quality.Figures{Live: 1000, NullKeys: 1}, 1, broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := quality.Check(tc.figures, tc.share)
			got := none
			if _, ok := errors.AsType[*quality.ApprovalNeededError](err); ok {
				got = approval
			} else if _, ok := errors.AsType[*quality.BrokenError](err); ok {
				got = broken
			} else if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Fatalf("got %s, want %s", got, tc.want)
			}
		})
	}
}
