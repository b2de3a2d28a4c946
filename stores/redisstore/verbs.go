package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// Acquire implements [quorum.Store].
func (s *Store) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	g, acks, err := s.vote(ctx, acquire, &r)
	if err == nil && acks < s.replicas {
		return quorum.Grant{}, s.undo(ctx, &r, acks)
	}
	return g, err
}

// Extend implements [quorum.Store].
func (s *Store) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	g, acks, err := s.vote(ctx, extend, &r)
	if err == nil && acks < s.replicas {
		return quorum.Grant{}, s.unproved(&r, acks)
	}
	return g, err
}

// vote asks for a vote or keeps one, and returns how many replicas have it.
func (s *Store) vote(ctx context.Context, v verb, r *quorum.Request) (g quorum.Grant, acks int, err error) {
	if err := s.check(v, r); err != nil {
		return quorum.Grant{}, 0, err
	}
	c := s.call(v, r)
	if err := s.eval(ctx, v, r, s.part(r.Key), c); err != nil {
		return quorum.Grant{}, 0, s.wrap(v, r.Key, err)
	}
	g, err = s.grant(r, c)
	return g, int(c.acks), err
}

// Release implements [quorum.Store]. It works in a full memory too.
func (s *Store) Release(ctx context.Context, r quorum.Request) error {
	if err := s.check(release, &r); err != nil {
		return err
	}
	c := s.call(release, &r)
	if err := s.eval(ctx, release, &r, s.part(r.Key), c); err != nil {
		return s.wrap(release, r.Key, err)
	}
	return s.released(c)
}

func (s *Store) released(c *call) error {
	if held, ok := c.row.(int64); ok && held == 1 {
		return nil
	}
	return &quorum.RefusedError{
		Outcome: quorum.OutcomeNotHeld,
		Clean:   c.row == int64(0) && !s.limits.Doubles,
		Server:  s.server(c.at),
	}
}

// Begin implements [quorum.Async], but for what may have to wait for more than
// an answer: a load of scripts, a look at a cluster's slots, or replicas.
func (s *Store) Begin(q *quorum.Call) bool {
	r := &q.Request
	if s.single == nil || s.replicas > 0 {
		return false
	}
	at := s.single.ready(family{r.Set, r.MaxTTL})
	if at == nil {
		return false
	}
	v := [...]verb{quorum.VerbAcquire: acquire, quorum.VerbExtend: extend, quorum.VerbRelease: release}[q.Verb]
	if err := s.check(v, r); err != nil {
		q.End(quorum.Grant{}, err)
		return true
	}
	c := s.call(v, r)
	c.began, c.ctx, c.limit, c.at = q, q.Context(), r.Limit, at
	s.single.lanes.put(c)
	return true
}

// ended ends a call that was begun.
func (s *Store) ended(c *call) {
	q := c.began
	switch {
	case c.err != nil && redis.HasErrorPrefix(c.err, "NOSCRIPT"): // which allocates
		go s.repeat(q)
	case c.err != nil:
		q.End(quorum.Grant{}, s.wrap(c.verb, q.Request.Key, s.failed(c.ctx, c.at, c.err)))
	case c.verb == release:
		q.End(quorum.Grant{}, s.released(c))
	default:
		q.End(s.grant(&q.Request, c))
	}
}

// repeat makes a call that found no scripts, so that nothing was done, from the
// beginning.
func (s *Store) repeat(q *quorum.Call) {
	ctx, cancel := context.WithTimeout(q.Context(), q.Request.Limit)
	defer cancel()
	switch q.Verb {
	case quorum.VerbAcquire:
		q.End(s.Acquire(ctx, q.Request))
	case quorum.VerbExtend:
		q.End(s.Extend(ctx, q.Request))
	default:
		q.End(quorum.Grant{}, s.Release(ctx, q.Request))
	}
}
