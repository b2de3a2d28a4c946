package etcdstore

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// carry does what a request asks: it reads, lets the model decide, and writes
// in one transaction that compares all that the decision rests on. A conflict
// is no denial: the transaction then reads, and the decision is taken again.
func (s *Store) carry(ctx context.Context, req core.Request) (*move, error) {
	who := holder{req.Key, req.Owner.ID}
	var seen *sight
	if req.Verb == core.Extend || req.Verb == core.Release {
		seen = s.memory.recall(who)
	}
	if seen != nil && req.Verb == core.Release && seen.kept[voteLeaf].mod == 0 {
		seen = nil // a reader's release has to know whether others read
	}
	guess, sent := seen != nil, false
	for {
		if seen == nil {
			var err error
			if seen, err = s.prepare(ctx, req); err != nil {
				return nil, failed(explain(err), !sent)
			}
			guess = false
		}
		now := s.now()
		var ages map[string]time.Duration
		if guess { // what is remembered may lack who came since
			ages = s.lines.seen.Ages(req.Key, now)
		} else {
			ages = s.lines.seen.See(req.Key, seen.kept[queueLeaf].text, now)
		}
		m := decide(seen, req, now, s.gone.Load(), ages)
		if guess && m.answer.Outcome != core.Granted {
			seen = nil // what is remembered decides no refusal
			continue
		}
		if m.idle() {
			return m, nil
		}
		again, never, err := s.commit(ctx, m)
		if err != nil {
			return nil, failed(err, never && !sent)
		}
		if again == nil && !s.gone.Load() {
			return m, nil
		}
		if again == m.seen || again == nil { // it has to be read, and something may have been written
			again, sent = nil, true
		}
		seen, guess = again, false
	}
}

// failed is the error of a request. never says that nothing of it was, and will
// be, written.
func failed(err error, never bool) error {
	if never {
		return quorum.Undelivered(err)
	}
	return err
}

// prepare reads. Where an Acquire has no spare lease, it asks for one at the
// same time: what it is not used for, it is a spare for.
func (s *Store) prepare(ctx context.Context, req core.Request) (seen *sight, err error) {
	if req.Verb != core.Acquire || req.Wait == core.WaitQueue { // which never grants
		return s.look(ctx, req.Key)
	}
	length := seconds(req.TTL)
	if spare, ok := s.memory.spare(length, time.Now()); ok {
		s.memory.give(spare)
		return s.look(ctx, req.Key)
	}
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		l, err := s.grant(both, length)
		if err == nil {
			s.memory.give(l)
		}
		return err
	})
	group.Go(func() (err error) {
		seen, err = s.look(both, req.Key)
		return err
	})
	return seen, group.Wait()
}

// commit writes a move. It returns nil when that is done, and what to decide by
// when it was not: m.seen itself, if that has to be read first. never says of an
// error that nothing was written.
func (s *Store) commit(ctx context.Context, m *move) (again *sight, never bool, err error) {
	own, marks, line, err := s.leases(ctx, m)
	if err != nil {
		return nil, true, explain(err)
	}
	who := holder{m.req.Key, m.req.Owner.ID}
	known := s.revision.Load()
	reply, alive, err := s.send(ctx, m, own, marks, line)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound): // so nothing was written
		s.lines.lost(line)
		return m.seen, true, nil
	case err != nil && definite(err):
		s.giveBack(m, own)
		return nil, true, explain(err)
	case err != nil:
		s.memory.doubt(who, own)
		return nil, false, explain(err)
	case !reply.Succeeded:
		s.hear(known, reply.Header.Revision)
		s.giveBack(m, own)
		again, err = s.parse(m.req.Key, reply)
		return again, true, err
	case errors.Is(alive, rpctypes.ErrLeaseNotFound): // the vote is over, or ends with its lease
		return m.seen, false, nil
	case alive != nil:
		s.memory.doubt(who, own)
		return nil, false, explain(alive)
	}
	if m.quarantine {
		s.restart(reply.Header.Revision)
	}
	s.hear(known, reply.Header.Revision)
	s.learn(m, own, marks, reply)
	return nil, false, nil
}

// leases finds the lease of the vote, one for marks or for a quarantine, and that
// of the queue.
func (s *Store) leases(ctx context.Context, m *move) (own, marks lease, line clientv3.LeaseID, err error) {
	if m.moves && m.queue != "" {
		if line, err = s.lineLease(ctx); err != nil {
			return own, marks, line, err
		}
	}
	switch {
	case m.renews() && m.lease != 0:
		own = lease{id: m.lease, asked: m.seconds, seconds: m.seconds, renewed: time.Now()}
	case m.renews():
		if own, err = s.take(ctx, m.seconds, m.proof == 0); err != nil {
			return own, marks, line, err
		}
		m.seconds = own.seconds
	}
	if m.quarantine || len(m.marks) > 0 {
		lasting := m.req.MaxTTL
		if len(m.marks) > 0 {
			lasting += m.req.Limit // a tombstone outlasts the longest call
		}
		if marks, err = s.grant(ctx, seconds(lasting)); err != nil {
			s.giveBack(m, own)
		}
	}
	return own, marks, line, err
}

// take returns a spare lease, or asks for one.
func (s *Store) take(ctx context.Context, length int64, spare bool) (lease, error) {
	if l, ok := s.memory.spare(length, time.Now()); ok && spare {
		l.renewed = time.Now()
		return l, nil
	}
	return s.grant(ctx, length)
}

// giveBack makes a lease that a move took, and left unused, a spare again.
func (s *Store) giveBack(m *move, own lease) {
	if own.id != 0 && m.lease == 0 {
		s.memory.give(own)
	}
}

// send carries out the transaction and renews the vote's lease at the same
// time. Both have to succeed: a transaction still sees a vote whose time was
// over half a second ago, and only a renewal refuses it.
func (s *Store) send(ctx context.Context, m *move, own, marks lease, line clientv3.LeaseID) (reply *clientv3.TxnResponse, alive, err error) {
	txn := s.client().Txn(ctx).If(s.compares(m)...).Then(s.writes(m, own, marks, line)...).Else(s.reads(m.req.Key)...)
	renew := own.id
	if own.fresh {
		renew = m.proof
	}
	if renew == 0 {
		reply, err = txn.Commit()
		return reply, nil, err
	}
	// Where the transaction fails, nobody waits for the renewal.
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, alive = s.client().KeepAliveOnce(both, renew)
	}()
	reply, err = txn.Commit()
	if err != nil || !reply.Succeeded {
		cancel()
	}
	<-done
	return reply, alive, err
}

// learn notes what a move that was carried out has left.
func (s *Store) learn(m *move, own, marks lease, reply *clientv3.TxnResponse) {
	if m.quarantine {
		m.seen.quarantine, m.seen.over = int64(marks.id), false
	}
	who := holder{m.req.Key, m.req.Owner.ID}
	if m.req.Verb == core.Release {
		_, leaf := m.seen.vote(m.req.Owner.ID)
		if m.answer.Outcome != core.Granted {
			leaf = ""
		}
		s.memory.drop(who, m.seen.kept[leaf].lease)
		return
	}
	if !m.renews() {
		return
	}
	if m.vote.Mode == core.Shared {
		m.answer.Readers = int(reply.Responses[len(reply.Responses)-1].GetResponseRange().Count)
	}
	m.answer.TTL = time.Duration(m.seconds) * time.Second
	s.memory.hold(who, m.after(own, reply.Header.Revision), own)
}

// after is the sight that a move leaves, for its owner's next request. What is
// not the owner's is as it was: where it has changed, a compare fails.
func (m *move) after(own lease, revision int64) *sight {
	v := *m.seen
	v.revision, v.name = revision, m.name
	v.held = true
	if m.record != nil {
		v.record, v.recordMod = *m.record, revision
	}
	v.kept = make(map[string]kept, 3)
	for _, leaf := range []string{voteLeaf, countLeaf, queueLeaf, voteLeafOf(m.req.Owner.ID, core.Shared), tombLeafOf(m.req.Owner.ID)} {
		v.kept[leaf] = m.seen.kept[leaf]
	}
	for _, leaf := range m.drops {
		delete(v.kept, leaf)
	}
	if m.write {
		v.kept[m.leaf] = kept{revision, own.id, m.seconds, voteText(*m.vote, m.seconds)}
	}
	if m.moves {
		v.kept[queueLeaf] = kept{mod: revision, text: m.queue}
		if m.queue == "" {
			delete(v.kept, queueLeaf)
		}
	}
	if m.tally != "" {
		v.kept[countLeaf] = kept{mod: revision, text: m.tally}
	}
	v.name.Votes = []model.Vote{*m.vote}
	return &v
}
