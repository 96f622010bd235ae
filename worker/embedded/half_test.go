package embedded

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// half is a service that does not start to its end.
type half struct {
	start   func() error
	stopped int
}

func (h *half) Start() error { return h.start() }

func (h *half) Stop() error {
	h.stopped++
	return nil
}

func TestServiceThatStartsHalfIsStoppedBeforeAnotherTry(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]error{"says so": errors.New("no"), "would end the process": &fatalError{message: "no"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &half{start: func() error {
				if _, ends := errors.AsType[*fatalError](why); ends {
					panic(why)
				}
				return why
			}}
			require.ErrorIs(t, begin(h), why)
			require.Equal(t, 1, h.stopped)
		})
	}
	whole := &half{start: func() error { return nil }}
	require.NoError(t, begin(whole))
	require.Zero(t, whole.stopped)
}
