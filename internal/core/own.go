package core

// Own is what no two owners of one configuration share. It takes the place of
// what a Config says of the same.
type Own struct {
	Key string
	ID  ID
	Ask []int
}

func (c *Config) own() Own { return Own{c.Request.Key, c.Request.Owner.ID, c.Ask} }

func (q *Quorum) init(cfg *Config, own Own) {
	r := &cfg.Request
	q.cfg, q.own, q.slots = cfg, own, make([]slot, cfg.Rule.N())
	q.mode, q.kind, q.asksFor, q.ttl = r.Mode, r.Kind, r.TTL, r.TTL
}

// NewLease returns a Lease that has asked nothing yet.
func NewLease(cfg LeaseConfig) *Lease { return NewLeaseOf(&cfg, cfg.own(), cfg.Seed) }

// NewLeaseOf is NewLease for leases of one configuration, which share it: of a
// hundred thousand that are held, each is small. Nobody may change cfg any more.
func NewLeaseOf(cfg *LeaseConfig, own Own, seed uint64) *Lease {
	var both struct { // one allocation
		l Lease
		q Quorum
	}
	l := &both.l
	*l = Lease{cfg: cfg, once: cfg.Once, q: &both.q, rng: seed, giveUp: Never, retryAt: Never, stillAt: Never, maxAt: Never, renewAt: Never, watchAt: Never, roundAt: -Never}
	l.q.init(&cfg.Config, own)
	return l
}
