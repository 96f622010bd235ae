package scd

import "varve/internal/object/memstore"

var _ = memstore.New
