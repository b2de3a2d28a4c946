package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// quarantineName is what a quarantine is called outside: the lease that its
// time is counted by, which the server never gives twice.
func quarantineName(lease int64) string { return strconv.FormatInt(lease, 16) }

// ReadStep implements [quorum.HighWater].
func (s *Store) ReadStep(ctx context.Context, r quorum.Request) (quorum.Step, error) {
	r.Key = ""
	m, err := s.run(ctx, request(core.ReadStep, &r))
	if err == nil {
		err = s.refusal(m)
	}
	if err != nil {
		return quorum.Step{}, s.wrap(core.ReadStep, "", err)
	}
	read := m.answer.Step
	step := quorum.Step{Step: read.Step, Base: read.Base, Over: read.Over, Left: m.answer.Left, Server: m.seen.server}
	if read.Quarantine != "" {
		step.Quarantine = quarantineName(m.seen.quarantine)
	}
	return step, nil
}

// Raise implements [quorum.HighWater].
func (s *Store) Raise(ctx context.Context, r quorum.Request, o quorum.Raise) error {
	r.Key = ""
	req := request(core.Raise, &r)
	req.Raise = core.RaiseOrder(o)
	m, err := s.run(ctx, req)
	if err == nil {
		err = s.refusal(m)
	}
	if err != nil {
		return s.wrap(core.Raise, "", err)
	}
	return nil
}

// left asks how long the quarantine lasts that a move has met. The model knows
// only that it is not over.
func (s *Store) left(ctx context.Context, m *move) {
	if m.answer.Left <= 0 || m.seen.over || m.quarantine {
		return
	}
	if m.answer.Outcome != core.Quarantined && m.answer.Step.Quarantine == "" {
		return
	}
	reply, err := s.client().TimeToLive(ctx, clientv3.LeaseID(m.seen.quarantine))
	if err == nil { // without an answer it lasts MaxTTL at most
		m.answer.Left = min(m.answer.Left, time.Duration(max(reply.TTL, 0)+1)*time.Second)
	}
}

// Serves implements [quorum.Membership].
func (s *Store) Serves(ctx context.Context, r quorum.Request) ([]quorum.Fingerprint, error) {
	seen, err := s.lookAt(ctx, r.Limit, "")
	if err != nil {
		return nil, fmt.Errorf("etcd store %s: read its sets: %w", s.name, err)
	}
	return served(&seen.record), nil
}

func served(r *model.Record) []quorum.Fingerprint {
	sets := make([]quorum.Fingerprint, r.Serving)
	for i := range sets {
		sets[i] = quorum.Fingerprint(r.Serves[i])
	}
	return sets
}

// Serve implements [quorum.Membership].
func (s *Store) Serve(ctx context.Context, r quorum.Request, from, to []quorum.Fingerprint) error {
	if len(from) > 2 || len(to) > 2 || len(to) == 0 {
		return s.unsent(fmt.Errorf("%w: to serve %d sets instead of %d, where one or two are possible",
			quorum.ErrInvalidOption, len(to), len(from)))
	}
	ctx, cancel, err := s.bound(ctx, r.Limit)
	if err == nil {
		defer cancel()
		err = s.serve(ctx, from, to)
	}
	if err != nil {
		return fmt.Errorf("etcd store %s: change its sets: %w", s.name, err)
	}
	return nil
}

func (s *Store) serve(ctx context.Context, from, to []quorum.Fingerprint) error {
	for {
		seen, err := s.look(ctx, "")
		if err != nil {
			return quorum.Undelivered(explain(err))
		}
		have := served(&seen.record)
		switch {
		case same(have, to):
			return nil
		case !same(have, from):
			return &quorum.RefusedError{Outcome: quorum.OutcomeMismatch, Server: seen.server, Reason: fmt.Sprintf(
				"it serves %v, and neither %v, which was to change, nor %v, which was to be", have, from, to)}
		case seen.recordMod == 0:
			return quorum.Undelivered(fmt.Errorf("%w: it was never used; acquire a lock first", quorum.ErrInvalidOption))
		}
		rec := seen.record
		rec.Serving = uint8(len(to))
		rec.Serves = [2]uint64{}
		for i, set := range to {
			rec.Serves[i] = uint64(set)
		}
		reply, err := s.client().Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.recordKey()), "=", seen.recordMod)).
			Then(clientv3.OpPut(s.recordKey(), recordText(&rec, seen.quarantine))).Commit()
		switch {
		case err != nil && definite(err):
			return quorum.Undelivered(explain(err))
		case err != nil:
			return explain(err)
		case reply.Succeeded:
			return nil
		}
	}
}

// same reports whether two lists hold the same sets, in any order.
func same(a, b []quorum.Fingerprint) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(f quorum.Fingerprint) bool { return !slices.Contains(b, f) })
}
