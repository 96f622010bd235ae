package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// The search attributes that workflows set on themselves, all keywords.
const (
	DatasetAttribute = "VarveDataset"
	DayAttribute     = "VarveDay"
	StatusAttribute  = "VarveStatus"
)

// AttributeNames lists the search attributes that a namespace should have.
func AttributeNames() []string { return []string{DatasetAttribute, DayAttribute, StatusAttribute} }

// running is the status of what has not ended.
const running = "running"

// tags sets search attributes, where the namespace has them.
type tags struct{ on bool }

// tag marks a workflow with its dataset, its day where it has one, and that it runs. Whether there are attributes is a fact
// about the namespace and not about the workflow, so it is written into the history once.
func (w Workflows) tag(ctx workflow.Context, dataset, day string) (tags, error) {
	var t tags
	if err := workflow.SideEffect(ctx, func(workflow.Context) any { return w.Attributes }).Get(&t.on); err != nil {
		return t, fmt.Errorf("read whether there are search attributes: %w", err)
	}
	updates := []temporal.SearchAttributeUpdate{
		temporal.NewSearchAttributeKeyKeyword(DatasetAttribute).ValueSet(dataset),
		temporal.NewSearchAttributeKeyKeyword(StatusAttribute).ValueSet(running),
	}
	if day != "" {
		updates = append(updates, temporal.NewSearchAttributeKeyKeyword(DayAttribute).ValueSet(day))
	}
	return t, t.set(ctx, updates...)
}

// status says how a workflow ended.
func (t tags) status(ctx workflow.Context, status string) error {
	return t.set(ctx, temporal.NewSearchAttributeKeyKeyword(StatusAttribute).ValueSet(status))
}

func (t tags) set(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	if !t.on {
		return nil
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		return fmt.Errorf("set search attributes: %w", err)
	}
	return nil
}
