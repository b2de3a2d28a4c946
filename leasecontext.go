package quorum

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorum/internal/core"
)

// leaseContext is the context of a lease, made when it is first asked for: most
// of a hundred thousand leases that one process holds need none.
type leaseContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

// end ends the context, if there is one. The lease's cause was set before, so
// that one which is made from now on has ended from the beginning.
func (c *leaseContext) end(cause error) {
	if c != nil {
		c.cancel(cause)
	}
}

type leaseKey struct{}

// Context returns a context that ends when the lease is lost or released;
// [context.Cause] then says why: a [*LostError], or [ErrReleased]. It carries
// the values of the context given to Acquire, and not its end.
func (l *Lease) Context() context.Context {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if l.ctx == nil {
		l.ctx = &leaseContext{}
		l.ctx.Context, l.ctx.cancel = context.WithCancelCause(context.WithValue(l.values, leaseKey{}, l))
		if l.cause != nil {
			l.ctx.cancel(l.cause) // nobody hears of it yet: no code of the user's runs
		}
	}
	return l.ctx.Context
}

// carry keeps the values of Acquire's context.
func (l *Lease) carry(ctx context.Context) {
	l.until.Store(int64(-core.Never))
	l.values = context.WithoutCancel(ctx)
}

// Held returns nil when ctx comes from a lease on key, of any Locker, that is
// still held, and otherwise an error: [ErrNotHeld] when there is no such
// lease, or what [Lease.Err] says. It does no I/O.
func Held(ctx context.Context, key string) error {
	if err := given(ctx); err != nil {
		return err
	}
	for {
		l, _ := ctx.Value(leaseKey{}).(*Lease)
		switch {
		case l == nil:
			return fmt.Errorf("%w: the context comes from no lease on %q", ErrNotHeld, key)
		case l.Key() == key:
			return l.Err()
		}
		ctx = l.values // of the lease in whose context this one was taken
	}
}
