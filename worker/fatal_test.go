package worker

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkerThatIsGivenUpSaysSo(t *testing.T) {
	t.Parallel()
	s := &Service{Queue: "orders", Namespace: "shop", failed: make(chan error, 1)}
	cause := errors.New("namespace is gone")
	s.options(Config{}.WithDefaults()).OnFatalError(cause)
	err := <-s.Failed()
	require.ErrorIs(t, err, cause)
	require.ErrorContains(t, err, "task queue orders in namespace shop")
}
