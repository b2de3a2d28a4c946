package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Group is several leases that are held, and given back, together.
type Group struct {
	leases []*Lease // in the order in which they were taken
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// AcquireAll takes the locks on all keys, or none of them. Every client takes
// them one after another in the same order, that of the keys' bytes, so two that
// want the same keys never wait for each other in a circle; a key that is given
// twice is taken once. Those that it has are renewed while it waits for the
// next. ctx bounds it all, [Wait] each key, and Wait(0) makes it one attempt.
// When a key cannot be had, or a lease is lost meanwhile, the others are given
// back and the error of that key is returned.
func (l *Locker) AcquireAll(ctx context.Context, keys []string, options ...Option) (*Group, error) {
	fails := func(why error) error {
		return &OpError{Op: "acquire all", Need: l.set.rule.Need(), reasons: []error{why}}
	}
	if err := given(ctx); err != nil {
		return nil, fails(err)
	}
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) == 0 {
		return nil, fails(fmt.Errorf("%w: no keys", ErrInvalidKey))
	}
	g := &Group{}
	waits, cancel := context.WithCancelCause(ctx) // for the next, as long as those before it are held
	defer cancel(nil)
	inner := waits
	for _, key := range sorted {
		lease, err := l.Acquire(inner, key, options...)
		if err != nil {
			return nil, g.giveUp(ctx, cmp.Or(g.Err(), err))
		}
		g.leases = append(g.leases, lease)
		defer context.AfterFunc(lease.Context(), func() { cancel(context.Cause(lease.Context())) })()
		inner = context.WithValue(waits, leaseKey{}, lease) // so that Held finds all of them
	}
	if err := g.Err(); err != nil {
		return nil, g.giveUp(ctx, err)
	}
	return g.join(), nil
}

// giveUp gives back what there is. Its own failures are the Locker's to retry:
// the caller is told why there is no group.
func (g *Group) giveUp(ctx context.Context, why error) error {
	for _, lease := range slices.Backward(g.leases) {
		_ = lease.Release(ctx)
	}
	return why
}

// join makes the group's context out of those of its leases.
func (g *Group) join() *Group {
	g.ctx, g.cancel = context.WithCancelCause(g.leases[len(g.leases)-1].Context())
	for _, lease := range g.leases {
		context.AfterFunc(lease.Context(), func() { g.cancel(context.Cause(lease.Context())) })
	}
	return g
}

// Leases returns the leases, in the order of their keys.
func (g *Group) Leases() []*Lease { return slices.Clone(g.leases) }

// Context returns a context that ends, with its cause, as soon as one of the
// leases is lost or released. It carries the values of the context given to
// AcquireAll, and [Held] finds every key in it.
func (g *Group) Context() context.Context { return g.ctx }

// Err returns nil while all leases are held, and otherwise what [Lease.Err] says
// of the first that is not.
func (g *Group) Err() error {
	for _, lease := range g.leases {
		if err := lease.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Remaining returns that of the lease which ends first.
func (g *Group) Remaining() time.Duration {
	left := g.leases[0].Remaining()
	for _, lease := range g.leases[1:] {
		left = min(left, lease.Remaining())
	}
	return left
}

// Release gives all locks back, as [Lease.Release] does each, and joins the
// errors. The group's context ends before the first store is told.
func (g *Group) Release(ctx context.Context) error {
	if err := given(ctx); err != nil {
		return &OpError{Op: "release", reasons: []error{err}}
	}
	g.cancel(ErrReleased)
	var errs []error
	for _, lease := range slices.Backward(g.leases) {
		errs = append(errs, lease.Release(ctx))
	}
	return errors.Join(errs...)
}
