package quorum

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// Lease is a held lock. Its methods are safe for concurrent use. It is renewed
// in the background until it is released or lost; [Lease.Context] ends then.
type Lease struct {
	locker *Locker
	d      *driver
	own    driver          // d, unless the lease carries another one on
	m      *core.Lease     // under d.mu
	set    *settings       // the Locker's, where nothing was given for this one alone; never changed
	values context.Context // those of Acquire's context, and not its end

	taking  *taking // nil once Acquire has its answer; under d.mu, as all below
	ctx     *leaseContext
	token   int64
	started clock.Instant
	cause   error // why it is over
	asked   map[uint32]asked
	release *release
	after   func()   // what to do once mu is free, see later
	serial  uint32   // of what was asked last
	gone    core.Set // stores told as given up on
	place   int32    // among those that the Locker keeps, from 1; 0 is none; under the Locker's mu
	mode    Mode
	freed   bool // tell who waits here for the key, once mu is free
	listens bool
	leaves  bool // it has a place among those that are given back

	until atomic.Int64 // end of validity; in the past once it is over
}

// taking is what a lease needs until Acquire has its answer: one that is held
// is to be small.
type taking struct {
	decided chan struct{} // closed with the answer
	won     bool
	failure error
	ended   error // of the context that ended the wait
	placed  bool  // it has a place of the admission
}

// asked is an extension or a change of mode that somebody waits for.
type asked struct {
	answer chan error
	heir   *Lease // that a promotion would make
}

// release is one attempt at giving back, which several callers may share.
type release struct {
	done  chan struct{}
	err   error
	votes []Vote // where it is over because another Lease carries it on
}

func (l *Lease) owner() Owner { return Owner{ID: OwnerID(l.m.Quorum().ID())} }

// Key returns the key that is locked.
func (l *Lease) Key() string { return l.m.Quorum().Key() }

// Token returns the fencing token: larger than that of every exclusive
// acquisition of the key that was complete before this one began. It is the
// same as long as the lease lives and after, so that a resource that compares
// tokens refuses a holder that does not know yet that it has lost.
func (l *Lease) Token() int64 { return l.token }

// Remaining returns for how long the holder may still believe that it holds
// the lock: TTL, minus the time since the last confirmed request left, minus
// drift. It does no I/O, and is 0 once the lease is lost or released.
func (l *Lease) Remaining() time.Duration {
	left := clock.Instant(l.until.Load()).Sub(l.d.clock.Now())
	return max(left, 0)
}

// Err returns nil while the lease is held, by the local clock and without I/O,
// and otherwise a [*LostError] or [ErrReleased].
func (l *Lease) Err() error {
	if l.Remaining() > 0 {
		return nil
	}
	// A process that was stopped finds out here, before its timers run.
	l.d.wake()
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return l.cause
}

// Previous says how the last holder of the key ended: [PreviousReleased] when it
// gave the lock back, [PreviousExpired] when its time ran out, as after a crash,
// so that the next one can look at what it left, and [PreviousUnknown] when
// there was none, or the stores do not remember, or it was taken by force. It
// says expired when any store of the quorum saw the vote run out there: a
// release that did not reach a store in time may look like that, a crash never
// like a release unless somebody else was in between.
func (l *Lease) Previous() Previous {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return Previous(l.m.Quorum().Previous())
}

// Votes says what each store answered last: in the acquisition, in the last
// round of renewal, or in the release.
func (l *Lease) Votes() []Vote {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if l.release != nil && l.release.votes != nil {
		return l.release.votes
	}
	return l.d.votes(l.m.Quorum().View)
}

// Extend makes the lease last ttl from now, and renewals last as long. It
// never shortens: a shorter time changes nothing. It returns [ErrNoQuorum] when
// too few stores confirmed, and the lease is then held until its old end; a
// [*LostError] when a quorum can no longer be made; ErrReleased after a
// release; ErrInvalidTTL for a ttl out of range. An ended ctx ends the wait for
// the answer, not the extension.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	err := l.locker.checkTTL(ttl)
	if err == nil {
		err = alive(ctx)
	}
	if err != nil {
		return l.fails("extend", err)
	}
	answer := make(chan error, 1)
	l.d.do(func(now clock.Instant) {
		if l.cause != nil {
			answer <- l.cause
			return
		}
		l.m.Extend(now, l.expect(asked{answer: answer}), ttl)
	})
	select {
	case err := <-answer:
		return l.named("extend", err)
	case <-ctx.Done():
		return l.fails("extend", ctx.Err())
	}
}

// expect numbers what is about to be asked of the machine. The caller holds
// d.mu.
func (l *Lease) expect(a asked) uint32 {
	if l.asked == nil {
		l.asked = map[uint32]asked{}
	}
	l.serial++
	l.asked[l.serial] = a
	return l.serial
}

// Release gives the lock back. The lease is over, and its context has ended,
// before the first store is told. ctx gives values only: Release also works
// with one that has ended. It returns when every store has answered or failed
// once: nil when those that answered satisfy the strategy, and otherwise
// [ErrNoQuorum], while the Locker goes on trying until its ReleaseLimit; a
// store that stays away frees itself at the TTL. Called again it returns nil
// without asking anybody, or tries again after a failure. After a loss it
// still tells the stores, and returns the [*LostError].
func (l *Lease) Release(ctx context.Context) error {
	if err := given(ctx); err != nil {
		return l.fails("release", err)
	}
	l.d.mu.Lock()
	r := l.release
	mine := r == nil
	if !mine {
		select {
		case <-r.done:
			mine = r.err != nil && errors.Is(r.err, ErrNoQuorum)
		default:
		}
	}
	if !mine {
		l.d.mu.Unlock()
		<-r.done // bounded by the call limits of the one who is at it
		return r.err
	}
	r = &release{done: make(chan struct{})}
	l.release = r
	l.d.base = context.WithoutCancel(ctx)
	l.d.mu.Unlock()
	if l.Remaining() == 0 {
		l.d.wake() // an end that has passed unnoticed comes first
	}
	l.end(ErrReleased)
	// Many that are given back at once would time one another out, as many that
	// are taken. No release waits for longer than a call that is late, nor once
	// Close has made it.
	if _, err := l.locker.releases.enter(context.Background(), l.locker.callLimit(l.set), r.done); err == nil {
		defer l.locker.releases.leave()
	}
	l.d.do(func(now clock.Instant) {
		select {
		case <-r.done:
		default:
			l.locker.watch(l)
			l.m.Release(now)
		}
	})
	<-r.done
	return r.err
}

// end makes the lease over for its holder. The first cause stands.
func (l *Lease) end(cause error) {
	l.d.mu.Lock()
	if l.cause == nil {
		l.cause = cause
	}
	l.until.Store(int64(-core.Never))
	cause, ctx := l.cause, l.ctx
	l.d.mu.Unlock()
	ctx.end(cause)
}
