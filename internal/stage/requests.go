package stage

import "time"

// Run says which run of which day a stage works for. Everything in it is a name or a number, so that it may travel
// through a workflow's history.
type Run struct {
	// ID names the run; a retried or resumed run has the same one.
	ID string `json:"id"`
	// Dataset is the contract's name.
	Dataset string `json:"dataset"`
	// Day is the logical day, as 2026-09-14.
	Day string `json:"day"`
	// Contract is the number of the published contract that the run is pinned to.
	Contract int64 `json:"contract"`
}

// PinRequest asks for the contract that a run is to use.
type PinRequest struct {
	Dataset string `json:"dataset"`
	// Contract is the number asked for; 0 means the newest.
	Contract int64 `json:"contract,omitempty"`
}

// Pinned is the contract of a run.
type Pinned struct {
	Contract int64    `json:"contract"`
	Hash     string   `json:"hash"`
	Targets  []string `json:"targets"`
}

// LandRequest asks to claim the new files of a day and to land every claimed batch.
type LandRequest struct {
	Run Run `json:"run"`
	// Reopen takes batches of the day that were set aside up again, as a replay does.
	Reopen bool `json:"reopen,omitempty"`
}

// Landed tells what of the day is in bronze.
type Landed struct {
	// Batches are the day's open batches: landed and not decided otherwise.
	Batches []int64 `json:"batches"`
}

// NormalizeRequest asks for the change set of batches.
type NormalizeRequest struct {
	Run     Run     `json:"run"`
	Batches []int64 `json:"batches"`
}

// Normalized names a change set.
type Normalized struct {
	// ChangeSet is the key of its manifest; empty where every batch is applied to every target already.
	ChangeSet string `json:"change_set"`
	// Files and Records are those of the batches in the change set; a record is an event or in quarantine.
	Files       int64 `json:"files"`
	Records     int64 `json:"records"`
	Events      int64 `json:"events"`
	Quarantined int64 `json:"quarantined"`
	// Unknown counts the records that have a field of a name which no column has, by that name; some names, where there are many.
	Unknown map[string]int64 `json:"unknown,omitempty"`
}

// PrepareRequest asks for the new files of one target.
type PrepareRequest struct {
	Run       Run    `json:"run"`
	ChangeSet string `json:"change_set"`
	Target    string `json:"target"`
}

// Prepared names a plan: a commit that is ready and not yet visible.
type Prepared struct {
	// Plan is the key of the plan; empty where the target has all of it already.
	Plan   string `json:"plan"`
	Target string `json:"target"`
	// Version is the table's version where nothing is to be done.
	Version int64            `json:"version"`
	Counts  map[string]int64 `json:"counts,omitempty"`
}

// AuditRequest asks whether plans may become visible.
type AuditRequest struct {
	Run   Run      `json:"run"`
	Plans []string `json:"plans"`
}

// Audited says that they may.
type Audited struct {
	Checks int `json:"checks"`
}

// CommitRequest asks to make one plan visible.
type CommitRequest struct {
	Run  Run    `json:"run"`
	Plan string `json:"plan"`
}

// Committed is what a target is now.
type Committed struct {
	Target  string           `json:"target"`
	Version int64            `json:"version"`
	Counts  map[string]int64 `json:"counts,omitempty"`
}

// PublishRequest asks for the models that read the run's targets.
type PublishRequest struct {
	Run Run `json:"run"`
	// Versions are the table versions that this run committed or found, by table.
	Versions map[string]int64 `json:"versions"`
}

// Published is what the models are now.
type Published struct {
	// Versions are the versions of the models' tables, by table.
	Versions map[string]int64 `json:"versions,omitempty"`
	// Waiting are models that were not made, each with the table that is not there yet.
	Waiting []string `json:"waiting,omitempty"`
}

// RecordRequest asks for the run's ledger row.
type RecordRequest struct {
	Run      Run    `json:"run"`
	Workflow string `json:"workflow"`
	// Status is succeeded, failed or set_aside; Reason says why where it is not succeeded.
	Status   string           `json:"status"`
	Reason   string           `json:"reason,omitempty"`
	Batches  []int64          `json:"batches,omitempty"`
	Counts   map[string]int64 `json:"counts,omitempty"`
	Versions map[string]int64 `json:"versions,omitempty"`
	Started  time.Time        `json:"started"`
}

// Recorded says what the ledger has of the run.
type Recorded struct {
	// Status is set_aside where batches of a day stay so that did not fail otherwise; Reason says which.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// MaintainRequest asks for the upkeep of a dataset's tables.
type MaintainRequest struct {
	Dataset string `json:"dataset"`
}

// Maintained tells what upkeep did, a line a table.
type Maintained struct {
	Tables []MaintainedTable `json:"tables"`
}

// MaintainedTable is the upkeep of one table.
type MaintainedTable struct {
	Table   string `json:"table"`
	Version int64  `json:"version"`
	// Done says what was done and why, or why nothing was.
	Done string `json:"done"`
}

// PendingRequest asks which days of a dataset should be done up to a day and are not.
type PendingRequest struct {
	Dataset string `json:"dataset"`
	Through string `json:"through"`
}

// Pending lists days, oldest first.
type Pending struct {
	Days []string `json:"days"`
}
