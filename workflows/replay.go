package workflows

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// ReplayInput asks to do a day again, with what was set aside taken up. It has no defaults.
type ReplayInput struct {
	Dataset string `json:"dataset" example:"customer"`
	Day     string `json:"day" example:"2026-09-14"`
	// Contract is the number of the contract to use; 0 means the newest.
	Contract int64 `json:"contract,omitempty"`
}

func (in ReplayInput) problems() []string {
	return DayInput{Dataset: in.Dataset, Day: in.Day, Contract: in.Contract}.problems()
}

// replay does a day again, through the lane.
func (w Workflows) replay(ctx workflow.Context, raw, extra converter.RawValue) (DayResult, error) {
	in, err := decode[ReplayInput](Replay, raw, extra)
	if err != nil {
		return DayResult{}, err
	}
	return w.askForDay(ctx, DayInput{Dataset: in.Dataset, Day: in.Day, Contract: in.Contract, Reopen: true})
}
