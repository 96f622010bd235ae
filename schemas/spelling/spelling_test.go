package spelling_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/schemas/spelling"
)

func TestNearestNameIsTheOneThatWasMeant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		names []string
		want  string
	}{
		"the same":              {"day", []string{"dataset", "day"}, "day"},
		"neighbours swapped":    {"dya", []string{"from", "day"}, "day"},
		"a letter too many":     {"sequence_bye", []string{"keys", "sequence_by"}, "sequence_by"},
		"a letter left out":     {"custmer", []string{"customer", "product"}, "customer"},
		"another case":          {"DAY", []string{"day"}, "day"},
		"the nearer of two":     {"Replya", []string{"Day", "Replay", "Repair"}, "Replay"},
		"a part of it":          {"column", []string{"except_column_list"}, "except_column_list"},
		"too little to tell":    {"se", []string{"dataset"}, ""},
		"nothing like it":       {"everything", []string{"dataset"}, ""},
		"longer than any name":  {strings.Repeat("a", 70), []string{strings.Repeat("a", 69) + "b"}, ""},
		"no names":              {"day", nil, ""},
		"letters beyond ASCII":  {"größe", []string{"grösse", "gruppe"}, "grösse"},
		"two mistakes at least": {"oops", []string{"op"}, "op"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, spelling.Nearest(c.text, c.names))
		})
	}
}
