package consulstore

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/waitlist"
)

// Who waits is told by a bell: a key for each client and name, outside the
// name's folder, which holds how those of the client stand. Whoever changes the
// queue rings, in the same transaction, for whom that changes anything. So a
// change wakes one or two clients and not all that wait, as a watch of the queue
// itself would.

const (
	// maxTurns bounds the turns that are told by one transaction, and maxBells the
	// bells that it rings, since it has at most 64 operations.
	maxTurns = 12
	maxBells = 24
)

// How a waiter stands, as its bell says it.
const (
	turnBell  = "turn"  // and the counter
	nextBell  = "next"  // first but for the turns, and, in µs, how long the last of those lasts
	firstBell = "first" // and no turn came before
	farBell   = "far"
)

// bells are the values of the bells of a queue, by client: a line of owner and
// standing for each waiter.
func bells(l waitlist.List) map[string]string {
	all := map[string]string{}
	told, first := false, true
	for i := range l {
		w := &l[i]
		stands := farBell
		switch {
		case w.Turn != waitlist.None:
			_, is := w.Told()
			told = told || is
			stands = turnBell + " " + w.Turn
		case first && told:
			stands, first = nextBell+" "+strconv.FormatInt(l[i-1].Claim.Microseconds(), 10), false
		case first:
			stands, first = firstBell, false
		}
		all[w.Client] += hexID(w.Owner.ID) + " " + stands + "\n"
	}
	return all
}

// bell is one as it was read: how each waiter of this client stands.
type bell map[string]string

func readBell(text string) bell {
	b := bell{}
	for line := range strings.Lines(text) {
		owner, stands, _ := strings.Cut(strings.TrimSpace(line), " ")
		b[owner] = stands
	}
	return b
}

// far reports whether all who wait by this client stand behind others.
func (b bell) far() bool {
	for _, stands := range b {
		if stands != farBell {
			return false
		}
	}
	return len(b) > 0
}

// stands reports whether one of those who wait stands so.
func (b bell) stands(so string) bool {
	for _, stands := range b {
		if kind, _, _ := strings.Cut(stands, " "); kind == so {
			return true
		}
	}
	return false
}

// tell tells what is new since before.
func (b bell) tell(before bell, tell func(quorum.Wake)) {
	for owner, stands := range b {
		if before[owner] == stands {
			continue
		}
		w := quorum.Wake{Owner: quorum.Owner{ID: ownerID(owner)}.Digest()}
		kind, number, _ := strings.Cut(stands, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err != nil: // nothing to tell, or an answer told it
			continue
		case kind == turnBell:
			w.Kind, w.Counter = quorum.WakeTurn, n
		case kind == nextBell:
			w.Kind, w.After = quorum.WakeNext, time.Duration(n)*time.Microsecond
		default:
			continue
		}
		tell(w)
	}
}

// ringing is what this client knows of its bells, by name: what its own
// transactions left, and its watches heard.
type ringing struct {
	mu    sync.Mutex
	names map[string]rung
}

// rung is the value of a bell, empty where there is none, at an index.
type rung struct {
	value string
	index uint64
}

// mostBells bounds those that are known. A watch that knows none watches the
// votes.
const mostBells = 10_000

func (r *ringing) note(name string, now rung) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case now.index < r.names[name].index:
	case now.value == "":
		delete(r.names, name)
	default:
		if r.names == nil || len(r.names) >= mostBells {
			r.names = map[string]rung{}
		}
		r.names[name] = now
	}
}

func (r *ringing) known(name string) (rung, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, ok := r.names[name]
	return now, ok
}

// rings are the bells that a change of the queue rings. A turn that there is no
// room for is not given yet: the next change of the queue does.
func (c *call) rings(before, after waitlist.List) (ops api.TxnOps) {
	folder := bellFolder(c.r.Key)
	if len(after) == 0 {
		if len(before) > 0 {
			ops = append(ops, c.op(api.KVDeleteTree, folder))
		}
		return ops
	}
	turns := 0
	for i := range after {
		if _, told := after[i].Told(); told {
			if turns++; turns > maxTurns {
				after[i].Turn = waitlist.None
			}
		}
	}
	had, has := bells(before), bells(after)
	for i := range after { // whose turn came stands before who lost it: that one hears by its next request
		client := after[i].Client
		if value := has[client]; value != had[client] && len(ops) < maxBells {
			ring := c.op(api.KVSet, folder+client)
			ring.KV.Value = []byte(value)
			ops, had[client] = append(ops, ring), value
		}
	}
	for client := range had { // those that there is no room for go with the last waiter
		if _, waits := has[client]; !waits && len(ops) < maxBells {
			ops = append(ops, c.op(api.KVDelete, folder+client))
		}
	}
	return ops
}
