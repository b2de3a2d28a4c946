package etcdstore

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum/internal/core"
)

// compares are all that a move rests on.
func (s *Store) compares(m *move) []clientv3.Cmp {
	var all []clientv3.Cmp
	unchanged := func(key string, mod int64) {
		all = append(all, clientv3.Compare(clientv3.ModRevision(key), "=", mod))
	}
	if m.req.Verb != core.Release || m.record != nil {
		// Also where nothing of it is used: the record is what changes when a
		// counter is dropped, which a counter that is absent again does not show.
		unchanged(s.recordKey(), m.seen.recordMod)
	}
	if m.req.Key == "" {
		return all
	}
	folder, id := s.folder(m.req.Key), m.req.Owner.ID
	for _, leaf := range []string{voteLeaf, countLeaf, voteLeafOf(id, core.Shared), tombLeafOf(id)} {
		unchanged(folder+leaf, m.seen.kept[leaf].mod)
	}
	if m.moves || m.req.Verb == core.Release || m.req.Verb == core.Acquire && m.req.Kind != core.Repair {
		unchanged(folder+queueLeaf, m.seen.kept[queueLeaf].mod)
	}
	if m.vote != nil && m.vote.Mode == core.Exclusive {
		// No reader came in. One that went is in nobody's way.
		all = append(all, clientv3.Compare(clientv3.ModRevision(folder+readLeaf).WithPrefix(), "<", m.seen.revision+1))
	}
	return all
}

// writes are what a move writes, and last, for a reader, the question how many
// there are then.
func (s *Store) writes(m *move, own, marks lease, line clientv3.LeaseID) []clientv3.Op {
	var all []clientv3.Op
	put := func(key, text string, id clientv3.LeaseID) {
		all = append(all, clientv3.OpPut(key, text, clientv3.WithLease(id)))
	}
	folder := s.folder(m.req.Key)
	if m.record != nil {
		quarantine := m.seen.quarantine
		if m.quarantine {
			quarantine = int64(marks.id)
			put(s.quarantineKey(), version, marks.id)
		}
		put(s.recordKey(), recordText(m.record, quarantine), clientv3.NoLease)
	}
	for _, leaf := range m.drops {
		all = append(all, clientv3.OpDelete(folder+leaf))
	}
	if m.write {
		put(folder+m.leaf, voteText(*m.vote, m.seconds), own.id)
	}
	if m.tally != "" {
		put(folder+countLeaf, m.tally, clientv3.NoLease)
	}
	switch {
	case m.moves && m.queue == "":
		all = append(all, clientv3.OpDelete(folder+queueLeaf))
	case m.moves:
		put(folder+queueLeaf, m.queue, line)
	}
	for _, mark := range m.marks {
		put(folder+mark.leaf, mark.text, marks.id)
	}
	if m.renews() && m.vote.Mode == core.Shared {
		all = append(all, clientv3.OpGet(folder+readLeaf, clientv3.WithPrefix(), clientv3.WithCountOnly()))
	}
	return all
}
