package model_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

const (
	claim = 100 * time.Millisecond
	keep  = 20 * time.Second
)

func line(kind core.WaitKind, ticket int64, id byte, attempt uint32, mods ...mod) core.Request {
	return acquire(id, attempt, append([]mod{func(r *core.Request) {
		r.Wait, r.Keep, r.Claim = kind, keep, claim
		if r.Ticket = 0; ticket > 0 {
			r.Ticket = int64(epoch) + ticket
		}
	}}, mods...)...)
}

// take and queue stand in line at a ticket counted from epoch; 0 asks for one.
func take(ticket int64, id byte, attempt uint32, mods ...mod) core.Request {
	return line(core.WaitTake, ticket, id, attempt, mods...)
}

func queue(ticket int64, id byte, attempt uint32, mods ...mod) core.Request {
	return line(core.WaitQueue, ticket, id, attempt, mods...)
}

// tells demands what a request makes the store tell.
func (n *node) tells(req core.Request, want ...core.Wake) core.Answer {
	n.Helper()
	a, wakes := n.store.Carry(req, n.now)
	if !slices.Equal(wakes, want) {
		n.Fatalf("%s tells %+v, want %+v", show(req), wakes, want)
	}
	return a
}

// waits demands a place in the line.
func (n *node) waits(req core.Request, rank int) core.Answer {
	n.Helper()
	a := n.refused(req, core.Contended, false)
	if a.Rank != rank {
		n.Fatalf("%s has rank %d, want %d", show(req), a.Rank, rank)
	}
	return a
}

func turn(id byte, attempt uint32, counter int64) core.Wake {
	return core.Wake{Kind: core.WakeTurn, Owner: core.Owner{ID: core.ID{id}, Attempt: attempt}, Counter: start + counter}
}

func next(id byte, attempt uint32) core.Wake {
	return core.Wake{Kind: core.WakeNext, Owner: core.Owner{ID: core.ID{id}, Attempt: attempt}, After: claim}
}

var changed = core.Wake{Kind: core.WakeChanged}

func TestQueueTurns(t *testing.T) {
	cases(t, map[string]func(*node){
		"R13 first come, first served": func(n *node) {
			n.granted(take(0, 1, 1), 1)
			n.pass(time.Second)
			n.waits(take(0, 2, 1), 0)
			n.pass(time.Second)
			n.waits(take(0, 3, 1), 1)
			n.tells(release(1, 1), turn(2, 1, 1), next(3, 1))
			n.waits(take(0, 3, 1), 1) // it is not 3's turn, however often it asks
			n.granted(take(0, 2, 1), 2)
			n.tells(release(2, 1), turn(3, 1, 2))
			n.granted(take(0, 3, 1), 3)
		},
		"who stands in no line hears when the line is empty": func(n *node) {
			n.granted(take(1, 1, 1), 1)
			n.waits(take(2, 2, 1), 0)
			n.tells(release(1, 1), turn(2, 1, 1))
			n.waits(take(3, 3, 1), 1)
			n.tells(release(2, 1), turn(3, 1, 1))
			n.tells(release(3, 1), changed)
			n.granted(acquire(4, 1), 2)
			n.waits(take(5, 5, 1), 0)
			n.tells(release(5, 1)) // the name is not free
			n.tells(release(4, 1), changed)
		},
		"the ticket is the store's clock, and kept": func(n *node) {
			n.granted(take(0, 1, 1), 1)
			n.pass(time.Second)
			if a := n.waits(take(0, 2, 1), 0); a.Ticket != int64(n.now) || a.Left != ttl-time.Second {
				t.Errorf("ticket %d and %v left, want %d and 9s", a.Ticket, a.Left, n.now)
			}
			n.pass(time.Second)
			if a := n.waits(queue(0, 2, 2), 0); a.Ticket != int64(epoch)+1e6 {
				t.Errorf("ticket %d of a refresh, want that of the entry", a.Ticket)
			}
			if a := n.waits(queue(7, 2, 2), 0); a.Ticket != int64(epoch)+7 {
				t.Errorf("ticket %d of a refresh with a ticket, want that one", a.Ticket)
			}
		},
		"a turn is not a vote: queue never grants": func(n *node) {
			if a := n.refused(queue(5, 1, 1), core.Ready, false); a.Token != start || a.Ticket != int64(epoch)+5 {
				t.Errorf("ready with counter %d and ticket %d", a.Token, a.Ticket)
			}
			n.votes(0)
			n.granted(take(5, 1, 2), 1)
		},
		"R12 who asks once passes nobody": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.waits(take(1, 2, 1), 0)
			n.released(release(1, 1))
			if a := n.refused(acquire(3, 1), core.Contended, true); a.Left != claim {
				t.Errorf("the turn is said to last %v, want %v", a.Left, claim)
			}
			n.granted(take(1, 2, 1), 2)
		},
		"an older waiter displaces the head, also in its turn": func(n *node) {
			n.refused(queue(9, 1, 1), core.Ready, false)
			n.granted(take(5, 2, 1), 1) // its turn at once
			n.tells(release(2, 1), turn(1, 1, 1))
			if a := n.tells(queue(5, 3, 1)); a.Outcome != core.Ready {
				t.Errorf("the older one hears %v, want ready", a.Outcome)
			}
			n.waits(take(9, 1, 1), 1)
		},
		"a turn that nobody takes passes on": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.waits(take(1, 2, 1), 0)
			n.waits(take(2, 3, 1), 1)
			n.released(release(1, 1))
			n.pass(claim - time.Microsecond)
			n.waits(take(2, 3, 1), 1)
			n.pass(time.Microsecond)
			n.granted(take(2, 3, 1), 2)
			n.released(release(3, 1))
			n.granted(take(1, 2, 1), 3) // it comes back with its old ticket
		},
		"who asks in its turn is alive: the turn begins anew": func(n *node) {
			n.refused(queue(1, 1, 1), core.Ready, false)
			n.waits(queue(2, 2, 1), 1)
			n.pass(claim - time.Microsecond)
			n.refused(queue(1, 1, 1), core.Ready, false)
			n.pass(claim - time.Microsecond)
			n.waits(take(2, 2, 1), 1)
			n.granted(take(1, 1, 1), 1)
		},
		"an entry that is not kept up is over": func(n *node) {
			n.granted(acquire(1, 1, lasting(maxTTL)), 1)
			n.waits(take(1, 2, 1), 0)
			n.pass(keep)
			n.released(release(1, 1))
			n.granted(acquire(3, 1), 2)
		},
		"any verb brings near what the clock left far behind": func(n *node) {
			n.refused(queue(0, 1, 1), core.Ready, false)
			n.pass(-time.Hour)
			n.refused(release(2, 1), core.NotHeld, true)
			n.pass(claim)
			n.granted(take(0, 2, 1), 1<<core.StepBits+1)
		},
		"F016 a waiter that died is granted nothing": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.waits(take(1, 2, 1), 0)
			n.waits(take(2, 3, 1, shared), 1)
			n.waits(take(3, 4, 1), 2)
			n.released(release(1, 1))
			n.pass(claim)
			n.granted(take(2, 3, 1, shared), 2)
			n.waits(take(3, 4, 1), 0)
		},
	})
}

func TestQueueAndVotes(t *testing.T) {
	cases(t, map[string]func(*node){
		"the yield: an earlier attempt's vote is given up": func(n *node) {
			n.granted(take(5, 1, 1), 1)
			n.waits(take(2, 2, 1), 0)
			a := n.tells(queue(5, 1, 2), turn(2, 1, 1))
			if a.Outcome != core.Contended || a.Rank != 1 || a.Clean {
				t.Errorf("answer %+v, want contended, rank 1", a)
			}
			n.votes(0)
			n.granted(take(2, 2, 1), 2)
		},
		"a vote of the same attempt stays, and makes no entry": func(n *node) {
			n.granted(take(5, 1, 1), 1)
			n.granted(queue(5, 1, 1), 1)
			n.granted(take(5, 1, 1), 1)
			n.released(release(1, 1))
			n.granted(acquire(2, 1), 2)
		},
		"an attempt that is outlived changes nothing": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.waits(queue(5, 2, 2), 0)
			n.refused(take(5, 2, 1), core.Contended, false)
			n.released(release(1, 1))
			n.refused(acquire(2, 1), core.Contended, false)
			n.granted(take(5, 2, 2), 2)
		},
		"a repair is blocked by no turn": func(n *node) {
			n.refused(queue(1, 2, 1), core.Ready, false)
			n.granted(acquire(1, 1, repair(3)), 3)
			n.waits(queue(1, 2, 1), 0)
		},
		"a grant by another kind drops the entry": func(n *node) {
			n.refused(queue(1, 1, 1), core.Ready, false)
			n.granted(acquire(1, 1, repair(3)), 3)
			n.released(release(1, 1))
			n.granted(acquire(2, 1), 4)
		},
		"R09 force passes the queue": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.waits(take(1, 2, 1), 0)
			if a := n.tells(acquire(3, 1, force), changed); a.Outcome != core.Granted {
				t.Errorf("forced: %v", a.Outcome)
			}
			n.waits(take(1, 2, 1), 0)
		},
		"a release drops the entry, up to its attempt": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.waits(take(1, 2, 2), 0)
			n.refused(release(2, 1), core.NotHeld, false)
			n.released(release(2, 2, entomb))
			n.refused(take(1, 2, 2), core.Contended, true)
			n.released(release(1, 1))
			n.granted(acquire(3, 1), 2)
		},
		"out of range": func(n *node) {
			for _, change := range []mod{
				func(r *core.Request) { r.Keep = 0 }, func(r *core.Request) { r.Keep = core.KeepMax + 1 },
				func(r *core.Request) { r.Claim = 0 }, func(r *core.Request) { r.Claim = ttl + 1 },
				func(r *core.Request) { r.Ticket = -1 },
			} {
				n.invalid(take(1, 1, 1, change))
			}
			n.granted(acquire(2, 1), 1)
		},
		"no turn and no place in quarantine": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.waits(take(1, 2, 1), 0)
			n.store.Restart(n.store, "run2")
			n.tells(release(1, 1))
			n.refused(take(1, 2, 1), core.Quarantined, false)
		},
	})
}

func TestQueueOfReaders(t *testing.T) {
	cases(t, map[string]func(*node){
		"a newer reader does not pass a writer": func(n *node) {
			n.granted(take(1, 1, 1, shared), 0)
			n.waits(take(2, 2, 1), 0)
			n.waits(take(3, 3, 1, shared), 1)
			n.refused(acquire(4, 1, shared), core.Contended, true)
			n.tells(release(1, 1), turn(2, 1, 0), next(3, 1))
			n.granted(take(2, 2, 1), 1)
		},
		"the readers at the head go together": func(n *node) {
			n.granted(take(1, 1, 1), 1)
			n.waits(take(2, 2, 1, shared), 0)
			n.waits(take(3, 3, 1, shared), 1)
			n.waits(take(4, 4, 1), 2)
			n.waits(take(5, 5, 1, shared), 3)
			n.tells(release(1, 1), turn(2, 1, 1), turn(3, 1, 1), next(4, 1))
			n.granted(take(3, 3, 1, shared), 2)
			if a := n.granted(take(2, 2, 1, shared), 2); a.Readers != 2 {
				t.Errorf("%d readers, want 2", a.Readers)
			}
			n.waits(take(5, 5, 1, shared), 1)
			n.tells(release(2, 1))
			n.tells(release(3, 1), turn(4, 1, 2), next(5, 1))
		},
		"a demotion lets the readers in": func(n *node) {
			n.granted(take(1, 1, 1), 1)
			n.waits(take(2, 2, 1, shared), 0)
			n.tells(acquire(1, 2, convert, shared), turn(2, 1, 1))
			n.granted(take(2, 2, 1, shared), 2)
		},
	})
}
