package memstore_test

import (
	"testing"

	"varve/internal/object"
	"varve/internal/object/memstore"
	"varve/internal/object/objecttest"
)

func TestObeysTheLawOfStores(t *testing.T) {
	t.Parallel()
	objecttest.Run(t, func(*testing.T) object.Store { return memstore.New() })
}
