package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// moving is a world whose set of stores changes while its clients work, and
// what its operator has told them so far.
type moving struct {
	old, both, new *Set
	latest         *Set
	until          core.ChangeStage // what the operator is about
	done           bool
	deaths         int
}

const moverTTL = 2 * time.Second

// move says which of n stores are in the old set and which in the new.
func move(n int, old, new []int) *moving {
	in := func(members []int) core.Set {
		var s core.Set
		for _, i := range members {
			s = s.With(i)
		}
		return s
	}
	inOld, inNew := in(old), in(new)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	joint := core.Tabulate(n, func(s core.Set) bool {
		return 2*(s&inOld).Len() > len(old) && 2*(s&inNew).Len() > len(new)
	})
	m := &moving{
		old:  &Set{Print: 1, Members: old, Rule: core.Majority(len(old))},
		both: &Set{Print: 2, Members: all, Rule: joint},
		new:  &Set{Print: 3, Members: new, Rule: core.Majority(len(new))},
	}
	m.latest, m.until = m.old, core.ChangeJoining
	return m
}

func (m *moving) over(n int, s *Set) *core.Rule {
	return core.Tabulate(n, func(v core.Set) bool {
		var own core.Set
		for i, member := range s.Members {
			if v.Has(member) {
				own = own.With(i)
			}
		}
		return s.Rule.Met(own)
	})
}

// operate is the operator's process, which client 0's is too: it moves the
// stores a stage, tells the clients of the set that they are to use now, and so
// on. One that was killed begins with the stage that it was at.
func (m *moving) operate(bugs core.Bugs) func(*Client) {
	return func(c *Client) {
		if c.ID() > 0 || m.done {
			return
		}
		c.After(time.Duration(c.Choose(uint64(4*time.Second))), func() { m.next(c, bugs) })
	}
}

// pause lets clients work for a while between two stages, unless the world is
// winding down. A mistake shows where there is no time between them.
func (m *moving) pause(c *Client, bugs core.Bugs) {
	if c.Stopping() || bugs != 0 {
		m.next(c, bugs)
		return
	}
	c.After(time.Duration(c.Choose(uint64(2*time.Second))), func() { m.next(c, bugs) })
}

func (m *moving) next(c *Client, bugs core.Bugs) {
	n := c.w.cfg.Stores
	set := func(members []int) (s core.Set) {
		for _, i := range members {
			s = s.With(i)
		}
		return s
	}
	change := core.NewSetChange(core.SetChangeConfig{
		Old: m.over(n, m.old), New: m.over(n, m.new), OldStores: set(m.old.Members), NewStores: set(m.new.Members),
		From: m.old.Print, Joint: m.both.Print, To: m.new.Print, Until: m.until,
		Request: core.Request{MaxTTL: c.w.cfg.MaxTTL, Set: m.both.Print}, CallLimit: time.Second, Bugs: bugs,
	})
	change.Start(c.Now())
	c.Operate(change, func() bool {
		switch {
		case !change.Settled():
			return false
		case change.Failed():
			c.w.violate(Progress, -1, "the change gave up at stage %d", m.until)
			return true
		}
		switch m.until {
		case core.ChangeJoining:
			m.latest = m.both
		case core.ChangeOpened:
			m.latest = m.new
		case core.ChangeDone:
			// A store that was silent, or forgot and was first asked by a client of
			// the joint set, serves that until the change is made again, and its
			// mismatch keeps everybody out: so the operator looks once more.
			if m.done = c.Stopping() && change.Behind() == 0; m.done {
				return true
			}
		}
		m.until = min(m.until+1, core.ChangeDone)
		m.pause(c, bugs)
		return true
	})
}

// run lets the set change in the world of a seed, with every fault on and an
// operator that is killed some times.
func (m *moving) run(seed uint64, n int, bugs core.Bugs) *Report {
	base := Config{
		Stores: n, Rule: m.both.Rule, Clients: 4, Keys: 1, TTL: moverTTL, MaxTTL: 2 * moverTTL, Duration: 30 * time.Second,
		Latest: func() *Set { return m.latest }, Chore: m.operate(bugs), Bugs: bugs,
		Busy: func() bool { return !m.done },
	}
	if bugs != 0 {
		base.TTL, base.MaxTTL = 10*time.Second, 10*time.Second
		base.Keys = 8 // a name that nobody took in between is the one whose tokens fall
	}
	cfg := Random(base, Seeded(seed)).filled()
	cfg.Swarm, cfg.Plan = false, drawPlan(&cfg, Seeded(seed))
	// An address that leads to a server outside the set is a member that is two
	// servers, which breaks assumption A8.
	cfg.Plan.Faults = slices.DeleteFunc(cfg.Plan.Faults, func(f Fault) bool { return f.Kind == Twins })
	kills := Seeded(seed + 1)
	for range kills.Choose(OfPlan, 8) {
		at := time.Duration(kills.Choose(OfPlan, uint64(25*time.Second)))
		cfg.Plan.Faults = append(cfg.Plan.Faults, Fault{Kind: Kill, At: at, For: time.Duration(kills.Choose(OfPlan, uint64(3*time.Second))), Clients: []int{0}})
		m.deaths++
	}
	return Run(cfg, Seeded(seed))
}

// While the set of stores changes, under every fault and with an operator who
// is killed between any two steps and begins again, no two clients hold,
// tokens grow, and in the end all stores serve the new set and everybody gets
// in.
func TestR48SetChangesWhileLocksAreHeld(t *testing.T) {
	total, deaths := &Report{}, 0
	for i := range seedCount(t) / 4 {
		seed := firstSeed(t) + i
		m := move(5, []int{0, 1, 2}, []int{2, 3, 4})
		if i%2 == 1 {
			m = move(6, []int{0, 1, 2}, []int{3, 4, 5})
		}
		r := m.run(seed, len(m.both.Members), 0)
		total.Add(r)
		deaths += m.deaths
		if len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v\n%v", seed, r.Violations[0], r.Plan)
		}
		if !m.done {
			t.Fatalf("seed %d: the change is at stage %d", seed, m.until)
		}
	}
	t.Logf("\n%v%d times the operator was killed", total, deaths)
}

// A change that does not wait for old leases, or does not raise the new
// stores, is seen.
func TestR48HastyChangesAreSeen(t *testing.T) {
	for name, c := range map[string]struct {
		bug core.Bugs
		by  []Checker
	}{
		"does not wait":  {core.BugChangeNoWait, []Checker{Exclusion, Sharing, Order}},
		"does not raise": {core.BugChangeNoRaise, []Checker{Order, Unique}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2000) {
				m := move(6, []int{0, 1, 2}, []int{3, 4, 5})
				r := m.run(seed, 6, c.bug)
				if i := slices.IndexFunc(r.Violations, func(v Violation) bool { return slices.Contains(c.by, v.Checker) }); i >= 0 {
					t.Logf("seed %d: %v", seed, r.Violations[i])
					return
				}
			}
			t.Error("nobody sees it")
		})
	}
}
