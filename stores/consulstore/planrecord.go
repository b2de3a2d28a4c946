package consulstore

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
)

// beat shows in every later read that there was a transaction.
func (s *Store) beat() *api.TxnOp {
	last := s.op(api.KVSet, lastKey)
	last.KV.Value = strconv.AppendUint(nil, rand.Uint64(), 36) // any other value than before
	return last
}

// marked returns a session that lasts for MaxTTL.
func (c *call) marked(ctx context.Context, of *session) (*session, error) {
	if of != nil {
		return of, nil
	}
	if c.r.MaxTTL < c.limits.MinTTL { // one of 0 would never end
		return nil, fmt.Errorf("%w: MaxTTL %v is below %v", quorum.ErrInvalidTTL, c.r.MaxTTL, c.limits.MinTTL)
	}
	return c.obtain(ctx, c.r.MaxTTL)
}

// planRecord writes the record if it changed. A quarantine is over when the key
// of its session is gone.
func (c *call) planRecord(ctx context.Context, p *plan, rec *model.Record, begun bool) error {
	v := recordValue{Version: version, Step: rec.Step, Base: rec.Base, Lost: rec.Lost, Life: p.before.record.Life}
	for _, set := range rec.Serves[:rec.Serving] {
		v.Sets = append(v.Sets, quorum.Fingerprint(set).String())
	}
	switch {
	case begun:
		var err error
		if c.mark, err = c.marked(ctx, c.mark); err != nil {
			return err
		}
		v.Quarantine, v.End = c.mark.id, int64(rec.End)
		v.Life = max(v.Life, c.seen.latest().life) + 1
		lock := c.op(api.KVLock, quarantineDir+c.mark.id)
		lock.KV.Session = c.mark.id
		p.ops = append(p.ops, lock)
	case rec.Standing == model.Quarantined:
		v.Quarantine, v.End = rec.Run, int64(rec.End)
	case rec.Standing != model.Voting:
		return nil // a release or another set's request, which leaves the record as it is
	}
	if p.before.recordIndex > 0 && bytes.Equal(encode(v), encode(p.before.record)) {
		return nil
	}
	p.after.record = v
	cas := c.op(api.KVCAS, recordKey)
	cas.KV.Index, cas.KV.Value = p.before.recordIndex, encode(v)
	p.ops = append(p.ops, cas)
	return nil
}
