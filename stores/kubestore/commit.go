package kubestore

import (
	"context"
	"maps"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// commit writes the first of what there is to write, and returns the snapshot
// on which to decide again: the one that was decided on when all is done, nil
// when somebody else wrote before.
func (c *call) commit(ctx context.Context, p *plan, key string) (*snapshot, error) {
	switch {
	case p.record != nil:
		return c.commitRecord(ctx, p, key)
	case p.after != nil && p.before.lease == nil:
		return c.create(ctx, key)
	case p.after != nil:
		return c.commitName(ctx, p, key)
	case p.before.kept:
		return c.read(ctx, key) // a memory refuses nobody
	}
	return p.before, nil
}

// commitRecord writes the record. It comes before the name: a step that a
// counter needs, and the set that a vote is of, must be there first.
func (c *call) commitRecord(ctx context.Context, p *plan, key string) (*snapshot, error) {
	lease := &coordination.Lease{ObjectMeta: c.meta(setName(c.prefix))}
	if p.before.set != nil {
		lease = p.before.set.lease.DeepCopy()
	}
	annotate(lease, recordKey, encode(p.record))
	sent := c.clock.Now()
	o, err := c.write(ctx, lease, key == "")
	if err != nil || o == nil {
		return nil, err
	}
	if p.before.set != nil && p.record.Step > p.before.record.Step {
		c.cleaner.Start(cleanLimit, c.cleanRound)
	}
	next := *p.before
	next.set, next.record, next.fell = o, *p.record, false
	c.history.raise(next.at(o))
	c.seen.wrote(o.lease.Name, next.at(o), next.record.lasting(), sent, nil)
	if key == "" {
		return p.before, nil
	}
	if next.record.Quarantine != p.before.record.Quarantine {
		next.waits = duration(next.record.TTL)
	}
	return &next, nil
}

// create makes the Lease of a name, empty, and reads the record after it, see
// [Store.read].
func (c *call) create(ctx context.Context, key string) (*snapshot, error) {
	lease := &coordination.Lease{ObjectMeta: c.meta(leaseName(c.prefix, key))}
	lease.Labels[prefixLabel] = c.prefix
	annotate(lease, nameKey, key)
	o, err := c.put(ctx, lease)
	if err != nil || o == nil {
		return nil, err
	}
	snap := &snapshot{}
	if err := c.readRecord(ctx, snap); err != nil {
		return nil, err
	}
	return snap, c.takeName(snap, key, o)
}

// commitName writes the name, and reads the record once more.
func (c *call) commitName(ctx context.Context, p *plan, key string) (*snapshot, error) {
	after := p.after
	lease := p.before.lease.lease.DeepCopy()
	if after.counted {
		annotate(lease, countKey, encode(after.count))
	}
	delete(lease.Annotations, votesKey)
	if len(after.votes) > 0 {
		annotate(lease, votesKey, encode(after.votes))
	}
	delete(lease.Annotations, marksKey)
	if len(after.marks.Tombs)+len(after.marks.Forced) > 0 {
		annotate(lease, marksKey, encode(after.marks))
	}
	show(&lease.Spec, after.votes)

	before, sent := c.history.latest(), c.clock.Now()
	o, err := c.write(ctx, lease, true)
	if err != nil || o == nil {
		return nil, err
	}
	after.lease, after.kept = o, true
	at := after.at(o)
	after.fell = at.below(before)
	c.history.raise(at)
	now, own := &snapshot{}, (*snapshot)(nil)
	if c.verb != release { // which gives nothing that a record could forbid
		err = c.readRecord(ctx, now)
	}
	same := err == nil && !after.fell && !now.fell && now.set != nil && sameBut(now.record, after.record)
	if v := after.vote(c.r.Owner.Hex()); same && v != nil && v.Attempt == c.r.Owner.Attempt {
		own = after
		own.set, own.record = now.set, now.record
	}
	c.seen.wrote(o.lease.Name, at, after.lasting(), sent, own)
	if err != nil || same || c.verb == release {
		return p.before, err
	}
	next := c.refresh(after)
	next.kept = false
	next.set, next.record, next.waits, next.fell = now.set, now.record, now.waits, after.fell || now.fell
	return next, nil
}

// sameBut compares two records but for the step, which only names without a
// counter start from.
func sameBut(a, b recordValue) bool {
	a.Step, b.Step = 0, 0
	return encode(a) == encode(b)
}

// refresh is what this client left, as it is now.
func (s *Store) refresh(own *snapshot) *snapshot {
	now := *own
	s.measure(&now)
	return &now
}

// write writes a Lease. tells says that a write whose answer is lost leaves
// something of this call.
func (c *call) write(ctx context.Context, lease *coordination.Lease, tells bool) (*object, error) {
	before := c.touched
	c.touched = before || tells
	o, err := c.put(ctx, lease)
	if _, never := explain(err); never || err == nil && o == nil {
		c.touched = before
	}
	return o, err
}

func (s *Store) meta(name string) meta.ObjectMeta {
	return meta.ObjectMeta{Name: name, Labels: maps.Clone(labels), Annotations: map[string]string{}}
}

var labels = map[string]string{"app.kubernetes.io/managed-by": "quorum"}

func annotate(l *coordination.Lease, key, value string) {
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[key] = value
}
