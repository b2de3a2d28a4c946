package quorum

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorum/clock"
)

// Option is a setting of a [Locker], given to [New], or of one call, given to
// [Locker.Acquire]. A setting that only makes sense for the whole Locker is
// refused on a call.
type Option struct {
	name   string
	perUse bool // may be given to a single call
	apply  func(*settings)
}

// settings is the one table of what can be set; defaults fills it.
type settings struct {
	ttl          time.Duration
	maxTTL       time.Duration
	most         time.Duration // the longest TTL where that is less than maxTTL, see Between; 0 is maxTTL
	renewEvery   time.Duration // 0 is ttl/3
	noRenew      bool
	wait         time.Duration // <0 is: the context alone bounds the wait
	failOnOutage bool
	order        Order
	backoffMin   time.Duration
	backoffMax   time.Duration
	callLimit    time.Duration // 0 is min(ttl/(n+1), 1 s)
	releaseLimit time.Duration
	inFlight     int // acquisitions that ask at a time
	driftRate    float64
	driftFixed   time.Duration
	expiring     time.Duration
	maxHold      time.Duration
	minHold      time.Duration
	mode         Mode
	kind         Kind   // of the acquisition
	op           string // its name, for errors
	label        string
	observe      func(Event)
	onLeader     func(label string)
	rival        func(label string) // hears who refused an attempt
	clock        clock.Clock
	cluster      bool
}

func defaults() settings {
	return settings{
		ttl:          15 * time.Second,
		maxTTL:       time.Minute,
		wait:         -1,
		order:        FirstThenRest,
		backoffMin:   10 * time.Millisecond,
		backoffMax:   time.Second,
		releaseLimit: 5 * time.Second,
		inFlight:     256,
		driftRate:    0.01,
		driftFixed:   2 * time.Millisecond,
		mode:         ModeExclusive,
		op:           "acquire",
		clock:        clock.System(),
	}
}

// TTL sets how long the stores keep a lock whose holder died; default 15 s. A
// living holder renews and keeps it as long as it likes. It must lie between
// every store's minimum and [MaxTTL].
func TTL(d time.Duration) Option {
	return Option{"TTL", true, func(s *settings) { s.ttl = d }}
}

// MaxTTL sets the longest TTL that any client of the set may use; default
// 1 min. A store that may have forgotten stays out that long. All clients must
// agree on it: it is part of the fingerprint.
func MaxTTL(d time.Duration) Option {
	return Option{"MaxTTL", false, func(s *settings) { s.maxTTL = d }}
}

// RenewEvery sets how often a held lock is extended; default and 0 are TTL/3,
// at most TTL/2, so that a failed renewal leaves time for another.
func RenewEvery(d time.Duration) Option {
	return Option{"RenewEvery", true, func(s *settings) { s.renewEvery = d; s.noRenew = false }}
}

// NoRenew switches renewal off: the lease ends at its TTL unless the holder
// calls [Lease.Extend].
func NoRenew() Option {
	return Option{"NoRenew", true, func(s *settings) { s.noRenew = true }}
}

// Wait bounds how long Acquire waits, beside its context, which alone does so by
// default. Wait(0) is a single attempt: it stands in no line of waiters, and its
// context bounds how long it may wait for a place of [InFlight].
func Wait(d time.Duration) Option {
	return Option{"Wait", true, func(s *settings) { s.wait = max(d, 0) }}
}

// FailOnOutage makes Acquire return ErrNoQuorum at once when too few stores
// answer, instead of waiting for them to come back.
func FailOnOutage() Option {
	return Option{"FailOnOutage", true, func(s *settings) { s.failOnOutage = true }}
}

// AskOrder sets how many stores are asked at once; default [FirstThenRest]:
// two round trips whatever the number of stores, and the first vote arbitrates,
// so that of many who want a name at the same time one gets it.
//
// [AllAtOnce] takes one round trip, for names that hardly anybody wants at the
// same time: rivals split the votes, and all of them may be refused although the
// name was free. [InOrder] takes as many as a quorum has stores. Clients of one set
// may differ in it. docs/performance.md compares them.
func AskOrder(o Order) Option {
	return Option{"AskOrder", true, func(s *settings) { s.order = o }}
}

// Backoff sets the range of the pause between attempts; default 10 ms to 1 s.
// The pause is drawn evenly from nothing to a bound that doubles from low to
// high (the "full jitter" of Brooker, "Exponential Backoff and Jitter", 2015).
// low must be at least 1 ms, so that waiting costs no CPU.
func Backoff(low, high time.Duration) Option {
	return Option{"Backoff", true, func(s *settings) { s.backoffMin, s.backoffMax = low, high }}
}

// CallLimit bounds each call to one store; default and 0 are the smaller of
// TTL/(N+1) and 1 s. It runs from when the lease sends the call, and not from
// when the store's client writes it: waiting for a connection, dial, TLS and
// log-in count, and so does waiting for other calls to share a round trip with.
// What keeps that short is [InFlight], whose wait does not count. A store that
// takes longer counts as one that did not answer, never as contention, and is
// asked again soon.
func CallLimit(d time.Duration) Option {
	return Option{"CallLimit", true, func(s *settings) { s.callLimit = d }}
}

// ReleaseLimit bounds how long releases and roll-backs are retried; default
// 5 s. A store that stays away longer frees itself at the TTL.
func ReleaseLimit(d time.Duration) Option {
	return Option{"ReleaseLimit", false, func(s *settings) { s.releaseLimit = d }}
}

// InFlight bounds how many acquisitions of the Locker ask the stores at a time;
// default 256, at least 1. Others wait for their turn, in the order in which
// they came and until their own context or [Wait] ends, and none of the limits of
// calls runs meanwhile: so a process that asks for more than it or its stores
// can carry is slow and not, by its own time-outs, in vain. Who waits for
// somebody else's lock does not count, nor do renewals. As many may be given
// back at a time; a release that waits for its turn leaves anyway after a
// [CallLimit]. Raise it where round trips are long and many: 256 in flight at two
// round trips of 20 ms are 6,400 acquisitions a second.
func InFlight(n int) Option {
	return Option{"InFlight", false, func(s *settings) { s.inFlight = n }}
}

// Drift sets what is taken off a lease's validity because clocks run at
// different rates: rate·TTL + fixed; default 1 % and 2 ms. The rate must lie
// in [0, 1); it is how far a holder's and a store's clock may differ from each
// other.
func Drift(rate float64, fixed time.Duration) Option {
	return Option{"Drift", false, func(s *settings) { s.driftRate, s.driftFixed = rate, fixed }}
}

// Expiring raises an [EventExpiring] when no renewal has succeeded until d
// before the end of validity; off by default.
func Expiring(d time.Duration) Option {
	return Option{"Expiring", true, func(s *settings) { s.expiring = d }}
}

// MaxHold ends every lease d after it was taken, with reason "max hold"; off
// by default. The name is free at most one TTL later.
func MaxHold(d time.Duration) Option {
	return Option{"MaxHold", true, func(s *settings) { s.maxHold = d }}
}

// MinHold keeps a release back until d after the lock was asked for, so that a
// job that takes no time still runs once where several schedulers start it at
// about the same time; off by default, at most [TTL]. Release returns at once,
// and the lease is over for its holder; the stores are told when d is over, for
// which Close waits. A process that ends before leaves the lock to its TTL.
func MinHold(d time.Duration) Option {
	return Option{"MinHold", true, func(s *settings) { s.minHold = d }}
}

// Shared takes the lock as a reader: many readers may hold a name together, or
// one writer alone. Each reader has a lease of its own, which ends without the
// others. A store that cannot share grants to one reader at a time, and
// [Lease.Votes] says so; [Limits] tell beforehand. [Lease.Promote] makes a
// reader the writer.
func Shared() Option {
	return Option{"Shared", true, func(s *settings) { s.mode = ModeShared }}
}

// Label says who holds the lock, for people who ask: at most 200 bytes, before
// the host's name, the process number and its start, which are always there.
// Errors of others show its beginning, [Locker.Inspect] all of it. It is readable
// by all clients.
func Label(text string) Option {
	return Option{"Label", true, func(s *settings) { s.label = text }}
}

// Observe gives every [Event] to fn. fn is called by the goroutine that saw
// the event, without a lock held, and may be called by several goroutines at
// once. It must return soon: what the event's lock asks next, a renewal among
// it, may wait until then. Without an observer events cost nothing.
// docs/events.md says when each kind comes, and which to alert on.
func Observe(fn func(Event)) Option {
	return Option{"Observe", false, func(s *settings) { s.observe = fn }}
}

// WithClock replaces the clock, [clock.System] by default. In a
// testing/synctest bubble give [clock.Go].
func WithClock(c clock.Clock) Option {
	return Option{"WithClock", false, func(s *settings) { s.clock = c }}
}

// Cluster demands that every store arbitrates between machines: a memory or
// file store is then refused. Combine refuses a mix in any case.
func Cluster() Option {
	return Option{"Cluster", false, func(s *settings) { s.cluster = true }}
}

// with returns s changed by options; perUse says that they stand on one call.
func (s settings) with(options []Option, perUse bool) (settings, error) {
	if len(options) == 0 {
		return s, nil
	}
	return s.changed(options, perUse)
}

func (s settings) changed(options []Option, perUse bool) (settings, error) {
	for _, o := range options {
		if o.apply == nil {
			return s, fmt.Errorf("%w: an Option made by no function of this package", ErrInvalidOption)
		}
		if perUse && !o.perUse {
			return s, fmt.Errorf("%w: %s is a setting of New, not of one call", ErrInvalidOption, o.name)
		}
		o.apply(&s)
	}
	return s, nil
}
