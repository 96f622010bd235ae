package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"varve/internal/object"
)

// Engine is how commits name their writer.
const Engine = "varve"

// Commit is a change of a table that is prepared and not yet made. It is plain data: its JSON can wait in a store.
type Commit struct {
	// ID is random and the commit's own: by it a commit whose answer was lost is recognised.
	ID        string `json:"id"`
	Operation string `json:"operation"`
	// Parameters describe the operation. A text, a number or a boolean is written as it is, anything else as JSON text.
	Parameters map[string]any    `json:"parameters,omitempty"`
	Metrics    map[string]string `json:"metrics,omitempty"`
	// Metadata and Protocol replace the table's. A table that is created must have Metadata; its Protocol is MinProtocol
	// where there is none.
	Metadata *Metadata `json:"metadata,omitempty"`
	Protocol *Protocol `json:"protocol,omitempty"`
	Txns     []Txn     `json:"txns,omitempty"`
	Adds     []Add     `json:"adds,omitempty"`
	Removes  []Remove  `json:"removes,omitempty"`
	// Changes are the rows that the commit changes, where the table has a change data feed and they do not follow from Adds
	// and Removes.
	Changes []ChangeFile `json:"changes,omitempty"`
	// BlindAppend says that nothing of the table was read: the commit may follow any other.
	BlindAppend bool `json:"blind_append,omitempty"`
	// ReadTxns are the AppIDs whose Txn was read.
	ReadTxns     []string `json:"read_txns,omitempty"`
	UserMetadata string   `json:"user_metadata,omitempty"`
}

// Commit makes the change on top of what was read at a version; -1 creates the table. It gives the version that has the
// change, which is a later one where other commits came first that it can follow. A *ConflictError says that it cannot.
// After any other error the change may have been made: the same Commit, called again, finds out.
func (t Table) Commit(ctx context.Context, readVersion int64, c Commit) (int64, error) {
	if c.ID == "" {
		return 0, errors.New("commit without an ID")
	}
	metadata, err := t.prepare(ctx, readVersion, &c)
	if err != nil {
		return 0, err
	}
	body, err := t.encode(readVersion, c)
	if err != nil {
		return 0, fmt.Errorf("delta table %q: encode commit: %w", t.Root, err)
	}
	mine := touched(c.Adds, c.Removes)
	for version := readVersion + 1; ; version++ {
		done, err := t.tryCommit(ctx, version, version > readVersion+1, c, mine, body)
		if err != nil {
			return 0, err
		}
		if done {
			t.checkpointAfter(ctx, version, metadata)
			return version, nil
		}
	}
}

// prepare checks that the change may be made, and completes the protocol of a new table.
func (t Table) prepare(ctx context.Context, readVersion int64, c *Commit) (Metadata, error) {
	protocol, metadata, err := t.before(ctx, readVersion, *c)
	if err != nil {
		return Metadata{}, err
	}
	if readVersion < 0 && c.Protocol == nil {
		least := MinProtocol(c.Metadata.Schema)
		c.Protocol = &least
	}
	if c.Protocol != nil {
		protocol = *c.Protocol
	}
	if c.Metadata != nil {
		metadata = *c.Metadata
	}
	if err := protocol.checkWrite(metadata); err != nil {
		if unsupported, ok := errors.AsType[*UnsupportedError](err); ok {
			return Metadata{}, &UnsupportedError{Table: t.Root, Feature: unsupported.Feature, Write: true}
		}
		return Metadata{}, fmt.Errorf("delta table %q: %w", t.Root, err)
	}
	if err := t.checkFiles(protocol, metadata, *c); err != nil {
		return Metadata{}, err
	}
	return metadata, nil
}

// before gives what the table was at the version that a change was made from, once it is found that it may be written.
func (t Table) before(ctx context.Context, readVersion int64, c Commit) (Protocol, Metadata, error) {
	if readVersion < 0 {
		if c.Metadata == nil {
			return Protocol{}, Metadata{}, fmt.Errorf("delta table %q: a new table needs metadata", t.Root)
		}
		return Protocol{}, *c.Metadata, nil
	}
	snapshot, err := t.Version(ctx, readVersion)
	if err != nil {
		return Protocol{}, Metadata{}, err
	}
	if err := snapshot.checkLive(c); err != nil {
		return Protocol{}, Metadata{}, err
	}
	protocol, metadata := snapshot.Protocol(), snapshot.Metadata()
	if err := protocol.checkWrite(metadata); err != nil {
		return Protocol{}, Metadata{}, t.corrupt(readVersion, logDir, err)
	}
	return protocol, metadata, nil
}

// checkLive checks that a change removes what is there, and adds what is not.
func (s *Snapshot) checkLive(c Commit) error {
	removed := make(map[string]bool, len(c.Removes))
	vectors := make(map[string]*DeletionVector, len(c.Removes))
	for _, r := range c.Removes {
		key := keyOf(r.Path, r.DeletionVector)
		if !s.state.files.has(key) || removed[key.path] {
			return fmt.Errorf("delta table %q: remove %q: not in version %d", s.table.Root, r.Path, s.version)
		}
		removed[key.path], vectors[key.path] = true, r.DeletionVector
	}
	for _, a := range s.files {
		key := keyOf(a.Path, nil)
		if !removed[key.path] {
			removed[key.path] = false // live, and stays so
		}
	}
	for _, a := range c.Adds {
		if gone, live := removed[keyOf(a.Path, nil).path]; live && !gone {
			return fmt.Errorf("delta table %q: add %q: in version %d already", s.table.Root, a.Path, s.version)
		}
		if had := vectors[keyOf(a.Path, nil).path]; had.deletes() > a.DeletionVector.deletes() {
			return fmt.Errorf("delta table %q: add %q: rows that version %d deletes would come back", s.table.Root, a.Path, s.version)
		}
	}
	return nil
}

// checkFiles checks the file actions of a change against what the table is.
func (t Table) checkFiles(p Protocol, m Metadata, c Commit) error {
	for _, r := range c.Removes {
		if !r.DataChange {
			continue
		}
		if m.flag("delta.appendOnly") {
			return fmt.Errorf("delta table %q: %w", t.Root, ErrAppendOnly)
		}
	}
	if err := c.checkChanges(m); err != nil {
		if unsupported, ok := errors.AsType[*UnsupportedError](err); ok {
			unsupported.Table = t.Root
			return unsupported
		}
		return fmt.Errorf("delta table %q: %w", t.Root, err)
	}
	seen := map[string]bool{}
	for _, a := range c.Adds {
		name, err := filePath(a.Path)
		if err != nil {
			return fmt.Errorf("delta table %q: add %q: %w", t.Root, a.Path, err)
		}
		if seen[name] {
			return fmt.Errorf("delta table %q: add %q: there twice", t.Root, a.Path)
		}
		seen[name] = true
		if err := a.checkVector(p); err != nil {
			return fmt.Errorf("delta table %q: add %q: %w", t.Root, a.Path, err)
		}
		if len(a.PartitionValues) != len(m.PartitionColumns) {
			return fmt.Errorf("delta table %q: add %q: not the table's partition columns", t.Root, a.Path)
		}
		for _, name := range m.PartitionColumns {
			if _, ok := a.PartitionValues[name]; !ok {
				return fmt.Errorf("delta table %q: add %q: no value of partition column %q", t.Root, a.Path, name)
			}
		}
	}
	return nil
}

// tryCommit tries to be one version. False without an error says that another commit is it, which this one can follow.
// behind says that other commits came first already: where they did again, to read is cheaper than to write in vain.
func (t Table) tryCommit(ctx context.Context, version int64, behind bool, c Commit, mine map[string]bool, body []byte) (bool, error) {
	name := logName{version: version}
	key := join(t.Root, logDir, name.String())
	winner, err := []byte(nil), object.ErrNotFound
	if behind {
		winner, err = t.Store.Read(ctx, key, 0, -1)
	}
	if errors.Is(err, object.ErrNotFound) {
		put := t.Store.PutIfAbsent(ctx, key, body)
		if put == nil {
			return true, nil
		}
		// The store may have the commit although it says that it failed, or says that the version exists.
		winner, err = t.Store.Read(ctx, key, 0, -1)
		if err != nil {
			err = errors.Join(put, notThere(err))
		}
	}
	if err != nil {
		return false, fmt.Errorf("delta table %q: commit version %d: %w", t.Root, version, err)
	}
	actions, err := parseActions(winner)
	if err != nil {
		return false, t.corrupt(version, logDir+"/"+name.String(), err)
	}
	w := newState()
	w.apply(actions)
	if w.info.text("txnId") == c.ID {
		return true, nil
	}
	if reason := conflict(c, mine, w); reason != "" {
		return false, &ConflictError{Table: t.Root, Version: version, Reason: reason, Operation: w.info.text("operation")}
	}
	return false, nil
}

// notThere leaves out that an object is not there, where that only says that a failed put had no effect.
func notThere(err error) error {
	if errors.Is(err, object.ErrNotFound) {
		return nil
	}
	return err
}

// conflict says why a change cannot follow a winner, empty where it can.
func conflict(c Commit, mine map[string]bool, w *state) string {
	switch {
	case w.protocol != nil:
		return "the protocol was changed"
	case w.metadata != nil:
		return "the metadata were changed"
	}
	for _, txn := range c.Txns {
		if _, ok := w.txns[txn.AppID]; ok {
			return "the same writer's mark " + strconv.Quote(txn.AppID) + " was set"
		}
	}
	for _, appID := range c.ReadTxns {
		if _, ok := w.txns[appID]; ok {
			return "the writer's mark " + strconv.Quote(appID) + ", which was read, was set"
		}
	}
	adds, removes := w.files.adds(), slices.Collect(maps.Values(w.removed))
	for path := range touched(adds, removes) {
		if mine[path] {
			return "the same file was changed"
		}
	}
	onlyRearranges := len(mine) > 0 && rearranges(c.Adds, c.Removes) && c.Metadata == nil && c.Protocol == nil
	if c.BlindAppend || onlyRearranges {
		return ""
	}
	if !rearranges(adds, removes) {
		return "rows were changed"
	}
	return ""
}

// touched gives the paths of the files that actions are about.
func touched(adds []Add, removes []Remove) map[string]bool {
	paths := make(map[string]bool, len(adds)+len(removes))
	for _, a := range adds {
		paths[keyOf(a.Path, nil).path] = true
	}
	for _, r := range removes {
		paths[keyOf(r.Path, nil).path] = true
	}
	return paths
}

// rearranges tells that file actions leave the table's rows as they are.
func rearranges(adds []Add, removes []Remove) bool {
	return !slices.ContainsFunc(adds, func(a Add) bool { return a.DataChange }) &&
		!slices.ContainsFunc(removes, func(r Remove) bool { return r.DataChange })
}

// commitInfoJSON is the commitInfo that commits have, in Spark's order.
type commitInfoJSON struct {
	Timestamp           int64                      `json:"timestamp"`
	Operation           string                     `json:"operation"`
	OperationParameters map[string]json.RawMessage `json:"operationParameters"`
	ReadVersion         *int64                     `json:"readVersion,omitempty"`
	IsolationLevel      string                     `json:"isolationLevel"`
	IsBlindAppend       bool                       `json:"isBlindAppend"`
	OperationMetrics    map[string]string          `json:"operationMetrics,omitempty"`
	UserMetadata        string                     `json:"userMetadata,omitempty"`
	EngineInfo          string                     `json:"engineInfo"`
	TxnID               string                     `json:"txnId"`
}

// encode writes the lines of a commit.
func (t Table) encode(readVersion int64, c Commit) ([]byte, error) {
	now := t.now().UnixMilli()
	info := commitInfoJSON{
		Timestamp: now, Operation: c.Operation, OperationParameters: map[string]json.RawMessage{},
		IsolationLevel: "Serializable", IsBlindAppend: c.BlindAppend, OperationMetrics: c.Metrics,
		UserMetadata: c.UserMetadata, EngineInfo: Engine, TxnID: c.ID,
	}
	if readVersion >= 0 {
		info.ReadVersion = &readVersion
	}
	if len(c.Adds)+len(c.Removes) > 0 && rearranges(c.Adds, c.Removes) {
		info.IsolationLevel = "SnapshotIsolation"
	}
	for name, parameter := range c.Parameters {
		raw, err := encodeParameter(parameter)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		info.OperationParameters[name] = raw
	}
	lines := []any{map[string]any{"commitInfo": info}}
	if c.Protocol != nil {
		lines = append(lines, action{Protocol: c.Protocol})
	}
	if c.Metadata != nil {
		metadata := *c.Metadata
		if metadata.CreatedTime == 0 {
			metadata.CreatedTime = now
		}
		lines = append(lines, action{Metadata: &metadata})
	}
	for _, txn := range c.Txns {
		if txn.LastUpdated == 0 {
			txn.LastUpdated = now
		}
		lines = append(lines, action{Txn: &txn})
	}
	for _, r := range c.Removes {
		lines = append(lines, action{Remove: &r})
	}
	for _, file := range c.Changes {
		if file.PartitionValues == nil {
			file.PartitionValues = map[string]*string{}
		}
		lines = append(lines, action{CDC: &file})
	}
	for _, a := range c.Adds {
		if a.PartitionValues == nil {
			a.PartitionValues = map[string]*string{}
		}
		lines = append(lines, action{Add: &a})
	}
	var body []byte
	for _, line := range lines {
		var err error
		if body, err = appendJSON(body, line); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// encodeParameter writes an operation's parameter as Spark does: what is neither text, number nor boolean is JSON text.
func encodeParameter(v any) (json.RawMessage, error) {
	raw, err := appendJSON(nil, v)
	if err != nil {
		return nil, err
	}
	raw = raw[:len(raw)-1]
	if raw[0] != '[' && raw[0] != '{' {
		return raw, nil
	}
	quoted, err := appendJSON(nil, string(raw))
	if err != nil {
		return nil, err
	}
	return quoted[:len(quoted)-1], nil
}
