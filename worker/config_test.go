package worker_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/schemas"
	"varve/worker"
)

func TestConfigurationWithDefaultsHasNoProblem(t *testing.T) {
	t.Parallel()
	c := worker.Config{}.WithDefaults()
	require.NoError(t, c.Validate())
	require.Equal(t, schemas.DefaultTaskQueue, c.Temporal.TaskQueue)
	require.Equal(t, filepath.Join(".varve", "temporal.db"), c.File)
	require.GreaterOrEqual(t, c.Stages, 2)
}

func TestEveryProblemOfAConfigurationIsToldWithItsField(t *testing.T) {
	t.Parallel()
	err := worker.Config{Temporal: schemas.Temporal{Port: 70000, UIPort: 70000}, Stages: -1}.Validate()
	require.Error(t, err)
	var fields []string
	for line := range strings.Lines(err.Error()) {
		field, _, _ := strings.Cut(line, ":")
		fields = append(fields, field)
	}
	require.Equal(t, []string{"Temporal.Port", "Temporal.UIPort", "Temporal.UIPort", "Temporal.TaskQueue", "File", "Stages", "Log"}, fields)
	_, err = worker.Join(t.Context(), worker.Config{Stages: -1}, watched{})
	require.ErrorContains(t, err, "Stages: -1")
}
