package memstore

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/model"
)

// memory is a modelstore.Backend. Every call holds one mutex from its reading
// of the clock to its end, and does nothing under it that waits: that makes
// the calls atomic, and lets the store ignore contexts.
type memory struct {
	clock  clock.Clock
	origin clock.Instant
	wall   model.Time // the calendar time at origin
	member string
	server string

	mu     sync.Mutex
	lives  int
	record model.Record
	names  map[string]*entry
	peak   int // the most names since the map was made; a map never shrinks
	oldest *entry
	newest *entry

	watchers watchers
}

// entry is a name in the map and in the queue of the sweep, where it stands
// exactly once.
type entry struct {
	key  string
	name model.Name
	due  model.Time // when the sweep looks at it
	next *entry
}

const (
	sweepBatch = 4           // names looked at by one call; more than one, so that the sweep keeps up
	sweepAgain = time.Second // pause before a name is looked at again, at least
	shrinkFrom = 1024        // a smaller map is not worth a copy
	shrinkBy   = 4           // a map is copied when this part of it is left
)

func newMemory(member, server string, c clock.Clock) *memory {
	m := &memory{
		clock:  c,
		origin: c.Now(),
		wall:   model.Time(time.Now().UnixMicro()),
		member: member,
		server: server,
		names:  make(map[string]*entry),
	}
	m.record = model.NewRecord(member, m.run(), m.wall)
	return m
}

func (m *memory) now() model.Time {
	return m.wall + model.Time(m.clock.Now().Sub(m.origin)/time.Microsecond)
}

// run names the present life of the store.
func (m *memory) run() string { return m.server + "#" + strconv.Itoa(m.lives) }

func (m *memory) restart(keep bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lives++
	if !keep {
		m.names, m.peak, m.oldest, m.newest = make(map[string]*entry), 0, nil, nil
		m.record = model.Record{Member: m.member}
	}
	m.record.Restart(m.run())
}

// Update changes the record and a name.
func (m *memory) Update(_ context.Context, key string, f func(*model.Record, *model.Name, model.Time)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if key == "" {
		f(&m.record, nil, now)
		return nil
	}
	e, known := m.names[key]
	if !known {
		e = &entry{}
	}
	f(&m.record, &e.name, now)
	if !known && e.name.IdleAt() > now {
		e.key = strings.Clone(key) // the caller's may be a piece of something large
		m.names[e.key] = e
		m.peak = max(m.peak, len(m.names))
		m.push(e, now)
	}
	m.sweep(now)
	return nil
}

// View shows copies of the record and a name.
func (m *memory) View(_ context.Context, key string, f func(*model.Record, *model.Name, model.Time)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, name := m.record, &model.Name{}
	if e, known := m.names[key]; known {
		*name = e.name.Clone()
	}
	f(&record, name, m.now())
	return nil
}

// push puts an entry at the end of the sweep's queue. The queue is in order of
// pushing, not of due: a name may wait behind one that is due up to a TTL
// later, which is cheaper than a heap and late by no more than that.
func (m *memory) push(e *entry, now model.Time) {
	e.due, e.next = max(e.name.IdleAt(), now.Add(sweepAgain)), nil
	if m.oldest == nil {
		m.oldest = e
	} else {
		m.newest.next = e
	}
	m.newest = e
}

// sweep drops a few of the names that have been idle for long enough.
func (m *memory) sweep(now model.Time) {
	for range sweepBatch {
		e := m.oldest
		if e == nil || e.due > now {
			return
		}
		m.oldest = e.next
		m.record.Advance(now)
		if !e.name.Idle(&m.record, now) {
			m.push(e, now)
			continue
		}
		delete(m.names, e.key)
		if m.peak >= shrinkFrom && len(m.names) <= m.peak/shrinkBy {
			m.shrink()
		}
	}
}

// shrink copies the map, since Go's keeps the memory of its largest size. Each
// copy follows three times as many deletions as it has names to carry.
func (m *memory) shrink() {
	names := make(map[string]*entry, len(m.names))
	for key, e := range m.names {
		names[key] = e
	}
	m.names, m.peak = names, len(names)
}
