package consulstore

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/waitlist"
)

// The queue of a name is one key, which every change of it compares: a waiter
// that joins writes nothing that its holder compares. It has no times, see
// package waitlist.
//
// What has to be quick compares no queue, so that none who join hold it up. Who
// takes its turn leaves its line there, which counts for nothing while its vote
// stands, or while the counter names it as served. A release ends the vote, of
// which the first in line hears, and only then sees to the queue.

// waits reports whether the call is a waiter's.
func (c *call) waits() bool {
	return c.verb == acquire && (c.r.Wait == quorum.WaitTake || c.r.Wait == quorum.WaitQueue)
}

// newcomer is the least instant of a call that asks for a place in line: its
// ticket is to be above all others.
func (c *call) newcomer(snap *snapshot) model.Time {
	if last := snap.queue.Last([16]byte(c.r.Owner.ID)); last > 0 && c.waits() && c.r.Ticket == 0 {
		return model.Time(last + 1)
	}
	return 0
}

// served says whose lines count no more.
func served(count countValue, votes []model.Vote) func([16]byte) bool {
	return func(id [16]byte) bool {
		return hexID(id) == count.Served || slices.ContainsFunc(votes, func(v model.Vote) bool { return v.Owner.ID == id })
	}
}

// planQueue writes the queue if it changed, and else compares it where the
// decision rests on it. A holder's extension rests on no queue, and changes
// none: what is over in it is dropped by others. ends says that the vote ends.
func (c *call) planQueue(p *plan, folder string, rec *model.Record, name *model.Name, ends bool) (ops api.TxnOps) {
	own, before := [16]byte(c.r.Owner.ID), p.before.queue
	switch {
	case c.verb == extend:
		return nil
	case c.verb == release && ends:
		p.ended = true
		return api.TxnOps{c.op(api.KVGetTree, folder+queuePart)}
	case c.waits() && p.own != nil && before.Has(own):
		p.after.count.Served = hexID(own)
		if c.r.Mode == quorum.ModeExclusive {
			return nil
		}
	}
	var ask *waitlist.Ask
	if c.waits() {
		ask = &waitlist.Ask{Keep: c.r.Keep, Client: c.self}
		ask.Owner.ID, ask.Owner.Attempt = own, c.r.Owner.Attempt
	}
	after := before.After(rec, name, ask)
	if after.Has(own) && p.before.count.Served == hexID(own) {
		p.after.count.Served = ""
	}
	rings := c.rings(before, after)
	op := c.op(api.KVCAS, folder+queuePart)
	op.KV.Index = p.before.queueIndex
	kept := p.after.count
	if c.waits() || c.verb == release { // who has to do with the queue takes away who was served
		kept.Served = ""
	}
	switch p.queues = after.String() != before.Without(served(kept, name.Votes)).String(); {
	case p.queues && len(after) > 0:
		op.KV.Value = []byte(after.String())
	case p.queues:
		op.KV.Verb = api.KVDeleteCAS
		p.after.queueIndex = 0
	case c.r.Kind == quorum.KindRepair || before.Has(own) && !after.Has(own): // granted its turn
		return nil
	case p.before.queueIndex > 0:
		op.KV.Verb = api.KVCheckIndex
	default:
		op.KV.Verb = api.KVCheckNotExists
	}
	if !p.queues {
		return api.TxnOps{op}
	}
	p.after.queue = after
	return append(api.TxnOps{op}, rings...)
}

// tidy takes what a release left in the queue away, and has whose turn it is, and
// who is next, told. Should it fail, the next in line waits for a claim. Who waits
// for the release, which took so long already, does not wait longer than for one
// call.
func (s *Store) tidy(ctx context.Context, r quorum.Request, left *snapshot, took time.Duration) {
	if r.Limit > 0 {
		if r.Limit = r.Limit*3/4 - took; r.Limit <= 0 {
			return
		}
	}
	r.Entomb = false
	c := &call{Store: s, verb: release, r: &r, left: left}
	if table, err := s.table(ctx, c); err == nil {
		_ = table.Release(ctx, r)
	}
}
