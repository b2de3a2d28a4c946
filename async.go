package quorum

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// Async is a [Store] that keeps no goroutine of its caller until its server has
// answered. Quorum makes every Acquire, Extend and Release by Begin where a
// store has it, and whoever brings the answer then goes on with it: with
// hundreds of calls under way, most of what a call costs a process is the
// changes of goroutines that this saves.
//
// It is an ability of the store itself. [As] does not look for it beneath
// wrappers, which would be passed by: a wrapper that wants it has a Begin of
// its own, and hands on a [NewCall]. One that embeds a store with Begin, rather
// than the interface Store, has Begin from it, and its own Acquire is not
// called: let it embed the interface, or have a Begin that returns false.
type Async interface {
	Store
	// Begin makes a call, as the verb's own method would, and ends it by
	// [Call.End]. It does not wait for the server, and holds no lock while it
	// ends a call: what End leads to may begin others. It returns false, and has
	// done nothing, where it would have to wait, as for a first connection: the
	// call is then made by the verb's own method, and an End of it is ignored.
	Begin(c *Call) bool
}

// Verb is what an [Async] store is to do.
type Verb uint8

// The verbs of the contract.
const (
	VerbAcquire = Verb(core.Acquire)
	VerbExtend  = Verb(core.Extend)
	VerbRelease = Verb(core.Release)
)

// Call is one call of an [Async] store.
type Call struct {
	Verb    Verb
	Request Request // the store does not change it

	ctx   context.Context
	end   func(Grant, error) // of NewCall; else d is to hear of it
	d     *driver
	mark  mark
	tells bool // a function of the user's may hear what follows
	over  atomic.Bool
}

// NewCall returns a call whose answer end is told, once. end must not block.
// The store bounds the call by the request's Limit, from when it writes it; ctx
// gives values only, whether it has ended or not.
func NewCall(ctx context.Context, v Verb, r Request, end func(Grant, error)) *Call {
	return &Call{Verb: v, Request: r, ctx: context.WithoutCancel(ctx), end: end}
}

// Context gives the values that the call was made with. It never ends, and has
// no deadline: Request.Limit bounds the call.
func (c *Call) Context() context.Context { return c.ctx }

// End says how the call ended, with what the verb's own method would have
// returned; of a Release only err counts. A second End does nothing.
func (c *Call) End(g Grant, err error) {
	if c.over.Swap(true) {
		return
	}
	if c.end != nil {
		c.end(g, err)
		return
	}
	if c.tells {
		// The store's other answers are not to wait until that function returns.
		c.d.hand(delivery{d: c.d, end: &ended{c, g, err}})
	} else if last, ok := c.answered(g, err); ok {
		c.d.hand(last)
	}
}

// ended is the answer of an Async store, on its way to a goroutine of the crew.
type ended struct {
	call *Call
	g    Grant
	err  error
}

// answered brings the answer to the machine.
func (c *Call) answered(g Grant, err error) (next delivery, more bool) {
	if err == nil && c.Verb == VerbAcquire {
		err = noToken(c.d.set.members[c.mark.store], g)
	}
	a := answerOf(g, err)
	if err != nil && unclear(a) {
		if now := c.d.clock.Now(); now.Sub(c.mark.at) >= c.Request.Limit {
			err = lateError(c.Request.Limit, err)
		}
	}
	return c.d.answered(c.mark, a, nestedVotes(g, err), err)
}

// begin makes a call, by c, of an Async store, unless that would have to wait. A
// panic of the store is an unknown outcome.
func (j *delivery) begin(s Async, c *Call, tells bool) (begun bool) {
	c.Verb, c.Request, c.ctx = Verb(j.call.Req.Verb), fromCore(j.call.Req), j.base
	c.d, c.mark, c.tells = j.d, j.mark(), tells
	defer func() {
		if p := recover(); p != nil {
			if c.over.Load() {
				panic(p) // it is what End led to that panicked, and no store
			}
			begun = true
			c.End(Grant{}, panicError(s, p))
		}
	}()
	// Who declines a call is not heard if it ends it as well; and who had ended it
	// before has made it.
	return s.Begin(c) || c.over.Swap(true)
}

// mark is what a call is known by when its answer comes.
type mark struct {
	at    clock.Instant // when the machine sent it
	store int
	seq   uint32
	verb  core.Verb
}

func (j *delivery) mark() mark { return mark{j.at, j.call.Store, j.call.Seq, j.call.Req.Verb} }

func panicError(s Store, p any) error { return fmt.Errorf("store %q panicked: %v", s.Name(), p) }
