package sim

import (
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// Mutant is a known mistake in a store, in the driver or in the world, as
// core.Bugs are of the protocol. A checker that no mistake fails is no
// evidence.
type Mutant uint8

// The mutants.
const (
	NoMutant              Mutant = iota
	NoTombstones                 // a store that was told to refuse late requests does not
	ForgetsUnseen                // a store that lost everything votes at once
	RollsBackUnseen              // a store that lost its last moments votes at once
	ShortQuarantine              // a quarantine is over at once
	ExtendRevives                // an extension of a vote that is over makes a new one
	ReleaseTakesAll              // a release of an attempt frees later ones too
	RaiseUnread                  // a store leaves quarantine without the steps of the others
	DisjointQuorums              // the strategy lets two quorums share no store
	CallsWithoutLimit            // a call that is not answered is waited for
	FenceLooksAway               // the resource does not look at tokens
	RefillsOutliveClose          // a closed locker goes on to bring stores back
	InnerRollsBack               // a composite takes back and repairs by itself, as a lease does
	SharesWithAll                // a store lets readers in beside a writer
	TwinsUnseen                  // a client counts one server under two names twice
	OwnersRepeat                 // every owner has the same 128 bits: breaks an assumption
	PromotesBesideReaders        // a store makes a reader the writer while others read
	DemotesUnmarked              // a store forgets with a demotion that a writer was there
	TurnsNeverEnd                // a turn that is not taken lasts for ever
	HeadsStay                    // an older waiter does not displace one whose turn it is
	ForceSpares                  // a store leaves the votes of others beside one taken by force
	mutants
)

var mutantNames = [mutants]string{
	"none", "no tombstones", "forgets unseen", "rolls back unseen", "quarantine over at once",
	"extension revives", "release takes all", "leaves quarantine unread", "disjoint quorums", "calls without limit",
	"fence looks away", "refills outlive close", "a composite rolls back by itself", "shares with all",
	"twins unseen", "owners repeat", "promotes beside readers", "demotes unmarked", "turns never end", "a turn is kept from older waiters", "force spares the others",
}

func (m Mutant) String() string { return mutantNames[m] }

// apply lets a store carry a request out, with the mistake.
func (m Mutant) apply(w *World, n *node, msg *message) (core.Answer, []core.Wake) {
	req, now := msg.req, n.time(w.now)
	switch m {
	case NoTombstones:
		req.Entomb = false
	case ShortQuarantine:
		n.store.Record.End = min(n.store.Record.End, now)
	case ReleaseTakesAll:
		if req.Verb == core.Release {
			req.Owner.Attempt = 1 << 30
		}
	case RaiseUnread:
		req.Raise.Step = 0
		if req.Verb == core.Raise {
			n.store.Record.Step, n.store.Record.Base = 0, 0
		}
	case PromotesBesideReaders:
		if req.Kind == core.Convert && req.Mode == core.Exclusive {
			req.Kind = core.Force
		}
	case SharesWithAll:
		if req.Mode == core.Shared && req.Verb == core.Acquire {
			req.Kind = core.Force
			a, wakes := n.store.Carry(req, now)
			a.Mode = core.Shared
			return a, wakes
		}
	}
	ticket := req.Ticket
	if req.Wait.Queued() && n.store.Look(req.Key) != nil {
		m.stand(n.store.Look(req.Key), &req)
	}
	a, wakes := n.store.Carry(req, now)
	if m == HeadsStay && ticket > 0 {
		a.Ticket = ticket
	}
	if m == DemotesUnmarked && req.Kind == core.Convert && req.Mode == core.Shared && a.Outcome == core.Granted {
		n.store.Look(req.Key).Writer = false
	}
	if m == ExtendRevives && req.Verb == core.Extend && a.Outcome == core.NotHeld {
		req.Verb = core.Acquire
		if a = n.store.Apply(req, now); a.Outcome == core.Granted {
			a.Token = req.Floor
		}
	}
	return a, wakes
}

// stand lets a store carry out a request that waits in line, with the mistake.
func (m Mutant) stand(name *model.Name, req *core.Request) {
	switch m {
	case TurnsNeverEnd:
		for i := range name.Queue {
			if e := &name.Queue[i]; e.Turn > 0 {
				e.Turn = e.Until
			}
		}
	case HeadsStay:
		if q := name.Queue; len(q) > 0 && q[0].Turn > 0 && q[0].Ticket > req.Ticket && q[0].Owner.ID != req.Owner.ID {
			req.Ticket = q[0].Ticket + 1
		}
	}
}

// restarted lets a store come back as if nothing had happened.
func (m Mutant) restarted(w *World, f *Fault, n *node) {
	switch {
	case m == ForgetsUnseen && f.Kind == Forget:
		now := n.time(w.now)
		n.store = model.NewStore(n.store.Record.Member, n.store.Server, n.store.Record.Run, now)
	case m == RollsBackUnseen && f.Kind == RollBack && n.kept != nil:
		n.store.Record.Standing = n.kept.Record.Standing
	}
}
