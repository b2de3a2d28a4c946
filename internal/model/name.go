package model

import (
	"slices"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

func byVoter(v Vote, id core.ID) int    { return v.Owner.ID.Compare(id) }
func byTomb(t Tomb, id core.ID) int     { return t.ID.Compare(id) }
func byForced(f Forced, id core.ID) int { return f.ID.Compare(id) }

// vote returns the vote of any attempt of id, or nil.
func (n *Name) vote(id core.ID) *Vote {
	if i, ok := slices.BinarySearchFunc(n.Votes, id, byVoter); ok {
		return &n.Votes[i]
	}
	return nil
}

// put keeps v in place of any vote of its ID and returns where it lies.
func (n *Name) put(v Vote) *Vote {
	i, ok := slices.BinarySearchFunc(n.Votes, v.Owner.ID, byVoter)
	if ok {
		n.Votes[i] = v
	} else {
		n.Votes = slices.Insert(n.Votes, i, v)
	}
	return &n.Votes[i]
}

// remove drops the vote of id, if there is one.
func (n *Name) remove(id core.ID) {
	if i, ok := slices.BinarySearchFunc(n.Votes, id, byVoter); ok {
		n.Votes = slices.Delete(n.Votes, i, i+1)
	}
}

// blocker returns the vote of another owner that forbids id a vote in mode,
// the one that lasts longest, or nil.
func (n *Name) blocker(id core.ID, mode core.Mode) *Vote {
	var found *Vote
	for i := range n.Votes {
		v := &n.Votes[i]
		if v.Owner.ID == id || mode == core.Shared && v.Mode == core.Shared {
			continue
		}
		if found == nil || v.Until > found.Until {
			found = v
		}
	}
	return found
}

// readers counts the shared votes.
func (n *Name) readers() int {
	if len(n.Votes) > 0 && n.Votes[0].Mode == core.Exclusive {
		return 0
	}
	return len(n.Votes)
}

// entomb refuses attempts of the owner's ID up to its own until t.
func (n *Name) entomb(o core.Owner, until Time) {
	i, ok := slices.BinarySearchFunc(n.Tombs, o.ID, byTomb)
	if !ok {
		n.Tombs = slices.Insert(n.Tombs, i, Tomb{ID: o.ID})
	}
	t := &n.Tombs[i]
	t.Attempt, t.Until = max(t.Attempt, o.Attempt), max(t.Until, until)
}

func (n *Name) entombed(o core.Owner) bool {
	i, ok := slices.BinarySearchFunc(n.Tombs, o.ID, byTomb)
	return ok && o.Attempt <= n.Tombs[i].Attempt
}

// outlived reports whether a younger attempt than the owner's waits.
func (n *Name) outlived(o core.Owner) bool {
	i := n.place(o.ID)
	return i >= 0 && o.Attempt < n.Queue[i].Owner.Attempt
}

// evict removes every vote but id's and remembers for whom.
func (n *Name) evict(id core.ID, label string, until Time) {
	for _, v := range n.Votes {
		if v.Owner.ID == id {
			continue
		}
		f := Forced{ID: v.Owner.ID, Label: label, Until: until}
		if i, ok := slices.BinarySearchFunc(n.Forced, f.ID, byForced); ok {
			n.Forced[i] = f
		} else {
			n.Forced = slices.Insert(n.Forced, i, f)
		}
		n.Last = core.PreviousUnknown
	}
	n.Votes = slices.DeleteFunc(n.Votes, func(v Vote) bool { return v.Owner.ID != id })
}

// forcedBy returns the label of who took the name from id by force.
func (n *Name) forcedBy(id core.ID) (label string, ok bool) {
	i, ok := slices.BinarySearchFunc(n.Forced, id, byForced)
	if !ok {
		return "", false
	}
	return n.Forced[i].Label, true
}

// settle drops what is over. With a maxTTL, which only a client of the store's
// set knows, it also brings near whatever ends later than any request could
// have asked for: the clock went back since. Of the queue everybody knows it.
func (n *Name) settle(rec *Record, maxTTL time.Duration, now Time) {
	if maxTTL > 0 {
		n.bring(now.Add(maxTTL), now.Add(maxTTL).Add(maxTTL))
	}
	for i := range n.Queue {
		e := &n.Queue[i]
		e.Until, e.Turn = min(e.Until, now.Add(core.KeepMax)), min(e.Turn, now.Add(e.Claim))
	}
	live := len(n.Votes)
	n.Votes = slices.DeleteFunc(n.Votes, func(v Vote) bool { return v.Until <= now })
	if len(n.Votes) < live {
		n.Last = core.PreviousExpired
	}
	n.Tombs = slices.DeleteFunc(n.Tombs, func(t Tomb) bool { return t.Until <= now })
	n.Forced = slices.DeleteFunc(n.Forced, func(f Forced) bool { return f.Until <= now })
	n.Queue = slices.DeleteFunc(n.Queue, func(e Entry) bool { return e.Until <= now })
	if n.Known && len(n.Votes) == 0 && len(n.Queue) == 0 && now >= n.Keep && n.Counter < rec.start() {
		n.Known, n.Writer, n.Counter, n.Keep, n.Last = false, false, 0, 0, core.PreviousUnknown
	}
}

// bring moves ends that lie beyond far to it. A tombstone outlives far by the
// limit of a call, which is at most as long again.
func (n *Name) bring(far, farther Time) {
	for i := range n.Votes {
		n.Votes[i].Until = min(n.Votes[i].Until, far)
	}
	for i := range n.Tombs {
		n.Tombs[i].Until = min(n.Tombs[i].Until, farther)
	}
	for i := range n.Forced {
		n.Forced[i].Until = min(n.Forced[i].Until, far)
	}
	n.Keep = min(n.Keep, far.Add(core.CounterRest))
}

// Live drops what is over from n and returns the votes that stand. They share
// memory with n.
func (n *Name) Live(rec *Record, maxTTL time.Duration, now Time) []Vote {
	n.settle(rec, maxTTL, now)
	return n.Votes
}

// Idle drops what is over from n and reports whether nothing is left, so that
// the whole name may be dropped: its next token, counted from the record's
// step, is above all that it gave. Call [Record.Advance] before, or a counter
// that has rested long enough still looks needed.
func (n *Name) Idle(rec *Record, now Time) bool {
	n.settle(rec, 0, now)
	return !n.Known && len(n.Votes) == 0 && len(n.Tombs) == 0 && len(n.Forced) == 0 && len(n.Queue) == 0
}

// IdleAt is when the name may be idle at the earliest, if nobody uses it.
func (n *Name) IdleAt() Time {
	at := n.Keep
	for _, v := range n.Votes {
		at = max(at, v.Until)
	}
	for _, t := range n.Tombs {
		at = max(at, t.Until)
	}
	for _, f := range n.Forced {
		at = max(at, f.Until)
	}
	for _, e := range n.Queue {
		at = max(at, e.Until)
	}
	return at
}
