package quorum

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// Mode returns [ModeShared] for a reader's lease and [ModeExclusive] for a
// writer's. A store that cannot share may give a reader more than it asked for;
// [Lease.Votes] says so.
func (l *Lease) Mode() Mode {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return l.mode
}

// Promote makes the only reader the writer and returns the writer's lease,
// whose token is higher; l then ends with [ErrReleased]. Nobody comes in
// between. Beside other readers it returns [ErrHeld] at once and l stays held,
// so two readers that want to be promoted never wait for each other: one of
// them has to release. With too few stores it returns [ErrNoQuorum]; l then
// stays held unless too few of its votes are left, which its context tells. It
// waits for a renewal that is under way. An ended ctx ends the wait: either the
// promotion had won by then, or it is undone.
func (l *Lease) Promote(ctx context.Context) (*Lease, error) {
	if err := given(ctx); err != nil {
		return nil, l.fails("promote", err)
	}
	heir := &Lease{
		locker: l.locker, d: l.d, m: l.m, set: l.set,
	}
	heir.carry(ctx)
	if err := l.change(ctx, "promote", heir); err != nil {
		return nil, err
	}
	return heir, nil
}

// Demote makes a writer's lease a reader's and lets other readers in, without a
// moment in which another writer could come. Token and context stay. The caller
// must have ended its writing before: other readers may be in before Demote
// returns. A demotion that too few stores confirm ends the lease with a
// [*LostError]; so does nothing else, and an ended ctx ends the wait for the
// answer only. Of a reader's lease it changes nothing.
func (l *Lease) Demote(ctx context.Context) error { return l.change(ctx, "demote", nil) }

// change asks the machine for a change of mode: a promotion where there is an
// heir.
func (l *Lease) change(ctx context.Context, op string, heir *Lease) error {
	if err := alive(ctx); err != nil {
		return l.fails(op, err)
	}
	answer := make(chan error, 1)
	var serial uint32
	l.d.do(func(now clock.Instant) {
		switch {
		case l.cause != nil:
			answer <- l.cause
			return
		case heir != nil && l.mode == ModeExclusive:
			answer <- l.fails(op, fmt.Errorf("%w: the lease is exclusive already", ErrInvalidOption))
			return
		}
		serial = l.expect(asked{answer, heir})
		if heir == nil {
			l.m.Demote(now, serial)
		} else {
			l.m.Promote(now, serial)
		}
	})
	select {
	case err := <-answer:
		return l.named(op, err)
	case <-ctx.Done():
	}
	if heir == nil {
		return l.fails(op, ctx.Err())
	}
	l.d.do(func(now clock.Instant) {
		if _, waits := l.asked[serial]; waits {
			l.m.Desist(now, serial)
		}
	})
	err := <-answer // Desist tells at once
	if err != nil && ctx.Err() != nil && l.Err() == nil {
		err = l.fails(op, ctx.Err())
	}
	return l.named(op, err)
}

// named says of a lease that is released which it is; other errors say so
// themselves.
func (l *Lease) named(op string, err error) error {
	if err == ErrReleased {
		return l.fails(op, err)
	}
	return err
}

func (l *Lease) fails(op string, why error) error {
	return &OpError{Op: op, Key: l.Key(), Need: l.d.set.rule.Need(), reasons: []error{why}}
}

// changed tells how a change of mode ended that leaves the lease what it is.
func (l *Lease) changed(n core.Notice) {
	op := "demote"
	if l.asked[n.Serial].heir != nil {
		op, n.OK = "promote", false // one that won while the lease was given back
	} else if n.OK {
		l.tell(Event{Kind: EventDemoted})
	}
	l.answer(n, func() error {
		switch n.Failure {
		case core.ByHeld:
			return l.fails(op, fmt.Errorf("%w: other readers are in", ErrHeld))
		case core.ByMismatch:
			return l.opError(op, ErrMismatch)
		case core.ByExpired:
			return l.opError(op, ErrExpired)
		case core.ByNoQuorum:
			return l.opError(op, ErrNoQuorum)
		}
		return ErrReleased // or given up, whose caller knows
	})
}

// promotes reports whether n tells of a promotion that another Lease carries
// on. A lease that is being given back carries it itself, to the stores.
func (l *Lease) promotes(n core.Notice) bool {
	return n.OK && l.asked[n.Serial].heir != nil && l.cause == nil && l.release == nil
}

// handOn ends l, whose machine and driver another Lease has from now on.
func (l *Lease) handOn(now clock.Instant, serial uint32, rest []core.Notice) func() {
	promotion := l.asked[serial]
	heir := promotion.heir
	delete(l.asked, serial)
	l.cause = ErrReleased
	l.release = &release{done: make(chan struct{}), votes: l.d.votes(l.m.Quorum().View)}
	close(l.release.done)

	heir.token, heir.started, heir.serial = l.m.Quorum().Token(), now, l.serial
	heir.asked, heir.gone = l.asked, l.gone
	heir.d.owner = heir
	if heir.listens = l.listens; l.listens {
		l.locker.hub.replace(l, heir)
	}
	l.locker.replace(l, heir)
	heir.tell(Event{Kind: EventPromoted})
	promotion.answer <- nil
	return heir.hear(now, rest)
}
