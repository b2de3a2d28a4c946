package consulstore

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum/internal/model"
)

// plan is what a decision changes.
type plan struct {
	before *snapshot
	after  snapshot // what the transaction leaves, but for its indexes
	ops    api.TxnOps
	queues bool     // it changes the queue
	ended  bool     // it ends a vote, and reads the queue as it is then
	own    *session // of the owner's vote after it; nil if it has none, or not of this client
}

func (p *plan) writes() bool { return len(p.ops) > 0 }

// decide has f decide on a snapshot, and works out the transaction.
func (c *call) decide(ctx context.Context, snap *snapshot, key string, f decide) (*plan, error) {
	rec := snap.recordOf()
	now, err := c.now(snap, &rec)
	if err != nil {
		return nil, err
	}
	if c.verb != release && (snap.recordIndex == 0 || snap.fell) {
		if c.mark, err = c.marked(ctx, c.mark); err != nil {
			return nil, err
		}
		rec.Run = c.mark.id
	}
	var name *model.Name
	if key != "" {
		n := snap.nameOf(c.r.Owner.Hex(), now, c.r.MaxTTL)
		name = &n
	}
	standing, end := rec.Standing, rec.End
	f(&rec, name, now)
	p := &plan{before: snap, after: *snap}
	p.after.votes, p.after.tombs = nil, nil
	begun := rec.Standing == model.Quarantined && (standing != model.Quarantined || end != rec.End)
	if err := c.planRecord(ctx, p, &rec, begun); err != nil {
		return nil, err
	}
	if name != nil {
		if err := c.planName(ctx, p, key, &rec, name, now); err != nil {
			return nil, err
		}
	}
	if p.writes() {
		p.ops = append(p.ops, c.beat())
	}
	return p, nil
}

// planName writes what changed of the name.
func (c *call) planName(ctx context.Context, p *plan, key string, rec *model.Record, name *model.Name, now model.Time) error {
	folder, owner := nameFolder(key), c.r.Owner.Hex()
	var ops api.TxnOps
	live := map[string]bool{}
	for i := range name.Votes {
		v := &name.Votes[i]
		live[hexID(v.Owner.ID)] = true
		if hexID(v.Owner.ID) != owner {
			p.after.votes = append(p.after.votes, *p.before.vote(hexID(v.Owner.ID)))
			continue
		}
		more, err := c.planVote(ctx, p, folder, v, now)
		if err != nil {
			return err
		}
		ops = append(more, ops...)
	}
	drops, evicted := c.planDrops(p, folder, live)
	ops = append(drops, ops...)
	marks, err := c.planMarks(ctx, p, folder, name, evicted)
	if err != nil {
		return err
	}
	line := c.planQueue(p, folder, rec, name, len(drops) > 0)
	if ops = append(ops, marks...); len(ops) == 0 && !p.queues {
		return nil
	}
	count := c.planCount(p, folder, name, len(ops) > 0)
	// The record is compared, or a counter that was dropped and is made again
	// since the read would pass for the one that never was. A release gives no
	// token.
	if len(p.ops) == 0 && c.verb != release && !c.trial.blind {
		same := c.op(api.KVCheckIndex, recordKey)
		same.KV.Index = p.before.recordIndex
		p.ops = append(p.ops, same)
	}
	p.ops = slices.Concat(p.ops, count, line, ops)
	// What must still be there is looked at before anything is deleted.
	slices.SortStableFunc(p.ops, func(a, b *api.TxnOp) int { return order(a) - order(b) })
	return nil
}

// planCount writes the counter, or where only the queue changes, that was
// empty, compares it: nobody would tell a newcomer of a vote that was released
// meanwhile. Where others wait, such a release has changed the queue.
func (c *call) planCount(p *plan, folder string, name *model.Name, write bool) api.TxnOps {
	count := c.op(api.KVCAS, folder+countPart)
	count.KV.Index = p.before.countIndex
	switch {
	case !write && (c.verb == release || len(name.Queue) > 1) && p.after.count == p.before.count:
		return nil
	case write || p.after.count != p.before.count:
		p.after.count = countValue{
			Writer: name.Writer, Keep: int64(name.Keep), Votes: len(name.Votes), Last: uint8(name.Last),
			Writes: p.before.count.Writes + 1, Served: p.after.count.Served,
		}
		if name.Known {
			p.after.count.Number = name.Counter
		}
		count.KV.Value = encode(p.after.count)
	case p.before.countIndex == 0:
		count.KV.Verb = api.KVCheckNotExists
	default:
		count.KV.Verb = api.KVCheckIndex
	}
	return api.TxnOps{count}
}

func order(op *api.TxnOp) int {
	if op.KV.Verb == api.KVCheckSession {
		return 0
	}
	return 1
}

// planVote writes this owner's vote if it is another one than before, or if no
// session of it was renewed in this call. What replaces a vote fails if that
// one has ended meanwhile.
func (c *call) planVote(ctx context.Context, p *plan, folder string, v *model.Vote, now model.Time) (api.TxnOps, error) {
	before := p.before.vote(hexID(v.Owner.ID))
	if v.Until <= now+1 { // refused: it stays as it was
		p.after.votes = append(p.after.votes, *before)
		return nil, nil
	}
	value := voteValue{
		Owner: hexID(v.Owner.ID), Attempt: v.Owner.Attempt, Shared: v.Mode == shared, Token: v.Token,
		Since: int64(v.Since), Label: v.Label,
	}
	need := c.r.TTL
	if before != nil { // a vote is never shortened
		need = max(need, time.Duration(before.TTL)*time.Microsecond)
	}
	if before != nil && before.Attempt == v.Owner.Attempt {
		if err := c.renewKnown(ctx, before.session, need); err != nil {
			return nil, err
		}
	}
	var ops api.TxnOps
	of := c.renewed
	switch renewed := of != nil && before != nil && before.session == of.id; {
	case renewed:
		if value.TTL = micros(of.ttl); value == before.voteValue {
			p.after.votes, p.own = append(p.after.votes, *before), of
			return nil, nil
		}
		ops = append(ops, c.checkSession(folder, before.session))
	default:
		if c.of == nil || c.of.ttl < need {
			c.spare(c.of)
			var err error
			if c.of, err = c.obtain(ctx, need); err != nil {
				return nil, err
			}
		}
		of = c.of
		value.TTL = micros(of.ttl)
		if before != nil {
			ops = append(ops, c.checkSession(folder, before.session), c.op(api.KVDelete, folder+votePart+before.session))
		}
	}
	lock := c.op(api.KVLock, folder+votePart+of.id)
	lock.KV.Session, lock.KV.Value = of.id, encode(value)
	p.own = of
	p.after.votes = append(p.after.votes, keptVote{value, of.id})
	return append(ops, lock), nil
}

// renewKnown renews the session of a vote that this client has, where the same
// attempt asks for it again: copies of one request then write once.
func (c *call) renewKnown(ctx context.Context, session string, ttl time.Duration) error {
	h, known := c.held(c.r.Key, c.r.Owner)
	if c.renewed != nil || !known || h.of.id != session || h.of.ttl < ttl || !c.fresh(h.of) {
		return nil
	}
	c.touched = true
	of := *h.of
	ok, err := c.renew(ctx, &of)
	if ok {
		c.renewed = &of
	}
	return err
}

func (c *call) checkSession(folder, session string) *api.TxnOp {
	check := c.op(api.KVCheckSession, folder+votePart+session)
	check.KV.Session = session
	return check
}

// maxDrops bounds the votes that are deleted one by one: a transaction has at
// most 64 operations.
const maxDrops = 32

// planDrops deletes the votes that the decision removed: the owner's own, which
// must still be there, or those of others, by force.
func (c *call) planDrops(p *plan, folder string, live map[string]bool) (ops api.TxnOps, evicted int) {
	for _, v := range p.before.votes {
		switch {
		case live[v.Owner]:
			continue
		case v.Owner == c.r.Owner.Hex():
			ops = append(ops, c.checkSession(folder, v.session))
		default:
			evicted++
		}
		ops = append(ops, c.op(api.KVDelete, folder+votePart+v.session))
	}
	if evicted > maxDrops && len(p.after.votes) == 1 { // the forcing one's, which is locked after this
		ops = api.TxnOps{c.op(api.KVDeleteTree, folder+votePart)}
	}
	return ops, evicted
}

// planMarks writes a new tombstone, and whose votes were removed by force.
func (c *call) planMarks(ctx context.Context, p *plan, folder string, name *model.Name, evicted int) (api.TxnOps, error) {
	had := map[string]uint32{}
	for _, t := range p.before.tombs {
		had[t.Owner] = max(had[t.Owner], t.Attempt)
	}
	var ops api.TxnOps
	lock := func(part string, ttl time.Duration, value any) error {
		of, err := c.obtain(ctx, max(min(ttl, sessionMax), c.limits.MinTTL))
		if err != nil {
			return err
		}
		key := c.op(api.KVLock, folder+part+of.id)
		key.KV.Session, key.KV.Value = of.id, encode(value)
		ops = append(ops, key)
		return nil
	}
	for _, t := range name.Tombs {
		value := tombValue{Owner: hexID(t.ID), Attempt: t.Attempt}
		p.after.tombs = append(p.after.tombs, value)
		if attempt, ok := had[value.Owner]; ok && attempt >= value.Attempt {
			continue
		}
		if err := lock(tombPart, c.r.MaxTTL+c.r.Limit, value); err != nil {
			return nil, err
		}
	}
	if evicted > 0 {
		value := forcedValue{Label: c.r.Label}
		for _, v := range p.before.votes {
			if v.Owner != c.r.Owner.Hex() {
				value.Owners = append(value.Owners, v.Owner)
			}
		}
		if err := lock(forcedPart, c.r.MaxTTL, value); err != nil {
			return nil, err
		}
	}
	return ops, nil
}
