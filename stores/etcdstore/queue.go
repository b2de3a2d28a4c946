package etcdstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// The queue of a name is one key, a waiter a line, so that one compare covers
// it. It has no times: etcd has no clock, and those of clients differ. Instead
// each client counts from when it first saw a line as it is. A waiter that asks
// again changes its line; one whose line stays the same for as long as its turn,
// or its entry, lasts is over. Where two clients see that at different times
// nothing worse happens than that the waiter comes back to its place.

// waiter is a line of the queue.
type waiter struct {
	owner  core.Owner
	mode   core.Mode
	ticket int64
	keep   time.Duration
	claim  time.Duration
	beat   int64  // grows with each request of the waiter
	turn   string // the counter when its turn came, after answered if it was told by an answer; else none
	text   string
}

const (
	none     = "-"
	answered = "="
)

// queueText writes a queue: a line is owner, attempt, mode, ticket, keep and
// claim in µs, beat, turn.
func queueText(all []waiter) string {
	if len(all) == 0 {
		return ""
	}
	lines := []string{version}
	for _, w := range all {
		lines = append(lines, fmt.Sprintf("%x %d %d %d %d %d %d %s", w.owner.ID[:], w.owner.Attempt, w.mode, w.ticket,
			w.keep.Microseconds(), w.claim.Microseconds(), w.beat, w.turn))
	}
	return strings.Join(lines, "\n")
}

func parseQueue(text string) (all []waiter, err error) {
	if text == "" {
		return nil, nil
	}
	first, rest, _ := strings.Cut(text, "\n")
	if first != version {
		return nil, fmt.Errorf("format %q of a queue is not %q", first, version)
	}
	for line := range strings.SplitSeq(rest, "\n") {
		f := &fields{rest: line}
		w := waiter{text: line}
		w.owner.ID = f.id()
		w.owner.Attempt = uint32(f.number(10, 64))
		w.mode = core.Mode(f.number(10, 8))
		w.ticket = f.number(10, 64)
		w.keep = time.Duration(f.number(10, 64)) * time.Microsecond
		w.claim = time.Duration(f.number(10, 64)) * time.Microsecond
		w.beat = f.number(10, 64)
		if w.turn = f.word(); f.err != nil {
			return nil, f.err
		}
		all = append(all, w)
	}
	return all, nil
}

// line gives the model the queue as it was seen, with ends that lie as far ahead
// as since says. A ticket is given in the order of asking, whatever the clocks.
func (m *move) line(now model.Time, since map[string]model.Time) {
	m.waiters, _ = parseQueue(m.seen.kept[queueLeaf].text) // it was read before
	m.name.Queue = nil
	own := false
	for _, w := range m.waiters {
		at, ok := since[w.text]
		if !ok {
			at = now
		}
		e := model.Entry{Owner: w.owner, Mode: w.mode, Ticket: w.ticket, Until: at.Add(w.keep), Claim: w.claim}
		if w.turn != none {
			e.Turn = at.Add(w.claim)
		}
		m.name.Queue = append(m.name.Queue, e)
		own = own || w.owner.ID == m.req.Owner.ID
	}
	if n := len(m.waiters); n > 0 && !own && m.req.Wait.Queued() && m.req.Ticket == 0 {
		m.req.Ticket = max(int64(now), m.waiters[n-1].ticket+1)
	}
}

// lineAfter is the queue's text after the model has decided.
func (m *move) lineAfter(counter int64) string {
	var all []waiter
	for _, e := range m.name.Queue {
		w := waiter{turn: none}
		for _, old := range m.waiters {
			if old.owner.ID == e.Owner.ID {
				w = old
			}
		}
		asks := m.req.Verb == core.Acquire && m.req.Wait.Queued() && e.Owner == m.req.Owner
		if asks {
			w.keep, w.beat = m.req.Keep, w.beat+1
		}
		switch {
		case e.Turn == 0:
			w.turn = none
		case asks:
			w.turn = answered + fmt.Sprint(counter)
		case w.turn == none:
			w.turn = fmt.Sprint(counter)
		}
		w.owner, w.mode, w.ticket, w.claim = e.Owner, e.Mode, e.Ticket, e.Claim
		all = append(all, w)
	}
	return queueText(all)
}

// lines is what a store keeps of queues in this process.
type lines struct {
	mu    sync.Mutex
	since map[string]map[string]model.Time // by name and line, when it was first seen
	lease lease                            // of the queues that this store has written
}

const (
	// A queue that nobody wrote for as long as an entry lasts at most is gone.
	lineLease = 2 * core.KeepMax
	// mostLines bounds the names whose queues are observed. To forget what was
	// seen lets waiters that died stay longer.
	mostLines = 10_000
)

// see notes the lines of a queue, and returns since when each was seen.
func (l *lines) see(name, text string, now model.Time) map[string]model.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.since[name]
	if text == "" {
		delete(l.since, name)
		return nil
	}
	since := map[string]model.Time{}
	for line := range strings.SplitSeq(text, "\n") {
		if at, ok := old[line]; ok && at <= now {
			since[line] = at
		} else {
			since[line] = now
		}
	}
	if l.since == nil || len(l.since) >= mostLines {
		l.since = map[string]map[string]model.Time{}
	}
	l.since[name] = since
	return since
}

// known returns since when each line of a queue was seen, as read last.
func (l *lines) known(name string) map[string]model.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since[name] // never changed once it is there
}

// lineLease returns the lease for the queues that this store writes. It may be
// shared, since what ends with it only ever refused grants.
func (s *Store) lineLease(ctx context.Context) (clientv3.LeaseID, error) {
	l := &s.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease.id != 0 && time.Since(l.lease.renewed) < lineLease-core.KeepMax {
		return l.lease.id, nil
	}
	granted, err := s.grant(ctx, seconds(lineLease))
	if err == nil {
		l.lease = granted
	}
	return l.lease.id, err
}

// lost says that a lease is not there any more.
func (l *lines) lost(id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease.id == id {
		l.lease = lease{}
	}
}
