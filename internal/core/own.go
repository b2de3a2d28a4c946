package core

// Own is what no two owners of one configuration share. It takes the place of
// what a Config says of the same.
type Own struct {
	Key string
	ID  ID
	Ask Ranking
}

func (c *Config) own() Own { return Own{c.Request.Key, c.Request.Owner.ID, c.Ask} }

// Key returns the name that is locked.
func (q *Quorum) Key() string { return q.own.Key }

// ID returns the owner's.
func (q *Quorum) ID() ID { return q.own.ID }

func (q *Quorum) init(cfg *Config, own Own) {
	r := &cfg.Request
	q.cfg, q.own, q.slots = cfg, own, make([]slot, cfg.Rule.N())
	q.mode, q.kind, q.ttl = r.Mode, r.Kind, r.TTL
}

// NewLease returns a Lease that has asked nothing yet.
func NewLease(cfg LeaseConfig) *Lease {
	l := NewLeaseOf(&cfg, cfg.own(), cfg.Seed)
	l.Lend(&Room{}) // for good
	return l
}

// NewLeaseOf is NewLease for leases of one configuration, which share it and
// are lent their [Room]: of a hundred thousand that are held, each is small.
// Nobody may change cfg any more.
func NewLeaseOf(cfg *LeaseConfig, own Own, seed uint64) *Lease {
	l := &Lease{cfg: cfg, rng: seed, maxAt: Never, renewAt: Never, watchAt: Never, roundAt: -Never}
	l.wait = &wait{once: cfg.Once, giveUp: Never, retryAt: Never, stillAt: Never}
	l.q.init(&cfg.Config, own)
	return l
}
