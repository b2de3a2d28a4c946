package quorum

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// Locker takes locks in one store or set of stores. It is safe for concurrent
// use; a program usually has one. Close it before the program ends: only then
// are roll-backs finished and held locks given back.
type Locker struct {
	set       *CombinedStore
	def       settings
	means     *means            // of its leases
	usual     *core.LeaseConfig // of leases with these
	print     Fingerprint
	who       string // host, process and start, for labels
	keeper    *keeper
	crew      *crew
	agenda    *agenda
	admission admission
	releases  admission     // of those that are given back
	closing   chan struct{} // closed when Close is called
	health    *health
	reports   *reports
	hub       *hub

	mu     sync.Mutex
	closed bool
	live   []*Lease      // whatever still sends or holds; each knows its place
	idle   chan struct{} // closed once closed is set and live is empty
}

// New returns a Locker for a store, or a set of them that [Combine] or [Open]
// made; a lone store is a set of one. It fails on every setting that can be
// known to be wrong, and does no I/O.
func New(s Store, options ...Option) (*Locker, error) {
	if s == nil {
		return nil, fmt.Errorf("%w: New without a store", ErrInvalidOption)
	}
	set, ok := s.(*CombinedStore)
	if ok && set == nil {
		return nil, fmt.Errorf("%w: New with a nil *CombinedStore", ErrInvalidOption)
	}
	if !ok {
		var err error
		if set, err = Combine(Consensus(), s); err != nil {
			return nil, err
		}
	}
	return newLocker(set, defaults(), options)
}

func newLocker(set *CombinedStore, def settings, options []Option) (*Locker, error) {
	fixed := def.most > 0
	before := def.maxTTL
	def, err := def.with(options, false)
	if err != nil {
		return nil, err
	}
	if fixed && def.maxTTL != before {
		return nil, fmt.Errorf("%w: MaxTTL of Between is that of the two sets", ErrInvalidOption)
	}
	if err := def.check(set); err != nil {
		return nil, err
	}
	l := &Locker{
		set: set, def: def, print: set.fingerprint(def.maxTTL), who: whoami(),
		idle: make(chan struct{}), closing: make(chan struct{}), admission: make(admission, def.inFlight), releases: make(admission, def.inFlight), reports: newReports(def.observe, len(set.members)),
		crew: &crew{}, health: newHealth(len(set.members)),
	}
	l.agenda = &agenda{clock: def.clock, crew: l.crew}
	l.keeper, l.hub = newKeeper(l), newHub(l)
	l.usual = l.config(&l.def)
	l.means = &means{set: set, clock: def.clock, met: l.met, crew: l.crew, agenda: l.agenda, health: l.health}
	return l, nil
}

// Acquire takes the lock on key and keeps trying while somebody else has it or
// too few stores answer, until ctx or [Wait] ends. ctx bounds the wait only:
// the lease outlives it. Exactly one of lease and error is nil.
//
// The error matches [ErrHeld] when somebody else has the lock and
// [ErrNoQuorum] when too few stores answered, together with ctx's error when
// the wait was ended by it ([context.DeadlineExceeded] by Wait), and only ctx's
// error when ctx had ended before any store was asked;
// [ErrMismatch], [ErrExpired], [ErrClosed] or [ErrInvalidKey] end it at once.
// Whatever a failed acquisition left in the stores is taken back.
//
// Every Acquire is its own holder, also within one process: taking a key again
// while holding it waits, and then fails with ErrHeld.
func (l *Locker) Acquire(ctx context.Context, key string, options ...Option) (*Lease, error) {
	if len(options) == 0 {
		return l.takes(ctx, key, &l.def, nil)
	}
	s, err := l.def.with(options, true)
	return l.takes(ctx, key, &s, err)
}

// takes checks what was asked for, and takes it.
func (l *Locker) takes(ctx context.Context, key string, s *settings, err error) (*Lease, error) {
	if err == nil && s != &l.def { // which New has checked
		err = s.check(l.set)
	}
	if err == nil {
		err = checkKey(key, l.set.Limits().MaxKey)
	}
	if err == nil {
		err = alive(ctx) // else no store is asked
	}
	if err != nil {
		return nil, &OpError{Op: s.op, Key: key, Need: l.set.rule.Need(), reasons: []error{err}}
	}
	return l.acquire(ctx, key, s)
}

// Force takes key from whoever holds it, with a higher token: every other vote
// is removed first, also those of readers, and nobody who waits is asked. The
// holder's lease is lost by its next renewal, with reason forced and the label
// of who forced it, and never comes back by itself. Until then it may believe
// to hold: only a resource that compares tokens is safe at once, so force is
// for people who know that the holder is gone or stuck.
func (l *Locker) Force(ctx context.Context, key string, options ...Option) (*Lease, error) {
	s, err := l.def.with(options, true)
	s.kind, s.op = KindForce, "force"
	return l.takes(ctx, key, &s, err)
}

// TryAcquire is Acquire with a single attempt: each store is asked at most
// once, and contention returns [ErrHeld] at once. It never returns nil, nil.
func (l *Locker) TryAcquire(ctx context.Context, key string, options ...Option) (*Lease, error) {
	return l.Acquire(ctx, key, append(slices.Clone(options), Wait(0))...)
}

func (l *Locker) acquire(ctx context.Context, key string, s *settings) (*Lease, error) {
	left, err := l.admission.enter(ctx, s.wait, l.closing)
	if err != nil {
		return nil, &OpError{Op: s.op, Key: key, Need: l.set.rule.Need(), reasons: []error{err}}
	}
	if left != s.wait {
		shorter := *s
		shorter.wait = left
		s = &shorter
	}
	lease, err := l.lease(ctx, key, s, Owner{}, true)
	if err != nil {
		l.admission.leave()
		return nil, err
	}
	waits := lease.inLine()
	lease.d.do(func(now clock.Instant) {
		if !waits || l.hub.join(lease) { // here, since whoever is in line is let in by others
			lease.m.Start(now)
		} else {
			lease.admitted() // it asks later, in its turn
			lease.m.StartParked(now)
		}
	})
	won, failure := lease.await(ctx)
	if waits {
		l.hub.leave(lease, won)
	}
	if !won {
		return nil, failure
	}
	return lease, nil
}

// await waits for the machine's decision, which the end of ctx brings about.
func (l *Lease) await(ctx context.Context) (won bool, failure error) {
	t := l.taking
	select {
	case <-t.decided:
	case <-ctx.Done():
		l.d.do(func(now clock.Instant) {
			t.ended = ctx.Err()
			l.m.Cancel(now, core.EndCancelled)
		})
		<-t.decided // the machine bounds this
	}
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	l.taking = nil
	return t.won, t.failure
}

// lease makes a lease that has asked nothing yet, for a new owner or one that
// was handed over. placed says that it has a place of the admission, from the
// first on: who stands before it in line may let it ask, and Close may end it,
// before its own goroutine goes on.
func (l *Locker) lease(ctx context.Context, key string, s *settings, owner Owner, placed bool) (*Lease, error) {
	var random [24]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("quorum: no random bits for an owner: %w", err)
	}
	if owner == (Owner{}) {
		owner.ID = OwnerID(random[:16])
	}
	cfg := l.usual
	if s != &l.def {
		cfg = l.config(s)
	}
	own := core.Own{Key: key, ID: core.ID(owner.ID), Ask: l.set.askOrder(key)}
	lease := &Lease{
		locker: l, set: s, m: core.NewLeaseOf(cfg, own, binary.BigEndian.Uint64(random[16:])),
		taking: &taking{decided: make(chan struct{}), placed: placed}, started: s.clock.Now(),
	}
	lease.carry(ctx)
	lease.d = &lease.own
	lease.d.means, lease.d.m, lease.d.owner, lease.d.base = l.means, lease.m, lease, lease.values
	if !l.watch(lease) {
		return nil, &OpError{Op: s.op, Key: key, Need: l.set.rule.Need(), reasons: []error{ErrClosed}}
	}
	l.keeper.sweep(lease.started)
	return lease, nil
}

// config is what the machines of leases with these settings share.
func (l *Locker) config(s *settings) *core.LeaseConfig {
	cfg := &core.LeaseConfig{
		Config: core.Config{
			Rule: l.set.rule, Within: s.ttl, CallLimit: l.callLimit(s), ReleaseLimit: s.releaseLimit,
			DriftPPM: int64(s.driftRate * 1e6), DriftFixed: s.driftFixed, Doubles: l.set.doubles(),
			Request: core.Request{
				Mode: core.Mode(s.mode), Kind: core.Kind(s.kind), Order: core.Order(s.order), TTL: s.ttl, MaxTTL: s.maxTTL,
				Set: uint64(l.print), Label: l.label(s.label),
			},
		},
		FailOnOutage: s.failOnOutage, Wait: s.wait, BackoffMin: s.backoffMin, BackoffMax: s.backoffMax,
		Expiring: s.expiring, MaxHold: s.maxHold, MinHold: s.minHold,
	}
	if cfg.RenewEvery = s.renewEvery; cfg.RenewEvery == 0 {
		cfg.RenewEvery = s.ttl / 3
	}
	if s.noRenew {
		cfg.RenewEvery = 0
	}
	cfg.RenewGrain = cfg.RenewEvery / renewGrains
	cfg.Watch, cfg.Queues = len(l.hub.seats) > 0, l.hub.queues && s.wait != 0 && s.kind != KindForce
	if cfg.Watch && s.wait != 0 {
		cfg.Request.Wait = core.WaitWatch
	}
	return cfg
}

// callLimit is how long a store may take for one call.
func (l *Locker) callLimit(s *settings) time.Duration {
	if s.callLimit > 0 {
		return s.callLimit
	}
	return callLimit(s.ttl, len(l.set.members))
}

// renewGrains is in how many bunches the leases of a Locker are renewed: those of
// one share round trips.
const renewGrains = 256

// Do takes the lock, calls fn and gives the lock back. It is the one call that
// joins the two contexts: the one fn gets ends with ctx and with the lease. fn
// is called only while the lock is held; its panic goes on after the release,
// and so does runtime.Goexit. The lock is given back only after fn returned,
// also when fn ignores its context. The errors of fn, of a loss meanwhile and
// of the release are joined.
func (l *Locker) Do(ctx context.Context, key string, fn func(context.Context, *Lease) error, options ...Option) (err error) {
	lease, err := l.Acquire(ctx, key, options...)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(lease.Context())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer func() {
		stop()
		cancel(nil)
		// Not recovered: the panic goes on with the stack it has.
		err = errors.Join(err, lease.Release(ctx))
	}()
	return fn(inner, lease)
}

// met hears what every store answered.
func (l *Locker) met(store int, err error, nested []Vote) {
	if l.reports.observe != nil {
		l.reports.store(l.def.clock.Now(), store, l.set.members[store], err)
	}
	if err != nil || nested != nil {
		l.keeper.met(l.set, store, err, nested)
	}
}
