package etcdstore

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/waitlist"
)

// The queue of a name is one key, so that one compare covers it. It has no
// times, see package waitlist.

// line gives the model the queue as it was seen. A ticket is given in the order
// of asking, whatever the clocks.
func (m *move) line(now model.Time, ages map[string]time.Duration) {
	m.waiters, _ = waitlist.Parse(m.seen.kept[queueLeaf].text) // it was read before
	m.name.Queue = m.waiters.Entries(now, ages)
	if last := m.waiters.Last(m.req.Owner.ID); last > 0 && m.req.Wait.Queued() && m.req.Ticket == 0 {
		m.req.Ticket = max(int64(now), last+1)
	}
}

// lineAfter is the queue's text after the model has decided.
func (m *move) lineAfter(rec *model.Record) string {
	var ask *waitlist.Ask
	if m.req.Verb == core.Acquire && m.req.Wait.Queued() {
		ask = &waitlist.Ask{Owner: m.req.Owner, Keep: m.req.Keep}
	}
	return m.waiters.After(rec, &m.name, ask).String()
}

// lines is what a store keeps of queues in this process.
type lines struct {
	seen  waitlist.Seen
	mu    sync.Mutex
	lease lease // of the queues that this store has written
}

// lineLease: a queue that nobody wrote for as long as an entry lasts at most is
// gone.
const lineLease = 2 * core.KeepMax

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
