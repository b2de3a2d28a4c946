package modelstore

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// Store is a quorum.Store whose rules are the model's and whose memory is a
// Backend. It is also a quorum.HighWater, a quorum.Membership and a
// quorum.Inspector.
type Store struct {
	name    string
	server  string
	limits  quorum.Limits
	backend Backend
}

var (
	_ quorum.Store      = (*Store)(nil)
	_ quorum.HighWater  = (*Store)(nil)
	_ quorum.Inspector  = (*Store)(nil)
	_ quorum.Membership = (*Store)(nil)
)

// New returns the store of a backend. server is its identity, to notice one
// backend under two names.
func New(name string, limits quorum.Limits, server string, b Backend) *Store {
	return &Store{name: name, server: server, limits: limits, backend: b}
}

// Name returns the name of the member.
func (s *Store) Name() string { return s.name }

// Limits returns what the store can do.
func (s *Store) Limits() quorum.Limits { return s.limits }

// Acquire asks for a vote, see [quorum.Store].
func (s *Store) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	return s.vote(ctx, core.Acquire, r)
}

// Extend keeps a vote, see [quorum.Store].
func (s *Store) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	return s.vote(ctx, core.Extend, r)
}

func (s *Store) vote(ctx context.Context, verb core.Verb, r quorum.Request) (quorum.Grant, error) {
	if err := s.check(verb, r); err != nil {
		return quorum.Grant{}, err
	}
	a, err := s.apply(ctx, request(verb, r))
	if err == nil {
		err = s.refusal(a)
	}
	if err != nil {
		return quorum.Grant{}, err
	}
	return s.grant(a), nil
}

// Release removes a vote, see [quorum.Store].
func (s *Store) Release(ctx context.Context, r quorum.Request) error {
	if err := s.check(core.Release, r); err != nil {
		return err
	}
	a, err := s.apply(ctx, request(core.Release, r))
	if err != nil {
		return err
	}
	return s.refusal(a)
}

// ReadStep reads the record, see [quorum.HighWater]. It begins a quarantine
// that is due.
func (s *Store) ReadStep(ctx context.Context, r quorum.Request) (quorum.Step, error) {
	r.Key = ""
	a, err := s.apply(ctx, request(core.ReadStep, r))
	if err == nil {
		err = s.refusal(a)
	}
	if err != nil {
		return quorum.Step{}, err
	}
	return quorum.Step{
		Step:       a.Step.Step,
		Base:       a.Step.Base,
		Quarantine: a.Step.Quarantine,
		Over:       a.Step.Over,
		Left:       a.Left,
		Server:     s.server,
	}, nil
}

// Raise ends or begins a quarantine, see [quorum.HighWater].
func (s *Store) Raise(ctx context.Context, r quorum.Request, o quorum.Raise) error {
	r.Key = ""
	req := request(core.Raise, r)
	req.Raise = core.RaiseOrder(o)
	a, err := s.apply(ctx, req)
	if err != nil {
		return err
	}
	return s.refusal(a)
}

// Inspect reads a name, see [quorum.Inspector].
func (s *Store) Inspect(ctx context.Context, r quorum.Request) (quorum.State, error) {
	if err := s.check(core.Release, r); err != nil {
		return quorum.State{}, err
	}
	ctx, cancel, err := s.bound(ctx, r.Limit)
	if err != nil {
		return quorum.State{}, err
	}
	defer cancel()
	state := quorum.State{Server: s.server}
	var strange error
	err = s.backend.View(ctx, r.Key, func(rec *model.Record, name *model.Name, now model.Time) {
		if !rec.Admits(uint64(r.Set)) {
			strange = s.refusal(core.Answer{Outcome: core.Mismatch, Reason: fmt.Sprintf("it does not serve the set %v", r.Set)})
			return
		}
		state.Quarantine = rec.Standing != model.Voting
		for _, v := range name.Live(rec, r.MaxTTL, now) {
			state.Holders = append(state.Holders, quorum.Holder{
				Owner: quorum.Owner{ID: quorum.OwnerID(v.Owner.ID)}.Digest(),
				Label: v.Label,
				Mode:  quorum.Mode(v.Mode),
				Token: v.Token,
				Since: time.UnixMicro(int64(v.Since)),
				Left:  v.Until.Sub(now),
			})
		}
		state.Counter = name.Counter
	})
	if err == nil {
		err = strange
	}
	if err != nil {
		return quorum.State{}, err
	}
	return state, nil
}

// exchange is one request on its way through the backend. Its own type, so
// that request and answer cost one allocation.
type exchange struct {
	member string
	req    core.Request
	answer core.Answer
	wakes  []core.Wake
}

func (s *Store) apply(ctx context.Context, req core.Request) (core.Answer, error) {
	ctx, cancel, err := s.bound(ctx, req.Limit)
	if err != nil {
		return core.Answer{}, err
	}
	defer cancel()
	x := &exchange{member: s.name, req: req}
	if err := s.backend.Update(ctx, req.Key, x.apply); err != nil {
		return core.Answer{}, err
	}
	if teller, ok := s.backend.(Teller); ok && len(x.wakes) > 0 {
		wakes := make([]quorum.Wake, len(x.wakes))
		for i, w := range x.wakes {
			wakes[i] = wake(w)
		}
		teller.Tell(req.Key, wakes)
	}
	return x.answer, nil
}

// apply runs the model, unless the record is that of another member: a
// directory that is opened under a second name would be two votes of one store.
func (x *exchange) apply(rec *model.Record, name *model.Name, now model.Time) {
	if rec.Member == "" {
		rec.Member = x.member
	}
	if rec.Member != x.member {
		x.answer = core.Answer{
			Outcome: core.Mismatch,
			Clean:   true, // whatever is here was left under the other name
			Reason:  fmt.Sprintf("it is member %q of its set and was opened as %q", rec.Member, x.member),
		}
		return
	}
	x.answer, x.wakes = model.Carry(rec, name, x.req, now)
}

// bound sets the limit of one call. A store of this process waits for a mutex
// and nothing else, and is spared the timer.
func (s *Store) bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc, error) {
	if err := ctx.Err(); err != nil {
		return ctx, nil, s.refused(err)
	}
	if limit <= 0 || s.limits.Reach == quorum.ReachProcess {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, nil
}
