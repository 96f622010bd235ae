package verify

import "varve/internal/scd"

var _ scd.Event
