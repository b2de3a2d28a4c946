package etcdstore

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum/internal/core"
)

// lease is a lease of the server that belongs to one owner, or to nobody.
type lease struct {
	id      clientv3.LeaseID
	asked   int64     // seconds that were asked for
	seconds int64     // that the server gave: it may have a minimum
	renewed time.Time // before the request left that granted or renewed it
	fresh   bool      // granted in this very call
}

// spent reports whether a lease may be over soon. To ask the server to renew
// one that is over takes up to half a second.
func (l lease) spent(now time.Time) bool {
	return now.Sub(l.renewed) > time.Duration(l.seconds)*time.Second/2
}

// tenure is what this process knows of an owner's vote. It saves reads and is
// never trusted: every transaction compares what it rests on.
type tenure struct {
	seen  *sight
	lease lease
	doubt bool // a request under the lease may still arrive
}

// holder names a tenure.
type holder struct {
	name string
	id   core.ID
}

// memory is what a Store keeps of leases. A lease that was given back, and
// under which no request can still arrive, is a spare: the next owner takes it,
// which saves a grant, the slowest thing to ask of etcd. One that is left over
// ends by itself.
type memory struct {
	mu      sync.Mutex
	tenures map[holder]*tenure
	spares  []lease // the latest last
	swept   time.Time
}

// recall returns what was seen last of an owner's vote, or nil.
func (m *memory) recall(h holder) *sight {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tenures[h]; t != nil {
		return t.seen
	}
	return nil
}

// hold remembers an owner's vote. Now and then it drops what nobody released:
// leases that ended long ago.
func (m *memory) hold(h holder, seen *sight, l lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	doubt := m.tenures[h] != nil && m.tenures[h].doubt
	m.tenures[h] = &tenure{seen, l, doubt}
	if l.renewed.Sub(m.swept) < time.Minute {
		return
	}
	m.swept = l.renewed
	for h, t := range m.tenures {
		if age := l.renewed.Sub(t.lease.renewed); age > 4*time.Duration(t.lease.seconds)*time.Second {
			delete(m.tenures, h)
		}
	}
}

// doubt remembers that a request of the owner may still arrive.
func (m *memory) doubt(h holder, l lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tenures[h]
	if t == nil {
		t = &tenure{lease: l}
		m.tenures[h] = t
	}
	t.seen, t.doubt = nil, true
}

// drop forgets an owner's vote, which is gone. A lease without doubt that was
// the vote's is a spare then.
func (m *memory) drop(h holder, of clientv3.LeaseID) {
	m.mu.Lock()
	t := m.tenures[h]
	delete(m.tenures, h)
	m.mu.Unlock()
	if t != nil && !t.doubt && of != 0 && t.lease.id == of {
		m.give(t.lease)
	}
}

// give adds a spare.
func (m *memory) give(l lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.fresh = false
	m.spares = append(m.spares, l)
	for len(m.spares) > 0 && m.spares[0].spent(l.renewed) {
		m.spares = m.spares[1:]
	}
}

// spare takes the latest spare of a length, if one is not spent.
func (m *memory) spare(seconds int64, now time.Time) (lease, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.spares) - 1; i >= 0; i-- {
		if l := m.spares[i]; l.asked == seconds && !l.spent(now) {
			m.spares = append(m.spares[:i], m.spares[i+1:]...)
			return l, true
		}
	}
	return lease{}, false
}

// grant asks for a lease that lasts at least for some seconds.
func (s *Store) grant(ctx context.Context, seconds int64) (lease, error) {
	renewed := time.Now()
	reply, err := s.client().Grant(ctx, seconds)
	if err != nil {
		return lease{}, err
	}
	return lease{reply.ID, seconds, max(reply.TTL, seconds), renewed, true}, nil
}
