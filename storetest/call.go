package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// patience bounds every single call and every wait beyond the votes' own time.
const patience = 20 * time.Second

// call is what a check works with: a store of its own, a key of its own, and
// verbs that fail the check when the answer is not the one named.
type call struct {
	*result
	t      *testing.T // for the Factory's functions only; checks report to result
	f      Factory
	store  quorum.Store
	key    string
	set    quorum.Fingerprint
	maxTTL time.Duration
	ttl    time.Duration // of votes that are to stay
	short  time.Duration // of votes that are to end
	// tokens are those granted so far: as a lease does, an Extend carries its
	// token as the floor unless the check names another.
	tokens map[held]int64
	// composite is known from a grant that carries its members' votes.
	composite bool
	asked     *atomic.Uint32 // calls of an Async store
}

// held is a vote of an owner's attempt on a key.
type held struct {
	key   string
	owner quorum.Owner
}

func newCall(t *testing.T, f Factory, name string, r *result) *call {
	c := &call{result: r, t: t, f: f, store: f.New(t), maxTTL: time.Minute, tokens: map[held]int64{}, asked: new(atomic.Uint32)}
	limits := c.store.Limits()
	c.key = "storetest " + name
	sum := fnv.New64a()
	sum.Write([]byte(c.key))
	c.set = quorum.Fingerprint(sum.Sum64())
	c.short = 250 * time.Millisecond
	if f.Advance != nil {
		c.short = 5 * time.Second // nobody waits for it, and no slow machine outlasts it
	}
	c.short = roundUp(max(limits.MinTTL, c.short), limits.Grain)
	c.ttl = roundUp(max(30*time.Second, 2*limits.MinTTL), limits.Grain)
	c.maxTTL = max(c.maxTTL, c.ttl)
	if f.Advance == nil && strings.HasPrefix(name, "leaving/") {
		c.maxTTL = roundUp(max(3*time.Second, c.short), limits.Grain)
		c.ttl = c.maxTTL
	}
	c.settle()
	return c
}

// settle declares a store that starts in quarantine fresh, lets it meet the
// set, and finds out whether it is a composite.
func (c *call) settle() {
	if h, ok := quorum.As[quorum.HighWater](c.store); ok {
		if q := c.step(h).Quarantine; q != "" {
			c.raise(h, quorum.Raise{Quarantine: q, Fresh: true})
		}
	}
	o, first := owner(), key("storetest")
	c.acquire(o, first)
	c.release(o, first)
}

// request is what o asks, as the mods have it.
func (c *call) request(o quorum.Owner, mods ...mod) quorum.Request {
	r := quorum.Request{
		Key: c.key, Owner: o, TTL: c.ttl, Limit: patience / 2,
		MaxTTL: c.maxTTL, Set: c.set, Label: "storetest",
	}
	all(mods...)(&r)
	return r
}

func (c *call) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// tryAcquire, tryExtend and tryRelease ask and judge nothing.
func (c *call) tryAcquire(o quorum.Owner, mods ...mod) (quorum.Grant, error) {
	ctx, cancel := c.context()
	defer cancel()
	return c.ask(ctx, c.store, quorum.VerbAcquire, c.request(o, mods...))
}

func (c *call) tryExtend(o quorum.Owner, mods ...mod) (quorum.Grant, error) {
	ctx, cancel := c.context()
	defer cancel()
	r := c.request(o, mods...)
	r.Floor = c.tokens[held{r.Key, o}]
	all(mods...)(&r) // once more, for a floor of their own
	return c.ask(ctx, c.store, quorum.VerbExtend, r)
}

func (c *call) tryRelease(o quorum.Owner, mods ...mod) error {
	ctx, cancel := c.context()
	defer cancel()
	_, err := c.ask(ctx, c.store, quorum.VerbRelease, c.request(o, mods...))
	return err
}

// ask makes a call: every second one of an Async store by Begin.
func (c *call) ask(ctx context.Context, s quorum.Store, v quorum.Verb, r quorum.Request) (quorum.Grant, error) {
	if async, ok := s.(quorum.Async); ok {
		if c.asked.Add(1)%2 == 1 {
			return begin(ctx, async, v, r)
		}
	}
	return ask(ctx, s, v, r)
}

func ask(ctx context.Context, s quorum.Store, v quorum.Verb, r quorum.Request) (quorum.Grant, error) {
	switch v {
	case quorum.VerbAcquire:
		return s.Acquire(ctx, r)
	case quorum.VerbExtend:
		return s.Extend(ctx, r)
	default:
		return quorum.Grant{}, s.Release(ctx, r)
	}
}

// begin makes a call by Begin and waits for its end.
func begin(ctx context.Context, s quorum.Async, v quorum.Verb, r quorum.Request) (g quorum.Grant, err error) {
	done := make(chan struct{})
	begun := s.Begin(quorum.NewCall(ctx, v, r, func(answer quorum.Grant, why error) {
		g, err = answer, why
		close(done)
	}))
	if !begun {
		return ask(ctx, s, v, r)
	}
	select {
	case <-done:
		return g, err
	case <-ctx.Done():
		return quorum.Grant{}, fmt.Errorf("a call was begun and never ended: %w", ctx.Err())
	}
}

// acquire must be granted.
func (c *call) acquire(o quorum.Owner, mods ...mod) quorum.Grant {
	g, err := c.tryAcquire(o, mods...)
	return c.granted("Acquire", o, g, err, mods...)
}

// extend must be granted.
func (c *call) extend(o quorum.Owner, mods ...mod) quorum.Grant {
	g, err := c.tryExtend(o, mods...)
	return c.granted("Extend", o, g, err, mods...)
}

// granted checks what holds for every grant.
func (c *call) granted(verb string, o quorum.Owner, g quorum.Grant, err error, mods ...mod) quorum.Grant {
	r := c.request(o, mods...)
	if err != nil {
		c.fatalf("%s of %q by attempt %d (%s, %s) = %v, want a grant", verb, r.Key, o.Attempt, r.Kind, r.Mode, err)
	}
	if g.TTL < r.TTL {
		c.failf("%s gave %v although %v was asked: the holder would trust a vote that has ended", verb, g.TTL, r.TTL)
	}
	if g.Token < 1 || g.Token >= 1<<53 {
		c.failf("%s gave token %d, want one in [1, 2^53)", verb, g.Token)
	}
	c.tokens[held{r.Key, o}] = g.Token
	c.composite = c.composite || g.Votes != nil
	return g
}

// release must find something to remove.
func (c *call) release(o quorum.Owner, mods ...mod) {
	if err := c.tryRelease(o, mods...); err != nil {
		c.fatalf("Release by attempt %d = %v, want nil: it held", o.Attempt, err)
	}
}

// contended demands a refusal because of another owner.
func (c *call) contended(o quorum.Owner, mods ...mod) *quorum.RefusedError {
	g, err := c.tryAcquire(o, mods...)
	r := c.refused("Acquire", g, err)
	if !errors.Is(err, quorum.ErrHeld) {
		c.failf("Acquire beside a holder = %v (%v), want a refusal that matches ErrHeld", err, r.Outcome)
	}
	return r
}

// notHeld demands the word that the owner has no vote.
func (c *call) notHeld(o quorum.Owner, mods ...mod) {
	if g, err := c.tryExtend(o, mods...); !errors.Is(err, quorum.ErrNotHeld) {
		c.failf("Extend by attempt %d, which holds nothing = token %d, %v; want ErrNotHeld", o.Attempt, g.Token, err)
	}
}

// denied demands any clear refusal.
func (c *call) denied(o quorum.Owner, mods ...mod) *quorum.RefusedError {
	g, err := c.tryAcquire(o, mods...)
	return c.refused("Acquire", g, err)
}

// refused demands that err is a clear refusal, of whatever outcome.
func (c *call) refused(verb string, g quorum.Grant, err error) *quorum.RefusedError {
	if err == nil {
		c.fatalf("%s was granted token %d, want a refusal", verb, g.Token)
	}
	var refusal *quorum.RefusedError
	if !errors.As(err, &refusal) {
		c.fatalf("%s = %v (%T), want a *RefusedError: anything else counts as an unknown outcome", verb, err, err)
	}
	return refusal
}

// fails demands an error that is neither contention nor loss.
func (c *call) fails(what string, err error) {
	switch {
	case err == nil:
		c.fatalf("%s succeeded, want an error", what)
	case errors.Is(err, quorum.ErrHeld), errors.Is(err, quorum.ErrNotHeld):
		c.failf("%s = %v: that reads as contention or loss, want another error", what, err)
	}
}

// free demands that anybody can have the name, and gives it back.
func (c *call) free(mods ...mod) {
	o := owner()
	c.acquire(o, mods...)
	c.release(o, mods...)
}

// lapse returns when votes of the short TTL that were taken before have ended.
func (c *call) lapse() { c.pass(c.short) }

// pass lets d go by on the store's clock: by Advance, or by waiting until a
// witness, a vote on another name that is taken now for d, has ended. So it
// needs no knowledge of how late a store ends votes.
func (c *call) pass(d time.Duration) {
	if c.f.Advance != nil {
		c.f.Advance(d + c.store.Limits().Grain + time.Millisecond)
		return
	}
	witness := key(c.key + " witness " + rand.Text())
	c.acquire(owner(), witness, lasting(d))
	c.await("a vote of "+d.String()+" to end", 3*d+patience, func() bool {
		o := owner()
		if _, err := c.tryAcquire(o, witness, lasting(c.short)); err != nil {
			return false
		}
		_ = c.tryRelease(o, witness)
		return true
	})
}

// await polls until done.
func (c *call) await(what string, limit time.Duration, done func() bool) {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		if done() {
			return
		}
		if time.Now().After(end) {
			c.fatalf("waited %v for %s", limit, what)
		}
	}
}

func (c *call) fatalf(format string, args ...any) {
	c.failf(format, args...)
	panic(stop{})
}

// skip ends the check because the store need not pass it.
func (c *call) skip(reason string) {
	c.skipped = reason
	panic(stop{})
}

// needLeaf skips what a composite answers in its own way, see the protocol.
func (c *call) needLeaf() {
	if c.composite {
		c.skip("the store is a composite")
	}
}

func (c *call) needShares() {
	if !c.store.Limits().Shares {
		c.skip("Limits.Shares is false")
	}
}

// equal compares two tokens.
func (c *call) equal(what string, got, want int64) {
	if got != want {
		c.failf("%s = %d, want %d", what, got, want)
	}
}

// above demands got > than.
func (c *call) above(what string, got, than int64) {
	if got <= than {
		c.failf("%s = %d, want above %d", what, got, than)
	}
}

// hides demands that no text shows the owner's secret.
func (c *call) hides(o quorum.Owner, values ...any) {
	for _, v := range values {
		for _, text := range []string{fmt.Sprint(v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v)} {
			if strings.Contains(strings.ToLower(text), o.Hex()) || strings.Contains(text, string(o.ID[:])) {
				c.failf("the owner's secret ID shows in %T", v)
				return
			}
		}
	}
}
