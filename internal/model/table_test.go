package model_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// The letters: A, B and C are owners 1, 2 and 3; A2 is A's second attempt.

func TestAcquire(t *testing.T) {
	cases(t, map[string]func(*node){
		"free name: the first token of the step": func(n *node) {
			a := n.granted(acquire(1, 1), 1)
			if a.TTL != ttl || a.Mode != core.Exclusive || a.Readers != 0 {
				n.Errorf("answer %+v, want %v, exclusive, no readers", a, ttl)
			}
		},
		"released name: the next token": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.released(release(1, 1))
			n.granted(acquire(2, 1), 2)
		},
		"held by another": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(4 * time.Second)
			a := n.refused(acquire(2, 1), core.Contended, true)
			if a.Label != "label A" || a.Left != 6*time.Second || a.Token != start+1 {
				n.Errorf("refusal says label %q, left %v, counter start%+d; want label A, 6s, start+1", a.Label, a.Left, a.Token-start)
			}
		},
		"over at this very moment": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(ttl - time.Microsecond)
			n.refused(acquire(2, 1), core.Contended, true)
			n.pass(time.Microsecond)
			if a := n.granted(acquire(2, 1), 2); a.Previous != core.PreviousExpired {
				n.Errorf("previous holder = %v, want expired", a.Previous)
			}
		},
		"F017 same attempt again: the same vote, never shorter": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(time.Second)
			if a := n.granted(acquire(1, 1, lasting(time.Second)), 1); a.TTL != 9*time.Second {
				n.Errorf("the vote lasts %v more, want 9s as before", a.TTL)
			}
			if a := n.granted(acquire(1, 1, floor(7)), 1); a.TTL != ttl {
				n.Errorf("the vote lasts %v more, want %v", a.TTL, ttl)
			}
			n.votes(1)
		},
		"same attempt in another mode: mode unchanged": func(n *node) {
			n.granted(acquire(1, 1), 1)
			if a := n.granted(acquire(1, 1, shared), 1); a.Mode != core.Exclusive {
				n.Errorf("mode = %v, want exclusive", a.Mode)
			}
		},
		"F055 younger attempt replaces": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.granted(acquire(1, 2), 2)
			if v := n.votes(1); v[0].Owner.Attempt != 2 {
				n.Errorf("attempt %d holds, want 2", v[0].Owner.Attempt)
			}
		},
		"older attempt refused": func(n *node) {
			n.granted(acquire(1, 2), 1)
			n.refused(acquire(1, 1), core.Contended, false)
			n.refused(acquire(1, 1, force), core.Contended, false)
			n.refused(acquire(1, 1, repair(9)), core.Contended, false)
			n.refused(acquire(1, 1, convert, shared), core.Contended, false)
			n.granted(extend(1, 2), 1)
		},
		"floor": func(n *node) {
			n.granted(acquire(1, 1, floor(50)), 50)
			n.released(release(1, 1))
			n.granted(acquire(2, 1, floor(7)), 51)
		},
		"readers share a number": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			if a := n.granted(acquire(2, 1, shared), 0); a.Readers != 2 || a.Mode != core.Shared {
				n.Errorf("readers %d, mode %v; want 2, shared", a.Readers, a.Mode)
			}
			if a := n.refused(acquire(3, 1), core.Contended, true); a.Readers != 2 {
				n.Errorf("a writer is told of %d readers, want 2", a.Readers)
			}
		},
		"the reader after a writer steps": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.refused(acquire(2, 1, shared), core.Contended, true)
			n.released(release(1, 1))
			n.granted(acquire(2, 1, shared), 2)
			n.granted(acquire(3, 1, shared), 2)
			n.released(release(2, 1))
			n.released(release(3, 1))
			n.granted(acquire(1, 2), 3)
		},
		"a reader's floor": func(n *node) {
			n.granted(acquire(1, 1, shared, floor(5)), 5)
			n.granted(acquire(2, 1, shared), 5)
		},
		"own reader's vote does not hinder a writer, another's does": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.granted(acquire(1, 2), 1)
			n.granted(acquire(1, 3, shared), 2)
			n.granted(acquire(2, 1, shared), 2)
			n.refused(acquire(1, 4), core.Contended, false)
			n.votes(2)
		},
		"the reader that lasts longest is named": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.granted(acquire(2, 1, shared, lasting(30*time.Second)), 0)
			if a := n.refused(acquire(3, 1), core.Contended, true); a.Label != "label B" || a.Left != 30*time.Second {
				n.Errorf("label %q, left %v; want label B, 30s", a.Label, a.Left)
			}
		},
		"sub-microsecond TTL rounds up": func(n *node) {
			if a := n.granted(acquire(1, 1, lasting(1500)), 1); a.TTL != 2*time.Microsecond {
				n.Errorf("TTL = %v, want 2µs", a.TTL)
			}
		},
		"R31 released": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.released(release(1, 1))
			if a := n.granted(acquire(2, 1), 2); a.Previous != core.PreviousReleased {
				n.Errorf("previous holder = %v, want released", a.Previous)
			}
		},
	})
}

func TestConvert(t *testing.T) {
	cases(t, map[string]func(*node){
		"R32 promotion of the only reader": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			if a := n.granted(acquire(1, 2, convert), 1); a.Mode != core.Exclusive {
				n.Errorf("mode = %v, want exclusive", a.Mode)
			}
			n.refused(extend(1, 1), core.NotHeld, false)
			n.refused(acquire(2, 1, shared), core.Contended, true)
		},
		"R32 promotion beside a reader changes nothing": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.granted(acquire(2, 1, shared), 0)
			if a := n.refused(acquire(1, 2, convert), core.Contended, false); a.Label != "label B" || a.Readers != 2 {
				n.Errorf("label %q, readers %d; want label B, 2", a.Label, a.Readers)
			}
			n.granted(extend(1, 1), 0)
		},
		"F033 demotion keeps the token and the writer's bit": func(n *node) {
			n.granted(acquire(1, 1), 1)
			if a := n.granted(acquire(1, 2, convert, shared), 1); a.Mode != core.Shared || a.Readers != 1 {
				n.Errorf("mode %v, readers %d; want shared, 1", a.Mode, a.Readers)
			}
			n.granted(acquire(2, 1, shared), 2)
		},
		"demotion to the lease's token": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.granted(acquire(1, 2, convert, shared, floor(6)), 6)
			n.granted(acquire(2, 1, shared), 7)
		},
		"undoing a promotion that did not come here": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.granted(acquire(1, 3, convert, shared), 0)
			n.granted(acquire(2, 1, shared), 0)
		},
		"doubled": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.granted(acquire(1, 2, convert), 1)
			n.granted(acquire(1, 2, convert), 1)
			n.granted(acquire(1, 3, convert, shared), 1)
			n.refused(acquire(1, 2, convert), core.Contended, false)
		},
		"without a vote": func(n *node) {
			n.refused(acquire(1, 2, convert), core.NotHeld, true)
			n.granted(acquire(1, 1), 1)
			n.pass(ttl)
			n.refused(acquire(1, 2, convert, shared), core.NotHeld, true)
		},
		"never shorter": func(n *node) {
			n.granted(acquire(1, 1), 1)
			if a := n.granted(acquire(1, 2, convert, shared, lasting(time.Second)), 1); a.TTL != ttl {
				n.Errorf("the vote lasts %v more, want %v", a.TTL, ttl)
			}
		},
	})
}

func TestR09Force(t *testing.T) {
	cases(t, map[string]func(*node){
		"takes from a writer": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.granted(acquire(2, 1, force), 2)
			a := n.refused(extend(1, 1), core.NotHeld, true)
			if !a.Forced || a.Label != "label B" {
				n.Errorf("forced %v by %q, want by label B", a.Forced, a.Label)
			}
			n.refused(acquire(1, 1, repair(1)), core.Contended, true)
			n.released(release(2, 1))
			n.refused(acquire(1, 1, repair(1)), core.Contended, true)
		},
		"takes from readers, in exclusive mode whatever is asked": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.granted(acquire(2, 1, shared), 0)
			if a := n.granted(acquire(3, 1, force, shared), 1); a.Mode != core.Exclusive {
				n.Errorf("mode = %v, want exclusive", a.Mode)
			}
			for id := range byte(2) {
				if a := n.refused(extend(id+1, 1), core.NotHeld, true); !a.Forced {
					n.Error("a reader is not told that it was forced out")
				}
			}
		},
		"of a free name": func(n *node) {
			n.granted(acquire(1, 1, force), 1)
			n.granted(acquire(1, 1, force), 1)
		},
		"is told for MaxTTL": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.granted(acquire(2, 1, force, lasting(maxTTL)), 2)
			n.pass(maxTTL - time.Microsecond)
			if a := n.refused(extend(1, 1), core.NotHeld, true); !a.Forced {
				n.Error("the word of the take-over is gone before MaxTTL")
			}
			n.pass(time.Microsecond)
			if a := n.refused(extend(1, 1), core.NotHeld, true); a.Forced {
				n.Error("the word of the take-over outlived MaxTTL")
			}
		},
	})
}

func TestExtend(t *testing.T) {
	cases(t, map[string]func(*node){
		"steady": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(4 * time.Second)
			if a := n.granted(extend(1, 1, floor(1)), 1); a.TTL != ttl {
				n.Errorf("the vote lasts %v more, want %v", a.TTL, ttl)
			}
		},
		"raises token and counter in one step": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.granted(extend(1, 1, floor(40)), 40)
			n.granted(extend(1, 1, floor(3)), 40)
			n.released(release(1, 1))
			n.granted(acquire(2, 1), 41)
		},
		"never shortens": func(n *node) {
			n.granted(acquire(1, 1), 1)
			if a := n.granted(extend(1, 1, lasting(time.Second)), 1); a.TTL != ttl {
				n.Errorf("the vote lasts %v more, want %v", a.TTL, ttl)
			}
		},
		"an expired vote is none, even if nobody took it": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(ttl)
			n.refused(extend(1, 1), core.NotHeld, true)
		},
		"exactly this attempt": func(n *node) {
			n.granted(acquire(1, 2), 1)
			n.refused(extend(1, 1), core.NotHeld, false)
			n.refused(extend(1, 3), core.NotHeld, false)
		},
		"F035 a reader's leaves another alone": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.granted(acquire(2, 1, shared, lasting(time.Second)), 0)
			n.granted(extend(1, 1, shared, lasting(maxTTL)), 0)
			n.pass(time.Second)
			n.refused(extend(2, 1), core.NotHeld, true)
			n.votes(1)
		},
		"the next reader shares the number a reader raised": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.released(release(1, 1))
			n.granted(acquire(1, 2, shared), 2)
			n.granted(extend(1, 2, floor(9)), 9)
			n.granted(acquire(2, 1, shared), 9)
		},
		"the next reader steps past the number a writer raised": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.granted(extend(1, 1, floor(9)), 9)
			n.released(release(1, 1))
			n.granted(acquire(2, 1, shared), 10)
		},
		"the answer shows interruption": func(n *node) {
			// A's lease has token 5. Its vote ran out here, and a late copy of
			// its request got in again: the answer must not be 5.
			n.granted(acquire(1, 1, floor(5)), 5)
			n.pass(ttl)
			n.granted(acquire(2, 1), 6)
			n.released(release(2, 1))
			n.granted(acquire(1, 1), 7)
			n.granted(extend(1, 1, floor(5)), 7)
		},
	})
}

func TestRepair(t *testing.T) {
	cases(t, map[string]func(*node){
		"R47 free name: no increment": func(n *node) {
			n.granted(acquire(1, 1, repair(8)), 8)
			n.released(release(1, 1))
			n.granted(acquire(2, 1), 9)
		},
		"a token below the start": func(n *node) {
			n.granted(acquire(1, 1, repair(-3)), -3)
			n.granted(extend(1, 1, floor(-3)), -3)
			n.released(release(1, 1))
			n.granted(acquire(2, 1), 1)
		},
		"at the counter": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.released(release(1, 1))
			n.granted(acquire(2, 1, repair(1)), 1)
		},
		"below the counter": func(n *node) {
			n.granted(acquire(1, 1, floor(5)), 5)
			n.released(release(1, 1))
			n.refused(acquire(2, 1, repair(4)), core.Contended, true)
		},
		"held by another": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.refused(acquire(2, 1, repair(9)), core.Contended, true)
			n.refused(acquire(2, 1, repair(9), shared), core.Contended, true)
		},
		"over an older attempt": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.granted(acquire(1, 2, repair(4)), 4)
			n.refused(extend(1, 1), core.NotHeld, false)
		},
		"over the same attempt": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.granted(acquire(1, 1, repair(4), shared), 4)
			if v := n.votes(1); v[0].Mode != core.Exclusive {
				n.Errorf("mode = %v, want exclusive as before", v[0].Mode)
			}
		},
		"a reader's among readers": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.granted(acquire(2, 1, repair(3), shared), 3)
			n.refused(acquire(3, 1, repair(3)), core.Contended, true)
			n.granted(acquire(3, 1, shared), 3)
		},
		"a writer's number is stepped past by the next reader": func(n *node) {
			n.granted(acquire(1, 1, repair(3)), 3)
			n.released(release(1, 1))
			n.granted(acquire(2, 1, shared), 4)
		},
		"so is one that is where fresh names start": func(n *node) {
			n.granted(acquire(1, 1, repair(0)), 0)
			n.released(release(1, 1))
			n.granted(acquire(2, 1, shared), 1)
		},
	})
}

func TestRelease(t *testing.T) {
	cases(t, map[string]func(*node){
		"nothing": func(n *node) { n.refused(release(1, 1), core.NotHeld, true) },
		"twice": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.released(release(1, 1))
			n.refused(release(1, 1), core.NotHeld, true)
		},
		"older attempts go with it": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.released(release(1, 5))
			n.votes(0)
		},
		"F017 a younger attempt stays": func(n *node) {
			n.granted(acquire(1, 2), 1)
			n.refused(release(1, 1), core.NotHeld, false)
			n.granted(extend(1, 2), 1)
		},
		"another's stays": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.refused(release(2, 1), core.NotHeld, true)
			n.granted(extend(1, 1), 1)
		},
		"an expired vote was not held": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(ttl)
			n.refused(release(1, 1), core.NotHeld, true)
		},
		"one reader of two": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.granted(acquire(2, 1, shared), 0)
			if a := n.released(release(1, 1)); a.Readers != 1 {
				n.Errorf("%d readers left, want 1", a.Readers)
			}
		},
		"entombs the attempts, and no younger one": func(n *node) {
			n.refused(release(1, 2, entomb), core.NotHeld, true)
			n.refused(acquire(1, 1), core.Contended, true)
			n.refused(acquire(1, 2), core.Contended, true)
			n.refused(acquire(1, 2, repair(5)), core.Contended, true)
			n.refused(acquire(1, 2, force), core.Contended, true)
			n.refused(release(1, 1, entomb), core.NotHeld, true)
			n.refused(acquire(1, 2), core.Contended, true)
			n.granted(acquire(1, 3), 1)
		},
		"a tombstone lives MaxTTL and the call's limit": func(n *node) {
			n.refused(release(1, 1, entomb), core.NotHeld, true)
			n.pass(maxTTL + time.Second - time.Microsecond)
			n.refused(acquire(1, 1), core.Contended, true)
			n.pass(time.Microsecond)
			n.granted(acquire(1, 1), 1)
		},
		"whatever set the client has": func(n *node) {
			n.granted(acquire(1, 1), 1)
			r := release(1, 1)
			r.Set = 0xbad
			n.released(r)
			n.votes(0)
		},
	})
}
