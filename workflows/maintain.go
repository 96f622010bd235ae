package workflows

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"varve/activities"
	"varve/internal/stage"
)

// MaintainInput asks for the upkeep of a dataset's tables.
type MaintainInput struct {
	Dataset string `json:"dataset" example:"customer"`
}

func (in MaintainInput) problems() []string { return datasetProblems(in.Dataset) }

// maintain does upkeep beside the lane: it gives way to a merge and never holds one up.
func (w Workflows) maintain(ctx workflow.Context, raw, extra converter.RawValue) (stage.Maintained, error) {
	var a *activities.Activities
	in, err := decode[MaintainInput](Maintain, raw, extra)
	if err != nil {
		return stage.Maintained{}, err
	}
	tags, err := w.tag(ctx, in.Dataset, "")
	if err != nil {
		return stage.Maintained{}, err
	}
	done, err := call(ctx, heavy, "", a.Maintain, stage.MaintainRequest{Dataset: in.Dataset})
	status, out := failureOf(err)
	return done, firstError(tags.status(ctx, status), out)
}
