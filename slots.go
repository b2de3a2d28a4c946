package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Slots is a counting semaphore: at most n holders at a time, each with a slot
// of its own. A slot is a lock on a name made of the key, #, and the slot's
// number; who holds a slot also reads the name made of the key and #slots, whose
// label says n. Make one with [Locker.Slots].
type Slots struct {
	l     *Locker
	key   string
	n     int
	label string
}

// Slot is one held slot.
type Slot struct {
	*Group
	number int
}

// mostSlots keeps a round over all slots short.
const mostSlots = 1000

// numberSuffix makes the name that holds n.
const numberSuffix = "#slots"

// slotPause bounds how long a waiter stands at one slot before it looks at the
// others again.
const slotPause = time.Second

// Slots returns a semaphore of n slots, 1 to 1,000. All clients of a key must
// agree on n: whoever comes with another n while slots are held gets
// [ErrMismatch]. Every store must be able to share and to be inspected, else it
// returns [ErrUnsupported]. It does no I/O.
func (l *Locker) Slots(key string, n int) (*Slots, error) {
	s := &Slots{l: l, key: key, n: n, label: fmt.Sprintf("slots=%d", n)}
	err := checkKey(key, l.set.Limits().MaxKey-len(numberSuffix))
	if err == nil && (n < 1 || n > mostSlots) {
		err = fmt.Errorf("%w: %d slots: 1 to %d", ErrInvalidOption, n, mostSlots)
	}
	for _, m := range l.set.leaves() {
		if _, ok := As[Inspector](m); err == nil && (!ok || !m.Limits().Shares) {
			err = fmt.Errorf("%w: store %q cannot share and be inspected, as slots need", ErrUnsupported, m.Name())
		}
	}
	if err != nil {
		return nil, s.failsTo("slots", err)
	}
	return s, nil
}

func (s *Slots) fails(why error) error { return s.failsTo("acquire", why) }

func (s *Slots) failsTo(op string, why error) error {
	return &OpError{Op: op, Key: s.key, Need: s.l.set.rule.Need(), reasons: []error{why}}
}

// Acquire takes a free slot and waits for one until ctx or [Wait] ends. Options
// and errors are those of [Locker.Acquire]; [Shared] makes no sense of a slot. A
// waiter has no place in a line: a slot that falls free goes to who asks first.
func (s *Slots) Acquire(ctx context.Context, options ...Option) (*Slot, error) {
	set, err := s.l.def.with(options, true)
	if err == nil {
		err = given(ctx)
	}
	if err != nil {
		return nil, s.fails(err)
	}
	if set.mode == ModeShared {
		return nil, s.fails(fmt.Errorf("%w: a slot has one holder: leave Shared out", ErrInvalidOption))
	}
	deadline := time.Now().Add(set.wait)
	for round := 0; ; round++ {
		slot, err := s.try(ctx, options)
		switch {
		case err == nil:
			return slot, nil
		case !errors.Is(err, ErrHeld) && (set.failOnOutage || !errors.Is(err, ErrNoQuorum)), ctx.Err() != nil, set.wait == 0:
			return nil, err
		case set.wait > 0 && !time.Now().Before(deadline):
			return nil, s.fails(errors.Join(err, context.DeadlineExceeded))
		}
		if err := s.stand(ctx, options, set.wait, deadline); err != nil {
			return nil, err
		}
	}
}

// TryAcquire is Acquire with a single look at every slot.
func (s *Slots) TryAcquire(ctx context.Context, options ...Option) (*Slot, error) {
	return s.Acquire(ctx, append(options[:len(options):len(options)], Wait(0))...)
}

// stand waits at one slot, by the ordinary ways of waiting, and lets it go: the
// round that follows takes it together with the name that holds n.
func (s *Slots) stand(ctx context.Context, options []Option, wait time.Duration, deadline time.Time) error {
	pause := slotPause/2 + rand.N(slotPause/2)
	if wait > 0 {
		pause = min(pause, max(time.Until(deadline), 0))
	}
	lease, err := s.l.Acquire(ctx, s.name(rand.IntN(s.n)), append(options[:len(options):len(options)], Wait(pause))...)
	switch {
	case err == nil:
		return lease.Release(ctx)
	case ctx.Err() == nil && (errors.Is(err, ErrHeld) || errors.Is(err, context.DeadlineExceeded)):
		return nil
	}
	return err
}

func (s *Slots) name(i int) string { return fmt.Sprintf("%s#%d", s.key, i+1) }

// try looks at every slot once, from a random one on.
func (s *Slots) try(ctx context.Context, options []Option) (*Slot, error) {
	with := func(more ...Option) []Option { return append(options[:len(options):len(options)], more...) }
	number, err := s.l.Acquire(ctx, s.key+numberSuffix, with(Wait(0), Shared(), Label(s.label))...)
	if err != nil {
		return nil, err
	}
	g := &Group{leases: []*Lease{number}}
	if err := s.agree(ctx); err != nil {
		return nil, g.giveUp(ctx, err)
	}
	inner := context.WithValue(ctx, leaseKey{}, number)
	first := rand.IntN(s.n)
	for i := range s.n {
		at := (first + i) % s.n
		lease, err := s.l.Acquire(inner, s.name(at), with(Wait(0))...)
		if err == nil {
			g.leases = append(g.leases, lease)
			return &Slot{g.join(), at + 1}, nil
		}
		if !errors.Is(err, ErrHeld) {
			return nil, g.giveUp(ctx, err)
		}
	}
	return nil, g.giveUp(ctx, s.fails(fmt.Errorf("%w: all %d slots", ErrHeld, s.n)))
}

// agree looks whether somebody counts other slots. It is asked after the own
// name is held: of two with different n, whoever held second sees the other,
// because what one holds on a quorum the other finds in any quorum that answers.
func (s *Slots) agree(ctx context.Context) error {
	status, err := s.l.Inspect(ctx, s.key+numberSuffix)
	if err != nil {
		return err
	}
	for _, store := range status.Stores {
		for _, h := range store.State.Holders {
			if said, _, _ := strings.Cut(h.Label, " "); said != s.label {
				return s.fails(&slotsError{s.n, h.Label})
			}
		}
	}
	answered := func(i int, _ Store) bool { return status.Stores[i].Err == nil && !status.Stores[i].State.Quarantine }
	if !s.l.set.satisfied(answered) {
		return s.fails(ErrNoQuorum)
	}
	return nil
}

// slotsError says that clients count another number of slots. It matches
// [ErrMismatch], whose text speaks of stores.
type slotsError struct {
	n     int
	label string
}

func (e *slotsError) Error() string {
	other := "another number"
	if said, _, _ := strings.Cut(e.label, " "); strings.HasPrefix(said, "slots=") {
		other = said[len("slots="):]
	}
	return fmt.Sprintf("%d slots here and %s with %q: give all clients of the key the same number", e.n, other, e.label)
}

func (e *slotsError) Unwrap() error { return ErrMismatch }

// Key returns the semaphore's key.
func (s *Slot) Key() string { return strings.TrimSuffix(s.leases[0].Key(), numberSuffix) }

// Number returns which slot it is, from 1 to n.
func (s *Slot) Number() int { return s.number }

// Token returns the fencing token of the slot's own name: it orders the holders
// of this slot, and says nothing about those of others.
func (s *Slot) Token() int64 { return s.leases[len(s.leases)-1].Token() }
