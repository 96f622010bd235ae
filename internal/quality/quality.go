// Package quality judges what a commit would show before anybody sees it: uniqueness, null keys, the delete guard. It
// reads figures, changes nothing and does not decide what happens to a commit that fails.
package quality

import "fmt"

// guardRows is how many keys may go in one commit whatever their share (semantics: Guard).
const guardRows = 100

// Checks is how many rules Check holds the figures against.
const Checks = 3

// Figures is what Check looks at: one commit of one table.
type Figures struct {
	Table string
	// Live are the keys alive before, Gone those of them that are not alive after.
	Live, Gone int64
	// NotUnique are keys that would have more than one current row, NullKeys rows with a null in their key.
	NotUnique, NullKeys int64
}

// ApprovalNeededError says that a commit would take away more than its contract lets pass unasked.
type ApprovalNeededError struct {
	Table      string
	Gone, Live int64
	// Share is the contract's max_delete_share.
	Share float64
}

func (e *ApprovalNeededError) Error() string {
	return fmt.Sprintf("table %q: %d of %d live keys would go, max_delete_share is %g: correct the source, or raise max_delete_share and replay the day (approvals come with a later version)",
		e.Table, e.Gone, e.Live, e.Share)
}

// BrokenError says that a commit would break a rule that every target keeps.
type BrokenError struct {
	Table, Rule string
	Keys        int64
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("table %q: %d keys would break the rule %q", e.Table, e.Keys, e.Rule)
}

// Check holds the figures against the rules. maxDeleteShare is the target's, between 0 and 1; 1 switches the guard off.
func Check(f Figures, maxDeleteShare float64) error {
	if f.NullKeys > 0 {
		return &BrokenError{Table: f.Table, Rule: "no null in a key", Keys: f.NullKeys}
	}
	if f.NotUnique > 0 {
		return &BrokenError{Table: f.Table, Rule: "one current row a key", Keys: f.NotUnique}
	}
	if maxDeleteShare < 1 && f.Gone > guardRows && float64(f.Gone) > maxDeleteShare*float64(f.Live) {
		return &ApprovalNeededError{Table: f.Table, Gone: f.Gone, Live: f.Live, Share: maxDeleteShare}
	}
	return nil
}
