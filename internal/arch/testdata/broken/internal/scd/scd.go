package scd

import "varve/internal/object"

var _ object.Store
