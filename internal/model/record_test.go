package model_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

func readStep() core.Request {
	return core.Request{Verb: core.ReadStep, MaxTTL: maxTTL, Set: set}
}

// reading returns the record as a client reads it.
func (n *node) reading() core.StepReading {
	n.Helper()
	a := n.do(readStep())
	if a.Outcome != core.Granted {
		n.Fatalf("read step = %s %q", a.Outcome, a.Reason)
	}
	return a.Step
}

func (n *node) quarantined(req core.Request) core.Answer {
	n.Helper()
	a := n.do(req)
	if a.Outcome != core.Quarantined {
		n.Fatalf("%s = %s, want quarantined", show(req), a.Outcome)
	}
	return a
}

func TestR46RestartedStoreIsKeptOut(t *testing.T) {
	for name, restart := range map[string]func(*node){
		"empty":       func(n *node) { n.store.Forget("run2") },
		"with memory": func(n *node) { n.store.Restart(n.store, "run2") },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.granted(acquire(1, 1), 1)
			restart(n)
			n.pass(5 * time.Second)
			if a := n.quarantined(acquire(2, 1, shared)); a.Left != maxTTL {
				n.Errorf("left %v, want %v from when it was seen", a.Left, maxTTL)
			}
			n.pass(maxTTL)
			if a := n.quarantined(acquire(2, 1)); a.Left != 0 {
				n.Errorf("left %v, want 0 once its time is over", a.Left)
			}
		})
	}
}

func TestInQuarantine(t *testing.T) {
	for name, run := range map[string]func(*node){
		"no force": func(n *node) { n.quarantined(acquire(2, 1, force)) },
		"not even the vote of the same attempt again": func(n *node) {
			if a := n.quarantined(acquire(1, 1)); a.Clean {
				n.Error("the refusal is clean beside a vote of the owner")
			}
		},
		"no promotion": func(n *node) {
			n.granted(acquire(1, 2, convert, shared), 1)
			n.quarantined(acquire(1, 3, convert))
		},
		"demotion":     func(n *node) { n.granted(acquire(1, 2, convert, shared), 1) },
		"extend":       func(n *node) { n.granted(extend(1, 1, floor(4)), 4) },
		"repair":       func(n *node) { n.granted(acquire(1, 1, repair(4)), 4) },
		"release":      func(n *node) { n.released(release(1, 1)) },
		"TTL too long": func(n *node) { n.invalid(extend(1, 1, lasting(maxTTL+1))) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.granted(acquire(1, 1), 1)
			n.store.Restart(n.store, "run2")
			run(n)
		})
	}
}

func TestLeaving(t *testing.T) {
	const far = step + 40
	after := func(end time.Duration, run func(*node, string)) func(*node) {
		return func(n *node) {
			n.granted(acquire(1, 1, floor(9)), 9)
			n.store.Restart(n.store, "run2")
			name := n.reading().Quarantine
			n.pass(end)
			run(n, name)
		}
	}
	cases(t, map[string]func(*node){
		"R29 above the steps of a quorum": after(maxTTL, func(n *node, q string) {
			if !n.reading().Over {
				n.Fatal("the quarantine is not over after MaxTTL")
			}
			n.released(raise(core.RaiseOrder{Quarantine: q, Step: far}))
			if r := n.reading(); r != (core.StepReading{Step: far + 1, Base: (far + 1) << core.StepBits}) {
				n.Errorf("the record reads %+v", r)
			}
			// The name's counter survived, and is lifted all the same.
			n.granted(acquire(2, 1), 41<<core.StepBits+1)
			fresh := acquire(3, 1)
			fresh.Key = "fresh"
			n.granted(fresh, 41<<core.StepBits+1)
		}),
		"a reader is lifted too": after(maxTTL, func(n *node, q string) {
			n.released(raise(core.RaiseOrder{Quarantine: q, Step: far}))
			n.granted(acquire(2, 1, shared), 41<<core.StepBits+1)
		}),
		"a reader among readers, too": func(n *node) {
			n.granted(acquire(1, 1, shared), 0)
			n.released(raise(core.RaiseOrder{Step: far}))
			n.granted(acquire(2, 1, shared), 41<<core.StepBits)
			n.granted(extend(1, 1), 0)
		},
		"above its own step and its clock's": after(3*core.StepPeriod, func(n *node, q string) {
			n.released(raise(core.RaiseOrder{Quarantine: q}))
			if r := n.reading(); r.Step != step+4 {
				n.Errorf("step %d, want %d", r.Step, step+4)
			}
		}),
		"not before its time": after(maxTTL-time.Microsecond, func(n *node, q string) {
			for _, alone := range []bool{false, true} {
				a := n.do(raise(core.RaiseOrder{Quarantine: q, Step: far, Alone: alone}))
				if a.Outcome != core.Quarantined || a.Left != time.Microsecond {
					n.Errorf("alone %v: %s, left %v; want quarantined, 1µs", alone, a.Outcome, a.Left)
				}
			}
		}),
		"late raise meant for an earlier quarantine": after(maxTTL, func(n *node, q string) {
			n.store.Restart(n.store, "run3")
			n.reading()
			n.pass(maxTTL)
			n.quarantined(raise(core.RaiseOrder{Quarantine: q, Step: far}))
			n.quarantined(acquire(2, 1))
		}),
		"doubled raise": after(maxTTL, func(n *node, q string) {
			n.released(raise(core.RaiseOrder{Quarantine: q, Step: far}))
			before := n.reading()
			if a := n.do(raise(core.RaiseOrder{Quarantine: q, Step: far + 9})); a.Outcome != core.NotHeld {
				n.Errorf("the second raise = %s, want not held", a.Outcome)
			}
			if r := n.reading(); r != before {
				n.Errorf("the second raise moved %+v to %+v", before, r)
			}
		}),
		"alone: by the fraction of the clock": after(maxTTL, func(n *node, _ string) {
			n.store.Forget("run3") // with the record, so that only the clock counts
			q := n.reading().Quarantine
			n.pass(maxTTL)
			n.released(raise(core.RaiseOrder{Quarantine: q, Alone: true}))
			r := n.reading()
			want := start + (2*maxTTL.Milliseconds())<<core.StepBits/core.StepPeriod.Milliseconds()
			if r.Base != want || r.Step != step {
				n.Errorf("the record reads %+v, want base %d, step %d", r, want, step)
			}
		}),
		"alone: above what answers": after(maxTTL, func(n *node, q string) {
			n.released(raise(core.RaiseOrder{Quarantine: q, Step: far, Alone: true}))
			if r := n.reading(); r.Base != (far+1)<<core.StepBits || r.Step != far+1 {
				n.Errorf("the record reads %+v", r)
			}
		}),
		"an operator's fresh, before its time": after(0, func(n *node, q string) {
			n.released(raise(core.RaiseOrder{Quarantine: q, Fresh: true}))
			n.released(release(1, 1))
			n.granted(acquire(2, 1), 10)
		}),
		"an operator's forgotten, and again": after(0, func(n *node, q string) {
			n.released(raise(core.RaiseOrder{Quarantine: q, Fresh: true}))
			n.pass(time.Second)
			n.released(raise(core.RaiseOrder{Forgotten: true}))
			n.quarantined(acquire(2, 1))
			first := n.reading().Quarantine
			if first == q {
				n.Error("two quarantines have one name")
			}
			n.pass(time.Second)
			n.quarantined(raise(core.RaiseOrder{Forgotten: true})) // doubled
			if r := n.reading(); r.Quarantine != first {
				n.Errorf("a doubled word began quarantine %q in place of %q", r.Quarantine, first)
			}
		}),
		"a raise of a store that votes": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.released(raise(core.RaiseOrder{Step: far}))
			n.released(release(1, 1))
			n.granted(acquire(2, 1), 41<<core.StepBits+1)
		},
		"a raise that would use up the tokens": after(maxTTL, func(n *node, q string) {
			for _, s := range []int64{-1, core.TokenLimit>>core.StepBits - 1, 1 << 62} {
				n.invalid(raise(core.RaiseOrder{Quarantine: q, Step: s}))
			}
		}),
	})
}

// A store that lost everything three times within one step must not give the
// same tokens three times.
func TestThreeLossesWithinAStep(t *testing.T) {
	n := newNode(t)
	last := int64(0)
	for _, run := range []string{"run2", "run3", "run4"} {
		n.store.Forget(run)
		name := n.reading().Quarantine
		n.pass(maxTTL)
		n.released(raise(core.RaiseOrder{Quarantine: name, Alone: true}))
		a := n.do(acquire(1, 1))
		if a.Outcome != core.Granted || a.Token <= last {
			t.Fatalf("after %s: %s, token %d; want above %d", run, a.Outcome, a.Token, last)
		}
		last = a.Token
	}
}

func TestR45Fingerprint(t *testing.T) {
	other := func(r *core.Request) { r.Set = 0xbad }
	cases(t, map[string]func(*node){
		"the first request writes it": func(n *node) {
			n.granted(acquire(1, 1), 1)
			a := n.refused(acquire(2, 1, other), core.Mismatch, true)
			if want := "it serves the set 000000000000feed and was asked for the set 0000000000000bad: do all clients list the same stores, strategy and MaxTTL?"; a.Reason != want {
				n.Errorf("reason %q, want %q", a.Reason, want)
			}
			n.refused(extend(1, 1, other), core.Mismatch, false)
			if a := n.do(core.Request{Verb: core.ReadStep, MaxTTL: maxTTL, Set: 0xbad}); a.Outcome != core.Mismatch {
				n.Errorf("read step = %s, want mismatch", a.Outcome)
			}
		},
		"a release does not write it": func(n *node) {
			n.refused(release(1, 1, other), core.NotHeld, true)
			n.granted(acquire(1, 1), 1)
		},
		"a stranger's MaxTTL neither ends a quarantine nor a vote": func(n *node) {
			short := func(r *core.Request) { r.Set, r.MaxTTL, r.TTL = 0xbad, time.Second, time.Second }
			n.granted(acquire(1, 1), 1)
			n.refused(acquire(2, 1, short), core.Mismatch, true)
			n.refused(release(2, 1, short), core.NotHeld, true)
			n.pass(2 * time.Second)
			n.granted(extend(1, 1), 1)
			n.store.Restart(n.store, "run2")
			n.refused(acquire(2, 1, short), core.Mismatch, true)
			n.refused(release(2, 1, short), core.NotHeld, true)
			if a := n.quarantined(acquire(2, 1)); a.Left != maxTTL {
				n.Errorf("the quarantine lasts %v, want %v", a.Left, maxTTL)
			}
		},
	})
}

func TestOutOfRange(t *testing.T) {
	reach := core.FloorReach
	cases(t, map[string]func(*node){
		"TTL": func(n *node) {
			n.invalid(acquire(1, 1, lasting(0)))
			n.invalid(acquire(1, 1, lasting(maxTTL+1)))
			n.granted(acquire(1, 1, lasting(maxTTL)), 1)
			n.invalid(extend(1, 1, lasting(-1)))
		},
		"MaxTTL": func(n *node) {
			n.invalid(acquire(1, 1, func(r *core.Request) { r.MaxTTL = 0 }))
			n.invalid(core.Request{Verb: core.ReadStep, Set: set})
		},
		"floor: 2^40 above the clock's step": func(n *node) {
			n.invalid(acquire(1, 1, floor(reach+1)))
			n.invalid(acquire(1, 1, repair(reach+1)))
			n.invalid(acquire(1, 1, floor(-start-1)))
			n.invalid(acquire(1, 1, repair(-start)))
			n.votes(0)
			n.granted(acquire(1, 1, floor(reach)), reach)
			n.invalid(extend(1, 1, floor(reach+1)))
			n.granted(extend(1, 1), reach)
		},
		"floor: no ratchet": func(n *node) {
			n.granted(acquire(1, 1, floor(reach)), reach)
			n.invalid(acquire(1, 2, floor(reach+1)))
		},
		"floor: 2^40 above the base": func(n *node) {
			base := int64(1000) << core.StepBits
			n.released(raise(core.RaiseOrder{Step: step + 999}))
			n.invalid(acquire(1, 1, floor(base+reach+1)))
			n.granted(acquire(1, 1, floor(base+reach)), base+reach)
		},
		"2^53": func(n *node) {
			const last = core.TokenLimit - 1 - start
			n.released(raise(core.RaiseOrder{Step: core.TokenLimit>>core.StepBits - 2}))
			n.invalid(acquire(1, 1, floor(last+1)))
			n.granted(acquire(1, 1, floor(last)), last)
			n.granted(acquire(1, 1), last)
			n.granted(extend(1, 1, floor(last)), last)
			n.invalid(acquire(2, 1, force))
			n.granted(extend(1, 1), last) // the refused take-over removed nobody
			n.granted(acquire(1, 2, convert, shared), last)
			n.invalid(acquire(1, 3, convert))
			n.released(release(1, 2))
			n.invalid(acquire(2, 1))
			n.invalid(acquire(2, 1, shared))
			n.granted(acquire(2, 1, repair(last)), last)
		},
	})
}

func TestF125NameIsDroppedOnceItsTokensLieBelowTheStep(t *testing.T) {
	n := newNode(t)
	n.granted(acquire(1, 1), 1)
	n.released(release(1, 1))
	n.pass(ttl + core.CounterRest - time.Microsecond)
	if n.store.Sweep(n.now); n.store.Names() != 1 {
		t.Fatal("the name was dropped before its counter had rested")
	}
	n.pass(time.Microsecond)
	if n.store.Sweep(n.now); n.store.Names() != 0 {
		t.Fatal("the name was kept although its counter has rested")
	}
	n.granted(acquire(1, 1), 2<<core.StepBits+1)
}

func TestNameInUseIsKept(t *testing.T) {
	cases(t, map[string]func(*node){
		"a vote": func(n *node) {
			n.granted(acquire(1, 1), 1)
			if n.store.Sweep(n.now); n.store.Names() != 1 {
				n.Error("the name was dropped")
			}
		},
		"a tombstone": func(n *node) {
			n.refused(release(1, 1, entomb), core.NotHeld, true)
			n.pass(maxTTL)
			if n.store.Sweep(n.now); n.store.Names() != 1 {
				n.Error("the name was dropped")
			}
			n.pass(time.Second)
			if n.store.Sweep(n.now); n.store.Names() != 0 {
				n.Error("the name was kept")
			}
		},
	})
	n := newNode(t)
	n.granted(acquire(1, 1, lasting(maxTTL)), 1)
	for range 20 { // for longer than the counter rests
		n.pass(maxTTL - time.Second)
		n.store.Sweep(n.now)
		n.granted(extend(1, 1, lasting(maxTTL)), 1)
	}
	n.released(release(1, 1))
	n.granted(acquire(2, 1), 2)
}

func TestClockWentBack(t *testing.T) {
	cases(t, map[string]func(*node){
		"a vote ends at most MaxTTL from now": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(-time.Hour)
			if a := n.refused(acquire(2, 1), core.Contended, true); a.Left != maxTTL {
				n.Errorf("left %v, want %v", a.Left, maxTTL)
			}
			n.pass(maxTTL)
			n.granted(acquire(2, 1), 2)
		},
		"so does a quarantine": func(n *node) {
			n.store.Restart(n.store, "run2")
			old := n.reading().Quarantine
			n.pass(-time.Hour)
			if a := n.quarantined(acquire(2, 1)); a.Left != maxTTL {
				n.Errorf("left %v, want %v", a.Left, maxTTL)
			}
			n.pass(maxTTL)
			n.quarantined(raise(core.RaiseOrder{Quarantine: old}))
			n.released(raise(core.RaiseOrder{Quarantine: n.reading().Quarantine}))
		},
		"a tombstone a little later": func(n *node) {
			n.refused(release(1, 1, entomb), core.NotHeld, true)
			n.pass(-time.Hour)
			n.refused(acquire(1, 1), core.Contended, true)
			n.pass(2 * maxTTL)
			n.granted(acquire(1, 1), 1<<core.StepBits+1)
		},
		"ahead and back, seen by a stranger's release only": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.released(release(1, 1))
			n.pass(time.Hour)
			n.refused(release(2, 1, func(r *core.Request) { r.Set = 0xbad }), core.NotHeld, true)
			n.pass(-time.Hour)
			n.granted(acquire(2, 1), 2)
		},
		"ahead and back, a dropped counter lies below the step": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(time.Hour)
			n.store.Sweep(n.now)
			n.pass(-time.Hour)
			if a := n.do(acquire(2, 1)); a.Token <= start+1 {
				n.Errorf("token start%+d, want above start+1", a.Token-start)
			}
		},
	})
}

func TestZeroStoreHasNoRecord(t *testing.T) {
	n := &node{t, &model.Store{}, epoch}
	n.quarantined(acquire(1, 1))
	if r := n.reading(); r.Step != 0 || r.Quarantine == "" {
		t.Errorf("the record reads %+v, want no step that it remembers, and a quarantine", r)
	}
	n.pass(maxTTL)
	n.released(raise(core.RaiseOrder{Quarantine: n.reading().Quarantine}))
	n.granted(acquire(1, 1), 1<<core.StepBits+1)
}

// A life in which no vote of the one before counts, and in which counters may
// be older than they were: the step alone keeps the order of tokens.
func TestResume(t *testing.T) {
	rec, older := model.NewRecord("a", "boot1", epoch), model.Name{}
	last := model.Apply(&rec, &older, acquire(1, 1), epoch).Token
	newer := older.Clone()
	for attempt := range uint32(100) {
		last = model.Apply(&rec, &newer, acquire(1, 2+attempt), epoch).Token
	}
	now := epoch.Add(time.Second)
	rec.Resume("boot2", now)
	for name, left := range map[string]model.Name{"older": older, "gone": {}} {
		left, rec := left.Clone(), rec
		left.Void(&rec, now)
		if a := model.Apply(&rec, &left, extend(1, 1), now); a.Outcome != core.NotHeld {
			t.Errorf("%s: a vote of the life before was extended: %s", name, a.Outcome)
		}
		if a := model.Apply(&rec, &left, acquire(2, 1), now); a.Outcome != core.Granted || a.Token <= last {
			t.Errorf("%s: %s, token %d; want above %d", name, a.Outcome, a.Token, last)
		}
	}
	rec.Restart("boot3")
	rec.Resume("boot4", now)
	if a := model.Apply(&rec, &older, acquire(2, 1), now); a.Outcome != core.Quarantined {
		t.Errorf("a life after one in doubt answers %s, want quarantined", a.Outcome)
	}
}

func TestVoteDeletedByHandLeavesTheCounter(t *testing.T) {
	n := newNode(t)
	n.granted(acquire(1, 1, floor(9)), 9)
	n.store.Drop(key)
	n.refused(extend(1, 1), core.NotHeld, true)
	n.granted(acquire(2, 1), 10)
}
