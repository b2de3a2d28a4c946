package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

var modelChecks = []check{
	{"model/random requests of writers", "some order of requests is answered otherwise than the protocol says", func(c *call) {
		newTwins(c, false, false).run(400)
	}},
	{"model/random requests of readers and writers", "some order of requests is answered otherwise than the protocol says", func(c *call) {
		c.needShares()
		newTwins(c, true, false).run(400)
	}},
	{"model/random requests while votes end", "some order of requests and ends is answered otherwise than the protocol says", func(c *call) {
		if c.f.Advance == nil {
			c.skip("the Factory has no Advance")
		}
		newTwins(c, c.store.Limits().Shares, true).run(800)
	}},
}

var queueModelChecks = []check{
	{"model/random requests of waiters", "some order of requests is answered otherwise than the protocol says", func(c *call) {
		c.needQueues()
		w := newTwins(c, c.store.Limits().Shares, false)
		w.waits = true
		w.run(600)
	}},
}

// twins put the same random requests to a store and to the model of one.
type twins struct {
	*call
	rand   *rand.Rand
	seed   uint64
	clock  *reference
	model  quorum.Store
	owners []quorum.Owner
	keys   []string
	offset map[string]int64 // the store's token of a key less the model's
	last   map[string]int64 // the model's latest token of a key
	latest map[string]int   // which of owners had it
	tries  map[string]uint32
	log    []string
	shares bool
	ends   bool // votes end, and time passes
	waits  bool // requests stand in line
}

func newTwins(c *call, shares, ends bool) *twins {
	c.needLeaf()
	w := &twins{
		call: c, seed: c.f.Seed, shares: shares, ends: ends, offset: map[string]int64{},
		last: map[string]int64{}, latest: map[string]int{}, tries: map[string]uint32{},
	}
	for w.seed == 0 {
		w.seed = rand.Uint64()
	}
	w.rand = rand.New(rand.NewPCG(w.seed, 0))
	w.clock, w.model = newReference(time.Now())
	for range 4 {
		w.owners = append(w.owners, owner())
	}
	// Stores may start a name anywhere; from its first token on they agree.
	for _, k := range []string{c.key + " 0", c.key + " 1"} {
		o := owner()
		mine := c.acquire(o, key(k))
		ctx, cancel := c.context()
		its, err := w.model.Acquire(ctx, c.request(o, key(k)))
		_ = w.model.Release(ctx, c.request(o, key(k)))
		cancel()
		if err != nil {
			c.fatalf("the model answered %v", err)
		}
		c.release(o, key(k))
		w.keys, w.last[k], w.offset[k] = append(w.keys, k), its.Token, mine.Token-its.Token
	}
	return w
}

// run compares n answers.
func (w *twins) run(n int) {
	for range n {
		w.one()
		if w.rand.IntN(10) == 0 {
			w.compareHolders()
		}
		if w.ends && w.rand.IntN(6) == 0 {
			d := time.Duration(1+w.rand.IntN(2)) * 10 * time.Second
			w.f.Advance(d)
			w.clock.advance(d)
			w.note("%v pass", d)
		}
	}
}

// one draws a request, puts it to both and compares the answers.
func (w *twins) one() {
	k := w.keys[w.rand.IntN(len(w.keys))]
	who, try := w.who(k)
	r := w.request(at(w.owners[who], try), key(k))
	verb := "Acquire"
	switch w.rand.IntN(8) {
	case 0, 1:
		verb = "Extend"
	case 2:
		verb = "Release"
		// How much longer than MaxTTL a tombstone stands is the store's affair.
		r.Entomb = !w.ends && w.rand.IntN(4) == 0
	default:
		w.kind(&r)
	}
	if w.shares && w.rand.IntN(2) == 0 && r.Kind != quorum.KindForce {
		r.Mode = quorum.ModeShared
	}
	if r.Kind == quorum.KindRepair || w.rand.IntN(3) == 0 {
		r.Floor = w.last[r.Key] + int64(w.rand.IntN(6)) - 2
	}
	if w.ends {
		// Ends fall between the moments at which time stops, so that it does
		// not matter how finely a store counts; and no younger attempt asks
		// for less than an older one has, which a store may take either way.
		r.TTL = 25 * time.Second
		if verb == "Extend" && w.rand.IntN(2) == 0 {
			r.TTL -= time.Duration(1+w.rand.IntN(2)) * 10 * time.Second
		}
	}
	if w.waits && verb == "Acquire" && r.Kind == quorum.KindNew {
		w.inLine([...]quorum.WaitKind{quorum.WaitNone, quorum.WaitTake, quorum.WaitQueue}[w.rand.IntN(3)], int64(1+w.rand.IntN(6)))(&r)
	}
	w.note("%s of%s by owner %d/%d, %s, %s, floor %d, TTL %v, entomb %v, wait %s, ticket %d",
		verb, strings.TrimPrefix(r.Key, w.key), who, r.Owner.Attempt, r.Kind, r.Mode, r.Floor, r.TTL, r.Entomb, r.Wait, r.Ticket)
	its := w.ask(w.model, verb, r)
	if r.Floor != 0 {
		r.Floor += w.offset[r.Key]
	}
	mine := w.ask(w.store, verb, r)
	w.compare(r, mine, its)
	if its.err == nil && verb != "Release" {
		w.latest[k], w.tries[k] = who, try
	}
}

// who draws an owner and its attempt: every other time the latest that was granted
// the key or an attempt next to it, because an even draw of all meets hardly
// anything but refusals.
func (w *twins) who(k string) (who int, try uint32) {
	who, ok := w.latest[k]
	if !ok || w.rand.IntN(2) == 0 {
		return w.rand.IntN(len(w.owners)), uint32(1 + w.rand.IntN(4))
	}
	switch w.rand.IntN(6) {
	case 0:
		return who, w.tries[k] + 1
	case 1:
		return who, max(w.tries[k], 2) - 1
	}
	return who, w.tries[k]
}

// kind draws a kind of Acquire.
func (w *twins) kind(r *quorum.Request) {
	switch w.rand.IntN(12) {
	case 0, 1:
		r.Kind = quorum.KindRepair
	case 2, 3:
		if w.shares {
			r.Kind = quorum.KindConvert
		}
	case 4:
		if w.rand.IntN(3) == 0 {
			r.Kind = quorum.KindForce
		}
	}
}

func (w *twins) ask(s quorum.Store, verb string, r quorum.Request) (a answer) {
	ctx, cancel := w.context()
	defer cancel()
	v := map[string]quorum.Verb{"Acquire": quorum.VerbAcquire, "Extend": quorum.VerbExtend, "Release": quorum.VerbRelease}[verb]
	a.grant, a.err = w.call.ask(ctx, s, v, r)
	return a
}

func (w *twins) compare(r quorum.Request, mine, its answer) {
	offset := w.offset[r.Key]
	got, want := quorum.OutcomeOf(mine.err), quorum.OutcomeOf(its.err)
	if mine.grant.Token == 0 {
		w.note("  %s", got)
	} else {
		w.note("  %s: token %d, %s, %d readers", got, mine.grant.Token-offset, mine.grant.Mode, mine.grant.Readers)
	}
	if got != want {
		w.differ("the store answered %s (%v), the model %s (%v)", got, mine.err, want, its.err)
	}
	if r.Wait == quorum.WaitTake || r.Wait == quorum.WaitQueue {
		w.comparePlaces(mine.err, its.err)
	}
	if want != quorum.OutcomeGranted || its.grant.Token == 0 {
		return
	}
	w.last[r.Key] = max(w.last[r.Key], its.grant.Token)
	if mine.grant.Token-offset != its.grant.Token {
		w.differ("the store gave token %d, the model %d (counted alike)", mine.grant.Token-offset, its.grant.Token)
	}
	if mine.grant.TTL < r.TTL {
		w.differ("the store gave %v, asked for %v", mine.grant.TTL, r.TTL)
	}
	if w.shares && (mine.grant.Mode != its.grant.Mode || mine.grant.Readers != its.grant.Readers) {
		w.differ("the store gave %s with %d readers, the model %s with %d",
			mine.grant.Mode, mine.grant.Readers, its.grant.Mode, its.grant.Readers)
	}
}

// comparePlaces compares where a waiter stands.
func (w *twins) comparePlaces(mine, its error) {
	var got, want *quorum.RefusedError
	if errors.As(mine, &got) && errors.As(its, &want) && (got.Ticket != want.Ticket || got.Rank != want.Rank) {
		w.differ("the store says ticket %d, rank %d, the model %d and %d", got.Ticket, got.Rank, want.Ticket, want.Rank)
	}
}

// compareHolders compares what both say of a name.
func (w *twins) compareHolders() {
	i, ok := quorum.As[quorum.Inspector](w.store)
	if !ok {
		return
	}
	k := w.keys[w.rand.IntN(len(w.keys))]
	texts := func(i quorum.Inspector, offset int64) []string {
		ctx, cancel := w.context()
		defer cancel()
		s, err := i.Inspect(ctx, w.request(quorum.Owner{}, key(k)))
		if err != nil {
			w.differ("Inspect = %v", err)
		}
		var texts []string
		for _, h := range s.Holders {
			texts = append(texts, fmt.Sprintf("%s %s %d", h.Owner, h.Mode, h.Token-offset))
		}
		slices.Sort(texts)
		return texts
	}
	want := texts(w.model.(quorum.Inspector), 0)
	if got := texts(i, w.offset[k]); !slices.Equal(got, want) {
		w.differ("Inspect of %q shows %q, the model has %q", strings.TrimPrefix(k, w.key), got, want)
	}
}

func (w *twins) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// differ ends the check with the requests that led here.
func (w *twins) differ(format string, args ...any) {
	tail := w.log[max(0, len(w.log)-24):]
	w.fatalf("%s\nafter, latest last:\n\t%s\nreplay with Factory.Seed = %d",
		fmt.Sprintf(format, args...), strings.Join(tail, "\n\t"), w.seed)
}
