package model

import (
	"slices"
	"strings"

	"github.com/quorumlock/quorum/internal/core"
)

// Store is a whole store: the simulator's node. The zero Store is one whose
// record is missing.
type Store struct {
	Server string // its identity, for every answer
	Record Record
	names  []named // sorted by key
}

type named struct {
	key  string
	name Name
}

// NewStore returns a store that is new by construction.
func NewStore(member, server, run string, now Time) *Store {
	return &Store{Server: server, Record: NewRecord(member, run, now)}
}

// Apply does what req asks of the store.
func (s *Store) Apply(req core.Request, now Time) core.Answer {
	a, _ := s.Carry(req, now)
	return a
}

// Carry is Apply, and also returns what there is to tell to those who watch
// the name.
func (s *Store) Carry(req core.Request, now Time) (core.Answer, []core.Wake) {
	var name *Name
	if !OfRecord(req.Verb) {
		name = s.name(req.Key)
	}
	a, wakes := Carry(&s.Record, name, req, now)
	a.Server = s.Server
	return a, wakes
}

// Peek returns what the store keeps of a name; it may be out of date, see
// [Name.Live].
func (s *Store) Peek(key string) Name {
	if i, ok := s.find(key); ok {
		return s.names[i].name.Clone()
	}
	return Name{}
}

// Look is Peek without the copy: what it returns must not be changed, and is
// good until the next request. It is nil where the store keeps nothing.
func (s *Store) Look(key string) *Name {
	if i, ok := s.find(key); ok {
		return &s.names[i].name
	}
	return nil
}

// Names returns how many names the store keeps.
func (s *Store) Names() int { return len(s.names) }

// Sweep drops the names that are idle.
func (s *Store) Sweep(now Time) {
	s.Record.Advance(now)
	s.names = slices.DeleteFunc(s.names, func(n named) bool { return n.name.Idle(&s.Record, now) })
}

// Drop deletes a vote or the votes of a name by hand, as people do to a lock
// that is stuck: the counter stays.
func (s *Store) Drop(key string) {
	if i, ok := s.find(key); ok {
		s.names[i].name.Votes = nil
	}
}

// Evict deletes all that is kept of a name, its counter too: by hand, or by a
// server that is short of memory. The record stays, and knows nothing of it.
func (s *Store) Evict(key string) {
	if i, ok := s.find(key); ok {
		s.names = slices.Delete(s.names, i, i+1)
	}
}

// Expire drops what a server drops by itself once its clock shows now, between
// two calls: the record does not move.
func (s *Store) Expire(now Time) {
	s.names = slices.DeleteFunc(s.names, func(n named) bool { return n.name.IdleAt() <= now })
}

// Forget loses everything, the record too, and begins the life run: its next
// request puts it in quarantine.
func (s *Store) Forget(run string) {
	*s = Store{Server: s.Server, Record: Record{Member: s.Record.Member, Run: run}}
}

// Restart begins the life run of a server that may lose what it acknowledged,
// with what old kept: s itself loses nothing, an earlier clone of s its last
// moments.
func (s *Store) Restart(old *Store, run string) {
	*s = *old.Clone()
	s.Record.Restart(run)
}

// Clone returns a Store that shares no memory with s.
func (s *Store) Clone() *Store {
	c := *s
	c.names = make([]named, len(s.names))
	for i := range s.names {
		c.names[i] = named{s.names[i].key, s.names[i].name.Clone()}
	}
	return &c
}

func (s *Store) find(key string) (int, bool) {
	return slices.BinarySearchFunc(s.names, key, func(n named, key string) int { return strings.Compare(n.key, key) })
}

func (s *Store) name(key string) *Name {
	i, ok := s.find(key)
	if !ok {
		s.names = slices.Insert(s.names, i, named{key: key})
	}
	return &s.names[i].name
}
