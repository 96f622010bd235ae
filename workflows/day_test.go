package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"varve/activities"
	"varve/internal/stage"
)

func TestStagesOfADayRunInOrder(t *testing.T) {
	t.Parallel()
	s := &script{}
	env := environment(t, s)
	inLane(t, env, activities.Ask{Day: "2026-09-14"})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"Pin", "Land", "Normalize"}, s.calls[:3])
	require.ElementsMatch(t, []string{"Prepare silver.now", "Prepare silver.history"}, s.calls[3:5])
	require.Equal(t, []string{"Audit", "Commit silver.now", "Commit silver.history", "Publish", "Record"}, s.calls[5:])
	got := s.recorded[0]
	require.Equal(t, stage.Succeeded, got.Status)
	require.Equal(t, int64(7), got.Run.Contract)
	require.Equal(t, map[string]int64{"silver.now": 3, "silver.history": 3, "gold.sales": 1}, got.Versions)
	require.Equal(t, map[string]int64{
		"files": 1, "records": 10, "events": 9, "quarantined": 1, "silver.now.inserted": 2, "silver.history.inserted": 2,
	}, got.Counts)
	require.Equal(t, []int64{4}, got.Batches)
}

func TestConflictPreparesOnlyThatTargetAgain(t *testing.T) {
	t.Parallel()
	s := &script{conflicts: map[string]int{"silver.history": 2}}
	env := environment(t, s)
	inLane(t, env, activities.Ask{Day: "2026-09-14"})
	require.Equal(t, []string{
		"Audit", "Commit silver.now",
		"Commit silver.history", "Prepare silver.history", "Audit",
		"Commit silver.history", "Prepare silver.history", "Audit",
		"Commit silver.history", "Publish", "Record",
	}, s.calls[5:])
	require.Equal(t, stage.Succeeded, s.recorded[0].Status)
}

func TestConflictWithoutEndFailsTheDay(t *testing.T) {
	t.Parallel()
	s := &script{conflicts: map[string]int{"silver.now": 1000}}
	env := environment(t, s)
	inLane(t, env, activities.Ask{Day: "2026-09-14"})
	require.Equal(t, stage.Failed, s.recorded[0].Status)
	require.Contains(t, s.recorded[0].Reason, "somebody else was first")
	require.NotContains(t, s.calls, "Commit silver.history")
}

func TestFailureIsRecordedWithItsReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ at, kind, status string }{
		"land":      {"Land", activities.SourceMissing, stage.Failed},
		"normalize": {"Normalize", activities.InvalidShare, stage.SetAside},
		"prepare":   {"Prepare silver.history", activities.Refused, stage.Failed},
		"audit":     {"Audit", activities.ApprovalNeeded, stage.SetAside},
		"publish":   {"Publish", activities.Internal, stage.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{fails: map[string]error{c.at: final(c.kind, "because of "+name)}}
			env := environment(t, s)
			var e ears
			e.listen(t, env)
			inLaneFor(t, env, "replay/1", activities.Ask{Day: "2026-09-14"})
			require.Len(t, s.recorded, 1)
			require.Equal(t, c.status, s.recorded[0].Status)
			require.Equal(t, "because of "+name, s.recorded[0].Reason)
			require.Equal(t, "Record", s.calls[len(s.calls)-1])
			require.Equal(t, []string{"replay/1 2026-09-14 " + c.status + " " + c.kind}, e.heard)
		})
	}
}

// TestDayWithBatchesSetAsideHasNotSucceeded has a run that finds nothing wrong, of a day that an earlier run set aside.
func TestDayWithBatchesSetAsideHasNotSucceeded(t *testing.T) {
	t.Parallel()
	s := &script{waiting: "batches [3] of the day are set aside"}
	env := environment(t, s)
	var e ears
	e.listen(t, env)
	inLaneFor(t, env, "replay/1", activities.Ask{Day: "2026-09-14"})
	require.Equal(t, []string{"replay/1 2026-09-14 set_aside ApprovalNeeded"}, e.heard)
}

func TestLedgerThatCannotBeWrittenFailsTheDay(t *testing.T) {
	t.Parallel()
	s := &script{fails: map[string]error{"Record": final(activities.PermissionDenied, "may not write")}}
	env := environment(t, s)
	var e ears
	e.listen(t, env)
	inLaneFor(t, env, "replay/1", activities.Ask{Day: "2026-09-14"})
	require.Equal(t, []string{"replay/1 2026-09-14 failed PermissionDenied"}, e.heard)
}
