package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/quorum"
)

func (c *call) needMembership() quorum.Membership {
	m, ok := quorum.As[quorum.Membership](c.store)
	if !ok {
		c.skip("the store is no Membership: its set cannot be changed while locks are held")
	}
	return m
}

// serves demands that the store serves exactly these sets.
func (c *call) serves(m quorum.Membership, want ...quorum.Fingerprint) {
	ctx, cancel := c.context()
	defer cancel()
	// Asked as a stranger would: whoever may change the sets need be in none.
	got, err := m.Serves(ctx, c.request(quorum.Owner{}, set(c.set+99)))
	if err != nil {
		c.fatalf("Serves = %v", err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.failf("the store serves %v, want %v", got, want)
	}
}

type sets = []quorum.Fingerprint

func (c *call) tryServe(m quorum.Membership, from, to sets) error {
	ctx, cancel := c.context()
	defer cancel()
	return m.Serve(ctx, c.request(quorum.Owner{}), from, to)
}

func (c *call) serve(m quorum.Membership, from, to sets) {
	if err := c.tryServe(m, from, to); err != nil {
		c.fatalf("Serve(%v, %v) = %v", from, to, err)
	}
}

// strange demands that a client of the set is told that it is not served.
func (c *call) strange(f quorum.Fingerprint) {
	if _, err := c.tryAcquire(owner(), set(f), key(c.key+" strange")); !errors.Is(err, quorum.ErrMismatch) {
		c.failf("Acquire by a client of set %v = %v, want ErrMismatch", f, err)
	}
}

var setChecks = []check{
	{"sets/none before the first request", "a new store could not be told from one in use", func(c *call) {
		c.needMembership()
		fresh := c.f.New(c.t)
		m, _ := quorum.As[quorum.Membership](fresh)
		c.serves(m)
		c.store = fresh
		c.settle()
		c.serves(m, c.set)
	}},
	{"sets/a new store is told what to serve", "a store could not join a set that changes", func(c *call) {
		c.needMembership()
		c.store = c.f.New(c.t)
		m := c.needMembership()
		c.serve(m, nil, sets{c.set})
		c.serves(m, c.set)
		c.settle()
		c.strange(c.set + 1)
	}},
	{"sets/clients of two sets exclude each other", "two owners would hold one name while a set changes", func(c *call) {
		m := c.needMembership()
		c.serve(m, sets{c.set}, sets{c.set, c.set + 1})
		c.serves(m, c.set, c.set+1)
		a, b := owner(), owner()
		token := c.acquire(a).Token
		c.contended(b, set(c.set+1))
		c.release(a)
		c.above("the token of the client of the other set", c.acquire(b, set(c.set+1)).Token, token)
		c.contended(a)
		c.strange(c.set + 2)
	}},
	{"sets/one that is left is a mismatch", "clients of the old set and of the new would not meet", func(c *call) {
		m := c.needMembership()
		a := owner()
		c.acquire(a)
		c.serve(m, sets{c.set}, sets{c.set + 1})
		c.serves(m, c.set+1)
		c.strange(c.set)
		if _, err := c.tryExtend(a); !errors.Is(err, quorum.ErrMismatch) {
			c.failf("Extend by a client of the set that was left = %v, want ErrMismatch", err)
		}
		c.contended(owner(), set(c.set+1))
		c.release(a) // it can only free what is its own
		c.acquire(owner(), set(c.set+1))
	}},
	{"sets/votes and tokens outlive the change", "changing the stores would end every lock", func(c *call) {
		m := c.needMembership()
		a := owner()
		token := c.acquire(a).Token
		c.serve(m, sets{c.set}, sets{c.set + 1})
		c.equal("the vote's token", c.extend(a, set(c.set+1)).Token, token)
		c.release(a, set(c.set+1))
		c.above("the next token", c.acquire(owner(), set(c.set+1)).Token, token)
	}},
	{"sets/change from another set is refused", "a move meant for other stores would be carried out", func(c *call) {
		m := c.needMembership()
		for _, from := range []sets{nil, {c.set + 1}, {c.set, c.set + 1}, {c.set + 1, c.set + 2}} {
			if err := c.tryServe(m, from, sets{c.set + 3}); !errors.Is(err, quorum.ErrMismatch) {
				c.failf("Serve(%v, %v) of a store that serves %v = %v, want ErrMismatch", from, c.set+3, c.set, err)
			}
		}
		c.serves(m, c.set)
		c.serve(m, sets{c.set}, sets{c.set, c.set + 1})
		for _, from := range []sets{nil, {c.set}, {c.set + 1}} {
			if err := c.tryServe(m, from, sets{c.set + 3}); !errors.Is(err, quorum.ErrMismatch) {
				c.failf("Serve(%v, %v) of a store that serves two sets = %v, want ErrMismatch", from, c.set+3, err)
			}
		}
		c.serves(m, c.set, c.set+1)
	}},
	{"sets/change that was made is done", "a move could not be repeated after a crash", func(c *call) {
		m := c.needMembership()
		c.serve(m, sets{c.set}, sets{c.set})
		c.serve(m, sets{c.set}, sets{c.set, c.set + 1})
		c.serve(m, sets{c.set}, sets{c.set + 1, c.set}) // in any order
		c.serves(m, c.set, c.set+1)
		c.serve(m, sets{c.set + 1, c.set}, sets{c.set + 1})
		c.serve(m, sets{c.set + 7}, sets{c.set + 1})
		c.serves(m, c.set+1)
	}},
	{"sets/two at most and one at least", "a store would serve sets that exclude nobody", func(c *call) {
		m := c.needMembership()
		for _, to := range []sets{nil, {c.set, c.set + 1, c.set + 2}} {
			err := c.tryServe(m, sets{c.set}, to)
			c.fails("Serve of "+[]string{"no set", "", "", "three sets"}[len(to)], err)
			if errors.Is(err, quorum.ErrMismatch) {
				c.failf("Serve(%v) = %v: that reads as a store of another set, want another error", to, err)
			}
		}
		c.serves(m, c.set)
	}},
	{"sets/quarantine outlives the change", "a store that forgot would vote because its set changed", func(c *call) {
		m := c.needMembership()
		h := c.needHighWater()
		q := c.forget(h)
		c.serve(m, sets{c.set}, sets{c.set, c.set + 1})
		c.quarantined(owner())
		c.quarantined(owner(), set(c.set+1))
		if again := c.step(h).Quarantine; again != q {
			c.failf("the quarantine %q became %q", q, again)
		}
	}},
	{"sets/ended context changes nothing", "a move that its caller gave up would be made", func(c *call) {
		m := c.needMembership()
		ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
		defer cancel()
		if err := m.Serve(ctx, c.request(quorum.Owner{}), sets{c.set}, sets{c.set + 1}); err == nil {
			c.failf("Serve with an ended context = nil")
		}
		c.serves(m, c.set)
	}},
}
