package etcdstore

import (
	"context"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
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
