package workflows

import (
	"fmt"
	"strings"

	"varve/schemas/spelling"
)

// didYouMean suggests the name that was probably meant, or lists all of them.
func didYouMean(got string, names []string) string {
	if near := spelling.Nearest(got, names); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fmt.Sprintf(" (known: %s)", strings.Join(names, ", "))
}
