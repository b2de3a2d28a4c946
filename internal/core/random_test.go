package core_test

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// A small random simulation: clients that take, hold and give back one lock,
// three or five stores, and a network that loses, delays and doubles messages.
// Clients pause, clocks run apart by up to 1 %. The full simulator is another
// package; this one is short enough to be read beside the machines.

var (
	seeds   = flag.Int("seeds", 2000, "how many random runs")
	oneSeed = flag.Uint64("seed", 0, "a single random run")
)

const second = int64(time.Second)

// rig is one run. Its time is in nanoseconds and nobody's clock.
type rig struct {
	rng    *rand.Rand
	bugs   core.Bugs
	now    int64
	agenda agenda
	count  uint64
	room   core.Room // lent to all, as a driver does

	stores []*model.Store
	rates  []float64
	users  []*user
	tokens map[int64]bool
	newest int64 // highest token of a complete acquisition
	wins   int
	wrong  error

	loss, double, pause float64
	quietAt             int64 // the network is well, and nobody begins, from then on
}

// user acquires again and again, each time by a lease of its own.
type user struct {
	w      *rig
	rate   float64
	lease  *core.Lease
	id     core.ID
	after  int64 // the newest token when its Acquire began
	mail   int   // messages of its lease under way
	asleep int64 // paused until then
	timer  int64
	lost   bool // and not yet given back
}

type event struct {
	at    int64
	order uint64
	do    func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func (w *rig) in(d int64, do func()) {
	w.count++
	heap.Push(&w.agenda, event{w.now + max(d, 0), w.count, do})
}

func (w *rig) chance(p float64) bool { return w.rng.Float64() < p }

func newRig(seed uint64, bugs core.Bugs) *rig {
	w := &rig{rng: rand.New(rand.NewPCG(seed, 1)), bugs: bugs, tokens: map[int64]bool{}, quietAt: 30 * second}
	level := [...]float64{0, 0.02, 0.1, 0.3}
	w.loss, w.double, w.pause = level[w.rng.IntN(4)], level[w.rng.IntN(3)], level[w.rng.IntN(3)]
	for range 3 + 2*w.rng.IntN(2) {
		w.stores = append(w.stores, model.NewStore("m", "s", "r", 0))
		w.rates = append(w.rates, 0.9951+0.0098*w.rng.Float64())
	}
	for range 2 + w.rng.IntN(3) {
		u := &user{w: w, rate: 0.9951 + 0.0098*w.rng.Float64()}
		w.users = append(w.users, u)
		w.in(w.rng.Int64N(second), u.acquire)
	}
	return w
}

// run plays a run to its end and returns what broke.
func (w *rig) run() error {
	for len(w.agenda) > 0 && w.wrong == nil && w.now < 2*w.quietAt {
		e := heap.Pop(&w.agenda).(event)
		w.now = e.at
		e.do()
	}
	for i, u := range w.users {
		if w.wrong == nil && u.lease != nil {
			return fmt.Errorf("client %d never came to rest: stage %d", i, u.lease.Stage())
		}
	}
	return w.wrong
}

// delay is mostly a millisecond, and sometimes far beyond any limit.
func (w *rig) delay() int64 {
	d := int64(time.Millisecond) + w.rng.Int64N(int64(time.Millisecond))
	if w.now < w.quietAt && w.chance(w.loss) {
		d = w.rng.Int64N(8 * second)
	}
	return d
}

func (u *user) local() clock.Instant { return clock.Instant(float64(u.w.now) * u.rate) }

func (u *user) acquire() {
	w := u.w
	if w.now >= w.quietAt {
		return
	}
	n := len(w.stores)
	c := config(n, w.bugs)
	c.Request.TTL, c.Within, c.CallLimit, c.Doubles = 3*time.Second, 3*time.Second, 500*time.Millisecond, core.Full(n)
	c.Request.Order = core.Order(w.rng.IntN(3))
	binary.BigEndian.PutUint64(c.Request.Owner.ID[:], w.rng.Uint64())
	u.id, u.after, u.timer, u.lost = c.Request.Owner.ID, w.newest, 0, false
	u.lease = core.NewLease(core.LeaseConfig{Config: c, Wait: -1, RenewEvery: time.Second,
		BackoffMin: 10 * time.Millisecond, BackoffMax: 300 * time.Millisecond, Seed: w.rng.Uint64()})
	lease := u.lease
	u.do(func(now clock.Instant) { lease.Start(now) })
	if w.chance(0.2) {
		w.in(w.rng.Int64N(3*second), func() { u.on(lease, func(now clock.Instant) { lease.Cancel(now, core.EndCancelled) }) })
	}
	w.in(w.quietAt-w.now, func() { u.on(lease, func(now clock.Instant) { lease.Cancel(now, core.EndWait); lease.Release(now) }) })
}

// on runs an event of a lease unless it is over; a paused client meets it later.
func (u *user) on(lease *core.Lease, event func(now clock.Instant)) {
	if u.asleep > u.w.now {
		u.w.in(u.asleep-u.w.now, func() { u.on(lease, event) })
	} else if u.lease == lease {
		u.do(event)
	}
}

// do runs an event and carries out what follows from it.
func (u *user) do(event func(now clock.Instant)) {
	w, lease, now := u.w, u.lease, u.local()
	lease.Lend(&w.room)
	event(now)
	for _, n := range lease.Notices() {
		u.hear(n)
	}
	calls, said := lease.Calls(), lease.Append(nil, now)
	if lease.Vacate(); !bytes.Equal(said, lease.Append(nil, now)) {
		w.wrong = fmt.Errorf("at rest a machine is another than before")
	}
	for _, c := range calls {
		u.send(c)
	}
	if u.believes() {
		for _, other := range w.users {
			if other != u && other.believes() {
				w.wrong = fmt.Errorf("claim 2: two holders, tokens %d and %d", lease.Quorum().Token(), other.lease.Quorum().Token())
			}
		}
	}
	if next := lease.Next(); next != core.Never {
		at := int64(float64(next)/u.rate) + 1
		if u.timer == 0 || at < u.timer || u.timer <= w.now {
			u.timer = at
			w.in(at-w.now, func() { u.on(lease, func(now clock.Instant) { lease.Wake(now) }) })
		}
	}
	u.rest()
}

func (u *user) believes() bool {
	return u.lease != nil && u.lease.Stage() == core.Holding && u.local() < u.lease.Until()
}

// hear acts on what a lease tells: it is held for a while, and given back also
// after a loss.
func (u *user) hear(n core.Notice) {
	w, lease := u.w, u.lease
	switch n.Kind {
	case core.NoticeAcquired:
		token := lease.Quorum().Token()
		if token <= u.after || w.tokens[token] {
			w.wrong = fmt.Errorf("claim 1: token %d after %d, taken before: %v", token, u.after, w.tokens[token])
		}
		w.tokens[token], w.newest = true, max(w.newest, token)
		w.wins++
		if w.chance(w.pause) {
			u.asleep = w.now + w.rng.Int64N(8*second)
		}
		w.in(w.rng.Int64N(4*second), func() { u.on(lease, lease.Release) })
	case core.NoticeLost:
		u.lost = true
		w.in(w.rng.Int64N(second), func() {
			u.on(lease, func(now clock.Instant) { u.lost = false; lease.Release(now) })
		})
	}
}

// send carries a call: to the store once, twice or never, and its answer back.
func (u *user) send(c core.Call) {
	w, lease := u.w, u.lease
	lost := func() bool { return w.now < w.quietAt && w.chance(w.loss) }
	answer := func(a core.Answer) { u.on(lease, func(now clock.Instant) { lease.Answer(now, c.Store, c.Seq, a) }) }
	carry := func() {
		u.mail++
		w.in(w.delay(), func() {
			a := w.stores[c.Store].Apply(c.Req, model.Time(float64(w.now)*w.rates[c.Store]/1000))
			u.mail--
			if !lost() {
				w.in(w.delay(), func() { answer(a) })
			}
			if u.lease == lease {
				u.rest()
			}
		})
	}
	if !lost() {
		carry()
	}
	if w.now < w.quietAt && w.chance(w.double) {
		carry()
	}
	w.in(int64(float64(c.Req.Limit)/u.rate), func() { answer(core.Answer{Outcome: core.Unknown}) })
}

// rest checks that a lease that has come to rest has left nothing behind, and
// begins the next.
func (u *user) rest() {
	w := u.w
	if !u.lease.Quiet() || u.mail > 0 || u.lost {
		return
	}
	for i, s := range w.stores {
		name := s.Peek(key)
		for _, v := range name.Live(&s.Record, time.Minute, model.Time(float64(w.now)*w.rates[i]/1000)) {
			if v.Owner.ID == u.id && !u.lease.Quorum().Leftovers().Has(i) {
				w.wrong = fmt.Errorf("left behind: attempt %d at store %d, stage %d", v.Owner.Attempt, i, u.lease.Stage())
			}
		}
	}
	u.lease = nil
	w.in(w.rng.Int64N(second), u.acquire)
}

// TestRandom plays random runs. A failing one is repeated by its seed.
func TestRandom(t *testing.T) {
	first, last := uint64(1), uint64(*seeds)
	if *oneSeed > 0 {
		first, last = *oneSeed, *oneSeed
	}
	wins := 0
	for seed := first; seed <= last; seed++ {
		w := newRig(seed, 0)
		if err := w.run(); err != nil {
			t.Fatalf("%v\nrepeat: go test ./internal/core -run 'TestRandom$' -seed %d", err, seed)
		}
		wins += w.wins
	}
	t.Logf("%d runs, %d acquisitions", last-first+1, wins)
}

// The simulation sees mistakes too, within some hundred runs.
func TestRandomSeesMutants(t *testing.T) {
	for name, bugs := range map[string]core.Bugs{
		"no write-back":                     core.BugNoWriteBack,
		"unknown counted as no":             core.BugUnknownIsNo,
		"roll-back on the caller's context": core.BugCallersContext,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 400; seed++ {
				if err := newRig(seed, bugs).run(); err != nil {
					t.Logf("run %d: %v", seed, err)
					return
				}
			}
			t.Error("the mutant is not seen")
		})
	}
}
