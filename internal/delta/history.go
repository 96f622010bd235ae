package delta

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Committed is what one commit did, as far as others must know of it.
type Committed struct {
	Version   int64
	Operation string
	Txns      []Txn
	// DataChange says that it added or removed rows, rather than only moving them.
	DataChange bool
}

// ReadCommit tells what the commit of one version did. A version whose commit file is cleaned up is object.ErrNotFound.
func (t Table) ReadCommit(ctx context.Context, version int64) (Committed, error) {
	name := logName{version: version}
	body, err := t.Store.Read(ctx, join(t.Root, logDir, name.String()), 0, -1)
	if err != nil {
		return Committed{}, fmt.Errorf("delta table %q: read the commit of version %d: %w", t.Root, version, err)
	}
	actions, err := parseActions(body)
	if err != nil {
		return Committed{}, t.corrupt(version, logDir+"/"+name.String(), err)
	}
	s := newState()
	s.apply(actions)
	adds, removes := s.files.adds(), slices.Collect(maps.Values(s.removed))
	return Committed{
		Version: version, Operation: s.info.text("operation"), Txns: slices.Collect(maps.Values(s.txns)),
		DataChange: !rearranges(adds, removes),
	}, nil
}
