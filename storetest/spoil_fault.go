package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorum"
)

// ErrSpoiled is what a spoiled call fails with where no other error is named.
var ErrSpoiled = errors.New("storetest: spoiled on purpose")

// Rule says which calls are spoiled, and how.
type Rule struct {
	// Match picks the calls; nil picks all. It is called with the log locked,
	// so it must not call the Spoiled.
	Match func(Call) bool
	// Faults spoil the call, the first outermost.
	Faults []Fault
}

// On returns a rule.
func On(match func(Call) bool, faults ...Fault) Rule { return Rule{match, faults} }

// Always returns a rule for all calls.
func Always(faults ...Fault) Rule { return Rule{nil, faults} }

// Fault is one way in which a call goes wrong. Where several are given they
// come one after another: Always(Latency(d), DropReply(nil)) delays the
// request and then loses the reply.
type Fault struct {
	around func(s *Spoiled, r quorum.Request, send, late sender) sender
}

// sender passes a request on.
type sender = func(context.Context) error

// Latency delays the request by d. A call whose context ends meanwhile ends
// with it, and nothing is applied.
func Latency(d time.Duration) Fault {
	return Fault{func(s *Spoiled, _ quorum.Request, send, _ sender) sender {
		return func(ctx context.Context) error {
			if err := sleep(ctx, d); err != nil {
				return err
			}
			return send(ctx)
		}
	}}
}

// LateReply delays the reply by d. A call whose context ends meanwhile ends
// with it, although the request was applied.
func LateReply(d time.Duration) Fault {
	return Fault{func(s *Spoiled, _ quorum.Request, send, _ sender) sender {
		return func(ctx context.Context) error {
			err := send(ctx)
			if ended := sleep(ctx, d); ended != nil {
				return ended
			}
			return err
		}
	}}
}

// Fail answers err, or [ErrSpoiled] for nil, and applies nothing. Wrap err by
// quorum.Undelivered for a request that provably never left.
func Fail(err error) Fault {
	return Fault{func(*Spoiled, quorum.Request, sender, sender) sender {
		return func(context.Context) error { return orSpoiled(err) }
	}}
}

// DropReply applies the request and answers err, or [ErrSpoiled] for nil.
func DropReply(err error) Fault {
	return Fault{func(_ *Spoiled, _ quorum.Request, send, _ sender) sender {
		return func(ctx context.Context) error {
			_ = send(ctx)
			return orSpoiled(err)
		}
	}}
}

// Hang answers nothing until the context ends, and applies nothing.
func Hang() Fault {
	return Fault{func(s *Spoiled, _ quorum.Request, _, _ sender) sender {
		return func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-s.life.Done():
				return ErrSpoiled
			}
		}
	}}
}

// Freeze stops the call, whatever its context says, until [Spoiled.Thaw]; then
// the request is applied. It is a client that does not honour contexts.
func Freeze() Fault {
	return Fault{func(s *Spoiled, _ quorum.Request, send, _ sender) sender {
		return func(ctx context.Context) error {
			<-s.thawed
			return send(context.WithoutCancel(ctx))
		}
	}}
}

// LateApply abandons the call and applies its request d after that. The call
// answers err at once; for a nil err it lasts until its context ends, and
// answers as that does.
func LateApply(d time.Duration, err error) Fault {
	return Fault{func(s *Spoiled, r quorum.Request, _, late sender) sender {
		return func(ctx context.Context) error {
			if err == nil {
				if ended := Hang().around(s, r, nil, nil)(ctx); ended == ErrSpoiled {
					return ended // closed
				}
			}
			s.later(d, r, late)
			if err == nil {
				return ctx.Err()
			}
			return err
		}
	}}
}

// Double sends the request a second time d after it was answered; for 0 before
// the call returns. The answer is the first one, and no refusal is Clean. Let
// the store [Spoiled.Pretend] that its client doubles.
func Double(d time.Duration) Fault {
	return Fault{func(s *Spoiled, r quorum.Request, send, late sender) sender {
		return func(ctx context.Context) error {
			err := send(ctx)
			if d == 0 {
				_ = late(ctx)
			} else {
				s.later(d, r, late)
			}
			if refusal := (*quorum.RefusedError)(nil); errors.As(err, &refusal) {
				dirty := *refusal
				dirty.Clean = false
				return &dirty
			}
			return err
		}
	}}
}

// Do calls f before the request is passed on: to move a clock, to let a server
// restart empty ([Spoiled.Replace]), or to wait for another call.
func Do(f func()) Fault {
	return Fault{func(_ *Spoiled, _ quorum.Request, send, _ sender) sender {
		return func(ctx context.Context) error {
			f()
			return send(ctx)
		}
	}}
}

// Panic panics with v and applies nothing.
func Panic(v any) Fault {
	return Fault{func(*Spoiled, quorum.Request, sender, sender) sender {
		return func(context.Context) error { panic(v) }
	}}
}

func orSpoiled(err error) error {
	if err == nil {
		return ErrSpoiled
	}
	return err
}

// sleep returns after d, or earlier with the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// later sends a request after d, in a goroutine of its own that Close ends. It
// is bounded by the request's own limit as every call is.
func (s *Spoiled) later(d time.Duration, r quorum.Request, send sender) {
	done := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return
	}
	s.pending[done] = true
	go func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.pending, done)
			close(done)
		}()
		if sleep(s.life, d) != nil {
			return
		}
		ctx, cancel := s.life, context.CancelFunc(func() {})
		if r.Limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, r.Limit)
		}
		defer cancel()
		_ = send(ctx)
	}()
}
