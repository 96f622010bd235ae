package delta

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// committed is when a version was committed.
type committed struct {
	version int64
	at      time.Time
}

// commitTimes gives the versions whose commits are in a listing, oldest first, with times that rise: a file's time that
// does not rise is taken as a millisecond after the one before. In-commit timestamps are not looked at.
func commitTimes(files []logFile) []committed {
	var out []committed
	for _, f := range files {
		if f.kind != commitFile {
			continue
		}
		c := committed{version: f.version, at: f.modified.UTC().Truncate(time.Millisecond)}
		if n := len(out); n > 0 && !c.at.After(out[n-1].at) {
			c.at = out[n-1].at.Add(time.Millisecond)
		}
		out = append(out, c)
	}
	return out
}

// HistoryEntry is what one commit tells of itself, under the names of Spark's DESCRIBE HISTORY.
type HistoryEntry struct {
	Version   int64     `json:"version"`
	Timestamp time.Time `json:"timestamp"`
	UserID    string    `json:"userId,omitempty"`
	UserName  string    `json:"userName,omitempty"`
	Operation string    `json:"operation,omitempty"`
	// OperationParameters are JSON of any type: texts often hold JSON themselves.
	OperationParameters map[string]json.RawMessage `json:"operationParameters,omitempty"`
	Job                 json.RawMessage            `json:"job,omitempty"`
	Notebook            json.RawMessage            `json:"notebook,omitempty"`
	ClusterID           string                     `json:"clusterId,omitempty"`
	ReadVersion         *int64                     `json:"readVersion,omitempty"`
	IsolationLevel      string                     `json:"isolationLevel,omitempty"`
	IsBlindAppend       *bool                      `json:"isBlindAppend,omitempty"`
	OperationMetrics    map[string]string          `json:"operationMetrics,omitempty"`
	UserMetadata        string                     `json:"userMetadata,omitempty"`
	EngineInfo          string                     `json:"engineInfo,omitempty"`
}

// History gives the newest commits that the log has, newest first; a limit below 1 asks for all. A commit that tells nothing
// of itself has a version and a time only.
func (t Table) History(ctx context.Context, limit int) ([]HistoryEntry, error) {
	files, err := t.listLog(ctx, 0, noVersion)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w at %q", ErrNoTable, t.Root)
	}
	times := commitTimes(files)
	slices.Reverse(times)
	if limit > 0 && limit < len(times) {
		times = times[:limit]
	}
	out := make([]HistoryEntry, len(times))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, c := range times {
		group.Go(func() error {
			actions, err := t.readCommit(ctx, c.version)
			if err != nil {
				return err
			}
			s := newState()
			s.apply(actions)
			out[i] = historyEntry(c, s.info)
			return nil
		})
	}
	return out, group.Wait()
}

// readCommit reads the actions of a version's commit.
func (t Table) readCommit(ctx context.Context, version int64) ([]action, error) {
	name := logName{version: version}
	body, err := t.Store.Read(ctx, join(t.Root, logDir, name.String()), 0, -1)
	if err != nil {
		return nil, t.corrupt(version, logDir+"/"+name.String(), err)
	}
	actions, err := parseActions(body)
	if err != nil {
		return nil, t.corrupt(version, logDir+"/"+name.String(), err)
	}
	return actions, nil
}

// historyEntry reads a commitInfo; a member of a type that it should not have is left out.
func historyEntry(c committed, info commitInfo) HistoryEntry {
	e := HistoryEntry{
		Version: c.version, Timestamp: c.at, UserID: info.text("userId"), UserName: info.text("userName"),
		Operation: info.text("operation"), ClusterID: info.text("clusterId"), IsolationLevel: info.text("isolationLevel"),
		UserMetadata: info.text("userMetadata"), EngineInfo: info.text("engineInfo"),
		Job: info["job"], Notebook: info["notebook"],
	}
	if ms, ok := info.number("inCommitTimestamp"); ok {
		e.Timestamp = time.UnixMilli(ms).UTC()
	}
	if n, ok := info.number("readVersion"); ok {
		e.ReadVersion = &n
	}
	var blind bool
	if json.Unmarshal(info["isBlindAppend"], &blind) == nil {
		e.IsBlindAppend = &blind
	}
	var parameters map[string]json.RawMessage
	if json.Unmarshal(info["operationParameters"], &parameters) == nil {
		e.OperationParameters = parameters
	}
	var metrics map[string]json.RawMessage
	if json.Unmarshal(info["operationMetrics"], &metrics) == nil && metrics != nil {
		e.OperationMetrics = make(map[string]string, len(metrics))
		for name, raw := range metrics {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
			e.OperationMetrics[name] = text
		}
	}
	return e
}
