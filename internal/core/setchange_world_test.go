package core_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// A world in which a set changes: stores that are the model, operators that are
// killed and started again, and clients of the old set, of both and of the new
// that take locks in one instant each.

const (
	from, joint, to = 0xa, 0xb, 0xc
	changeTTL       = 10 * time.Second
)

// shift is a change of sets.
type shift struct {
	name     string
	old, new core.Set
	oldNeed  int
	newNeed  int
}

var shifts = []shift{
	{"one of three replaced", 0b0111, 0b1110, 2, 2},
	{"three by three others", 0b000111, 0b111000, 2, 2},
	{"three to five", 0b00111, 0b11111, 2, 3},
	{"five to three of them", 0b11111, 0b00111, 3, 2},
	{"five to four others and one", 0b000011111, 0b111110000, 3, 3},
	{"one to three others", 0b0001, 0b1110, 1, 2},
	{"another rule", 0b111, 0b111, 3, 2},
}

func (s shift) n() int { return 32 - leading(s.old|s.new) }

func leading(s core.Set) int {
	n := 32
	for ; s != 0; s >>= 1 {
		n--
	}
	return n
}

func (s shift) tabulate(set uint64) *core.Rule {
	return core.Tabulate(s.n(), func(v core.Set) bool {
		old, new := (v&s.old).Len() >= s.oldNeed, (v&s.new).Len() >= s.newNeed
		switch set {
		case from:
			return old
		case to:
			return new
		}
		return old && new
	})
}

func (s shift) members(set uint64) core.Set {
	switch set {
	case from:
		return s.old
	case to:
		return s.new
	}
	return s.old | s.new
}

func (s shift) config(until core.ChangeStage, bugs core.Bugs) core.SetChangeConfig {
	return core.SetChangeConfig{
		Old: s.tabulate(from), New: s.tabulate(to), OldStores: s.old, NewStores: s.new, From: from, Joint: joint, To: to,
		Until: until, Request: core.Request{MaxTTL: changeTTL}, CallLimit: time.Second, Bugs: bugs,
	}
}

// hold is a lock that somebody believes in.
type hold struct {
	owner core.Owner
	set   uint64
	until clock.Instant
	token int64
}

type changing struct {
	*rand.Rand
	shift
	rules   map[uint64]*core.Rule // by set
	calm    bool                  // operators are not killed, and stores do not fail
	stores  []*model.Store
	down    core.Set
	now     clock.Instant
	ops     []*operator
	held    map[string]hold
	highest map[string]int64
	owners  uint64
	lives   int
	forgot  bool // a store has lost everything
	wins    map[uint64]int
	broken  string
	open    bool // the new set was seen to be served beside the joint one
}

// operator is one run of the change and what it has under way.
type operator struct {
	c        *core.SetChange
	inFlight []underway
}

type underway struct {
	call   core.Call
	at     clock.Instant // when it arrives
	answer *core.Answer  // nil before
}

func newChanging(seed uint64, s shift, calm bool) *changing {
	w := &changing{
		Rand: rand.New(rand.NewPCG(seed, 48)), shift: s, calm: calm,
		rules: map[uint64]*core.Rule{from: s.tabulate(from), joint: s.tabulate(joint), to: s.tabulate(to)}, held: map[string]hold{}, highest: map[string]int64{},
		wins: map[uint64]int{}, now: clock.Instant(time.Hour),
	}
	for i := range s.n() {
		st := model.NewStore(fmt.Sprint(i), fmt.Sprint("server ", i), "1", w.time())
		if !s.old.Has(i) && !calm && w.IntN(2) == 0 {
			st.Forget("1") // as an empty server of a kind that may forget
		}
		w.stores = append(w.stores, st)
	}
	return w
}

func (w *changing) time() model.Time { return model.Time(1_780_000_000_000_000 + int64(w.now)/1000) }

func (w *changing) chance(percent int) bool { return w.IntN(100) < percent }

// ask puts a request to a store, if it is up.
func (w *changing) ask(i int, r core.Request) core.Answer {
	if w.down.Has(i) {
		return core.Answer{Outcome: core.Unknown}
	}
	return w.stores[i].Apply(r, w.time())
}

// take tries to lock a key as a client of a set, in one instant.
func (w *changing) take(set uint64, key string) {
	w.owners++
	owner := core.Owner{ID: core.ID{byte(w.owners), byte(w.owners >> 8), byte(w.owners >> 16)}, Attempt: 1}
	ttl := changeTTL / time.Duration(1+w.IntN(3))
	r := core.Request{Verb: core.Acquire, Key: key, Owner: owner, TTL: ttl, MaxTTL: changeTTL, Set: set}
	var votes core.Set
	tokens := map[int]int64{}
	top := int64(0)
	for _, i := range w.Perm(w.n()) {
		if !w.members(set).Has(i) || w.chance(10) {
			continue
		}
		if a := w.ask(i, r); a.Outcome == core.Granted {
			votes, tokens[i], top = votes.With(i), a.Token, max(top, a.Token)
		}
	}
	r.Verb, r.Floor = core.Extend, top
	for i, t := range tokens {
		if t != top && w.ask(i, r).Token != top {
			votes = votes.Without(i)
		}
	}
	if !w.rules[set].Met(votes) {
		w.drop(key, hold{owner: owner, set: set})
		return
	}
	w.wins[set]++
	if h, ok := w.held[key]; ok && h.until > w.now && w.broken == "" {
		w.broken = fmt.Sprintf("%q is held by a client of %x and by one of %x", key, h.set, set)
	}
	if top <= w.highest[key] && w.broken == "" {
		w.broken = fmt.Sprintf("%q: token %d of a client of %x, after %d", key, top, set, w.highest[key])
	}
	w.highest[key] = max(w.highest[key], top)
	w.held[key] = hold{owner, set, w.now.Add(ttl), top}
}

// extend renews a lock that is held, if a quorum does.
func (w *changing) extend(key string) {
	h := w.held[key]
	if h.until <= w.now {
		return
	}
	var votes core.Set
	for i := range w.n() {
		a := w.ask(i, core.Request{Verb: core.Extend, Key: key, Owner: h.owner, TTL: changeTTL, MaxTTL: changeTTL, Set: h.set, Floor: h.token})
		if w.members(h.set).Has(i) && a.Outcome == core.Granted && a.Token == h.token {
			votes = votes.With(i)
		}
	}
	if w.rules[h.set].Met(votes) {
		h.until = w.now.Add(changeTTL)
		w.held[key] = h
	}
}

func (w *changing) drop(key string, h hold) {
	for i := range w.n() {
		if w.members(h.set).Has(i) {
			w.ask(i, core.Request{Verb: core.Release, Key: key, Owner: h.owner, MaxTTL: changeTTL, Set: h.set})
		}
	}
}

// refill carries a store out of quarantine as a client of a set would.
func (w *changing) refill(set uint64, store int) {
	if !w.members(set).Has(store) {
		return
	}
	f := core.NewRefill(core.RefillConfig{Rule: w.rules[set], Store: store, CallLimit: time.Second, Request: core.Request{MaxTTL: changeTTL, Set: set}})
	f.Start(w.now)
	for {
		calls := f.Calls()
		if len(calls) == 0 {
			return
		}
		for _, c := range calls {
			a := core.Answer{Outcome: core.Unknown}
			if w.members(set).Has(c.Store) {
				a = w.ask(c.Store, c.Req)
			}
			f.Answer(w.now, c.Store, c.Seq, a)
		}
	}
}

// run lets a world live for a while under faults; until the operators are
// killed for the last time they may be at any moment.
func (w *changing) run(t *testing.T, events int, bugs core.Bugs) {
	t.Helper()
	for range events {
		w.now = w.now.Add(time.Duration(w.IntN(150)) * time.Millisecond)
		key := fmt.Sprint("key ", w.IntN(4))
		event := w.IntN(16)
		if w.calm && (event == 7 || event == 9) {
			event = 15
		}
		switch event {
		case 0, 1, 2:
			if set := []uint64{from, joint, to}[w.IntN(3)]; set != to || w.opened() {
				w.take(set, key)
			} else if w.chance(5) { // a client that is started too early meets one store
				w.ask(w.IntN(w.n()), core.Request{Verb: core.ReadStep, MaxTTL: changeTTL, Set: to})
			}
		case 3, 4:
			w.extend(key)
		case 5:
			if h, ok := w.held[key]; ok {
				delete(w.held, key)
				w.drop(key, h)
			}
		case 6:
			w.refill([]uint64{from, joint, to}[w.IntN(3)], w.IntN(w.n()))
		case 7:
			w.fault()
		case 8:
			if w.chance(30) && len(w.ops) < 2 {
				w.begin(core.ChangeJoining+core.ChangeStage(w.IntN(4)), bugs)
			}
		case 9:
			if w.chance(20) && len(w.ops) > 0 {
				w.ops = w.ops[1:] // killed; what is under way is lost with it, or was carried out
			}
		default:
			w.operate()
		}
	}
}

// opened reports whether users were told to start clients of the new set.
func (w *changing) opened() bool {
	for _, st := range w.stores {
		if st.Record.Serving == 2 && st.Record.Serves[1] == to {
			w.open = true
		}
	}
	return w.open
}

func (w *changing) begin(until core.ChangeStage, bugs core.Bugs) {
	o := &operator{c: core.NewSetChange(w.config(until, bugs))}
	o.c.Start(w.now)
	w.ops = append(w.ops, o)
}

// fault lets a store be silent, come back, or lose everything, its record of
// what it serves too. The last happens once: were it to happen to a quorum of
// the old set, clients of that set would be served as if nothing had changed,
// which is a named assumption.
func (w *changing) fault() {
	i := w.IntN(w.n())
	w.lives++
	switch w.IntN(4) {
	case 0:
		if w.down.Len() < 2 {
			w.down = w.down.With(i)
		}
	case 1, 2:
		w.down = 0
	case 3:
		if !w.forgot && !w.rules[from].Met(core.Set(0).With(i)) && w.chance(30) {
			w.forgot = true
			w.stores[i].Forget(fmt.Sprint("life ", w.lives))
		}
	}
}

// operate moves the messages of operators.
func (w *changing) operate() {
	for _, o := range w.ops {
		if o.c.Next() <= w.now {
			o.c.Wake(w.now)
		}
		for _, c := range o.c.Calls() {
			o.inFlight = append(o.inFlight, underway{call: c, at: w.now.Add(time.Duration(w.IntN(400)) * time.Millisecond)})
			if w.chance(5) { // delivered twice, the second time late
				o.inFlight = append(o.inFlight, underway{call: c, at: w.now.Add(time.Duration(w.IntN(8)) * time.Second)})
			}
		}
		kept := o.inFlight[:0]
		for _, u := range o.inFlight {
			switch {
			case u.at > w.now:
				kept = append(kept, u)
			case u.answer == nil:
				if w.chance(10) {
					continue // lost
				}
				a := w.ask(u.call.Store, u.call.Req)
				u.answer, u.at = &a, w.now.Add(time.Duration(w.IntN(200))*time.Millisecond)
				if !w.chance(5) { // the answer is lost
					kept = append(kept, u)
				}
			default:
				o.c.Answer(w.now, u.call.Store, u.call.Seq, *u.answer)
			}
		}
		o.inFlight = kept
	}
}
