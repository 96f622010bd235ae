package workflows

import "varve/internal/stage"

func day() { stage.Run(stage.Request{}) }
