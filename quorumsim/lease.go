package quorumsim

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// What taking and holding a lock can come to, as in package quorum.
var (
	ErrHeld     = errors.New("quorumsim: held by another owner")
	ErrNoQuorum = errors.New("quorumsim: too few stores answered")
	ErrExpired  = errors.New("quorumsim: the acquisition outlived its TTL")
	ErrLost     = errors.New("quorumsim: lease lost")
	ErrReleased = errors.New("quorumsim: lease released")
)

// Ask says how to take a lock. The zero value waits as long as it takes, for an
// exclusive lease that is renewed until it is given back.
type Ask struct {
	Wait         time.Duration // at most this long; 0 is without end
	Try          bool          // a single attempt
	Shared       bool          // beside other readers
	NoRenew      bool          // the lease ends at its TTL
	FailOnOutage bool          // do not wait for stores to come back
	TTL          time.Duration // default [Config.TTL]; at most MaxTTL
	MaxHold      time.Duration // the lease ends this long after it was taken; 0 is never
}

// Lease is a lock that was taken.
type Lease struct {
	j        *Job
	key      string
	l        *sim.Lease
	wake     func()
	got      bool
	failed   *core.Notice
	returned bool // the job gave it back
	freed    *core.Notice
	serial   uint32
	extended map[uint32]bool
	why      core.Reason
}

// Acquire takes the lock on key, which is any text. Exactly one of lease and
// error is nil. The error matches [ErrHeld] when somebody else has the lock,
// [ErrNoQuorum] when too few stores answered, [ErrExpired] when it took longer
// than the TTL. A TTL below 100 ms or above MaxTTL, and a Wait or MaxHold below
// 0, end the job, and [Run] returns an error that says so.
func (j *Job) Acquire(key string, ask Ask) (*Lease, error) {
	j.check()
	if ask.TTL != 0 && ask.TTL < 100*time.Millisecond || ask.TTL > j.r.cfg.MaxTTL || ask.Wait < 0 || ask.MaxHold < 0 {
		panic(invalid{fmt.Errorf("quorumsim: Acquire %s: TTL %v, Wait %v, MaxHold %v: 100 ms <= TTL <= MaxTTL %v, the others at least 0",
			key, ask.TTL, ask.Wait, ask.MaxHold, j.r.cfg.MaxTTL)})
	}
	request := sim.Request{
		Key: j.r.key(j.c, key), TTL: ask.TTL, Wait: ask.Wait, NoRenew: ask.NoRenew, MaxHold: ask.MaxHold,
		FailOutage: ask.FailOnOutage, Order: core.Order(j.r.cfg.Order),
	}
	if ask.Shared {
		request.Mode = core.Shared
	}
	switch {
	case ask.Try:
		request.Wait = 0
	case ask.Wait == 0:
		request.Wait = -1
	}
	l := &Lease{j: j, key: key, extended: map[uint32]bool{}}
	l.l = j.c.Acquire(request, l.heard)
	l.until(func() bool { return l.got || l.failed != nil })
	if l.failed != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, failure(l.failed.Failure))
	}
	return l, nil
}

func failure(why core.Failure) error {
	switch why {
	case core.ByHeld:
		return ErrHeld
	case core.ByExpired:
		return ErrExpired
	}
	return ErrNoQuorum
}

// heard takes what the lease has to tell.
func (l *Lease) heard(_ *sim.Lease, n core.Notice) {
	switch n.Kind {
	case core.NoticeAcquired:
		l.got = true
	case core.NoticeFailed:
		l.failed = &n
	case core.NoticeLost:
		l.why = n.Reason
	case core.NoticeReleased:
		l.freed = &n
	case core.NoticeExtended:
		l.extended[n.Serial] = n.OK
	}
	l.poke()
}

// poke lets the job look whether what it waits for has come. It wakes one wait
// once: what is told of the lease while the job waits for something else is
// found when it asks.
func (l *Lease) poke() {
	if wake := l.wake; wake != nil {
		l.wake = nil
		wake()
	}
}

// until waits for something that heard or a timer brings about.
func (l *Lease) until(done func() bool) {
	for !done() {
		l.j.wait(func(wake func()) { l.wake = wake })
	}
}

// Key returns the name of the lock.
func (l *Lease) Key() string { return l.key }

// Token returns the fencing token. It stays what it was when the lease is over.
func (l *Lease) Token() int64 { return l.l.Token() }

// Remaining returns for how long the process may still believe that it holds
// the lock, by its own clock; 0 is not held.
func (l *Lease) Remaining() time.Duration { return l.l.Remaining() }

// Err returns nil while the lock is held, and then [ErrReleased] or [ErrLost].
func (l *Lease) Err() error {
	switch {
	case l.returned && l.why == core.NotLost:
		return fmt.Errorf("%s: %w", l.key, ErrReleased)
	case l.Remaining() > 0:
		return nil
	case l.why != core.NotLost:
		return fmt.Errorf("%s: %w: %s", l.key, ErrLost, sim.ReasonName(l.why))
	}
	return fmt.Errorf("%s: %w", l.key, ErrLost)
}

// Sleep waits for d or until the lease is over, whichever comes first, and
// returns what [Lease.Err] says then. It stands for a wait on d and the end of
// the lease's context.
func (l *Lease) Sleep(d time.Duration) error {
	l.j.check()
	over := false
	l.j.c.After(d, func() {
		over = true
		l.poke()
	})
	l.until(func() bool { return over || l.Remaining() == 0 })
	return l.Err()
}

// Extend makes the lease last for ttl from now, and is not needed where it is
// renewed. A ttl that is not above 0, or above MaxTTL, ends the job and the run as
// in [Job.Acquire]. It never shortens. The error matches [ErrNoQuorum] when too few
// stores answered: the lease stays held until its end.
func (l *Lease) Extend(ttl time.Duration) error {
	l.j.check()
	if ttl <= 0 || ttl > l.j.r.cfg.MaxTTL {
		panic(invalid{fmt.Errorf("quorumsim: Extend %s by %v: above 0, at most MaxTTL %v", l.key, ttl, l.j.r.cfg.MaxTTL)})
	}
	if err := l.Err(); err != nil {
		return err
	}
	l.serial++
	serial := l.serial
	l.l.Extend(serial, ttl)
	l.until(func() bool { _, told := l.extended[serial]; return told })
	if err := l.Err(); err != nil {
		return err
	}
	if !l.extended[serial] {
		return fmt.Errorf("extend %s: %w", l.key, ErrNoQuorum)
	}
	return nil
}

// Release gives the lock back and waits until every store has answered or
// failed once. It is idempotent. The error matches [ErrLost] when the lease was
// lost before, and [ErrNoQuorum] when too few stores answered; what failed is
// tried again in the background.
func (l *Lease) Release() error {
	l.j.check()
	if !l.returned {
		l.returned = true
		if l.Remaining() == 0 && l.why == core.NotLost {
			l.why = core.LostExpired // and the notice is on its way
		}
		l.l.Release()
	}
	l.until(func() bool { return l.freed != nil })
	switch {
	case l.why != core.NotLost:
		return l.Err()
	case !l.freed.OK:
		return fmt.Errorf("release %s: %w", l.key, ErrNoQuorum)
	}
	return nil
}
