package consulstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/waitlist"
)

// commit carries out the transaction. It is false when something had changed,
// and nothing was done.
func (c *call) commit(ctx context.Context, p *plan) (done bool, err error) {
	ok, reply, _, err := c.client.Txn().Txn(p.ops, c.query(ctx))
	if err != nil {
		return false, err
	}
	if !ok {
		err := failure(reply.Errors)
		if strings.Contains(err.Error(), "invalid session") { // somebody ended it by hand
			c.of, c.mark = nil, nil
		}
		if denied(err) {
			return false, err
		}
		return false, nil
	}
	folder := c.prefix + nameFolder(c.r.Key)
	for _, result := range reply.Results {
		switch kv := result.KV; {
		case kv == nil:
		case kv.Key == c.prefix+recordKey:
			p.after.recordIndex = kv.ModifyIndex
		case kv.Key == folder+countPart:
			p.after.countIndex = kv.ModifyIndex
		case kv.Key == folder+queuePart && p.ended:
			if p.after.queue, err = waitlist.Parse(string(kv.Value)); err == nil {
				p.after.queueIndex, c.left = kv.ModifyIndex, &p.after
			}
		case kv.Key == folder+queuePart && len(p.after.queue) > 0:
			p.after.queueIndex = kv.ModifyIndex
		case kv.Key == c.prefix+lastKey:
			p.after.last = kv.ModifyIndex
		}
	}
	c.seen.raise(position{p.after.record.Life, p.after.last})
	if p.after.record.Quarantine != p.before.record.Quarantine {
		c.mark = nil // used
	}
	return true, nil
}

// keep notes what this client has now, for the next verb.
func (c *call) keep(key string, p *plan) {
	if p.own != nil {
		if p.own == c.of {
			c.of = nil // used
		}
		p.after.fell = false
		c.hold(key, c.r.Owner, hold{p.own, &p.after})
		if before := p.before.vote(c.r.Owner.Hex()); before != nil && before.Attempt != c.r.Owner.Attempt {
			c.drop(key, quorum.Owner{ID: c.r.Owner.ID, Attempt: before.Attempt})
		}
	} else if c.verb == release || c.verb == extend {
		// The session of a vote that was released for certain is free.
		if h, ok := c.drop(key, c.r.Owner); ok && c.verb == release && p.writes() && c.fresh(h.of) && !c.r.Entomb {
			c.spare(h.of)
		}
	}
	if c.left != nil {
		c.left.ages = c.waiters.See(key, c.left.queue.String(), c.local())
	}
	if p.queues {
		c.bells.note(key, rung{bells(p.after.queue)[c.self], p.after.last})
		p.after.ages = c.waiters.See(key, p.after.queue.String(), c.local())
	}
	if p.writes() && p.after.record.Step > p.before.record.Step && p.before.recordIndex > 0 {
		c.cleaner.Start(cleanLimit, c.cleanRound)
	}
}

// failure is a transaction's errors as one.
func failure(errs api.TxnErrors) error {
	var texts []string
	for _, e := range errs {
		texts = append(texts, e.What)
	}
	return fmt.Errorf("the transaction was refused: %s", strings.Join(texts, "; "))
}
