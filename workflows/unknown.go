package workflows

import (
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// unknown answers the start of a workflow that does not exist; without it the start would wait for a worker forever.
func unknown(ctx workflow.Context, _ converter.EncodedValues) error {
	name := workflow.GetInfo(ctx).WorkflowType.Name
	return invalid("there is no workflow %q%s; the workflows are %s", name, nearestOnly(name), strings.Join(Names(), ", "))
}

// nearestOnly suggests a name where one is near.
func nearestOnly(name string) string {
	hint := didYouMean(name, Names())
	if strings.HasPrefix(hint, " (known") {
		return ""
	}
	return hint
}
