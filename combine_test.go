package quorum_test

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// rule is a strategy of a user's own.
type rule struct {
	text string
	met  func(v quorum.Votes, n int) bool
}

func (r rule) String() string                 { return r.text }
func (r rule) Met(v quorum.Votes, n int) bool { return r.met(v, n) }

func fewest(k int) quorum.Strategy {
	return rule{fmt.Sprintf("at least %d", k), func(v quorum.Votes, _ int) bool { return v.Len() >= k }}
}

// lockerOf is bed.locker for another set of the same stores.
func (b *bed) lockerOf(set *quorum.CombinedStore, options ...quorum.Option) *quorum.Locker {
	b.t.Helper()
	l, err := quorum.New(set, append([]quorum.Option{quorum.WithClock(clock.Go()), quorum.Observe(b.observe)}, options...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = l.Close(b.t.Context()) })
	return l
}

// spoiled are the bed's stores as members of a set.
func (b *bed) members() []quorum.Store {
	var all []quorum.Store
	for _, sp := range b.spoil {
		all = append(all, sp)
	}
	return all
}

func mustCombine(t *testing.T, s quorum.Strategy, members ...quorum.Store) *quorum.CombinedStore {
	t.Helper()
	set, err := quorum.Combine(s, members...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestF041MajorityOfOneToSix(t *testing.T) {
	for n, need := range []int{1, 2, 2, 3, 3, 4} {
		n++
		for up := range 1 << n {
			works := bits.OnesCount(uint(up)) >= need
			inBubble(t, n, func(t *testing.T, b *bed) {
				for i, sp := range b.spoil {
					if up>>i&1 == 0 {
						sp.Set(storetest.Always(storetest.Fail(nil)))
					}
				}
				lease, err := b.locker().TryAcquire(t.Context(), "k")
				if works != (err == nil) || err != nil && !errors.Is(err, quorum.ErrNoQuorum) {
					t.Fatalf("%d stores, %0*b up, %d needed: %v, %v", n, n, up, need, lease, err)
				}
				if !works {
					b.settle()
					b.checkEmpty("k")
					if op := (*quorum.OpError)(nil); !errors.As(err, &op) || op.Need != need {
						t.Errorf("the error says that %d are needed, want %d", op.Need, need)
					}
				}
			})
		}
	}
}

func TestF149StrategyOfTheUsersOwn(t *testing.T) {
	// R38: the rule is used for acquiring, extending and releasing.
	spoilt := func(t *testing.T, b *bed, down int) *quorum.Locker {
		for _, sp := range b.spoil[:down] {
			sp.Set(storetest.Always(storetest.Fail(nil)))
		}
		return b.lockerOf(mustCombine(t, fewest(4), b.members()...))
	}
	inBubble(t, 5, func(t *testing.T, b *bed) {
		lease := must(t, spoilt(t, b, 1), "k")
		if err := lease.Extend(t.Context(), 20*time.Second); err != nil {
			t.Errorf("four of five extended, and the rule is four: %v", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("four of five released, and the rule is four: %v", err)
		}
	})
	inBubble(t, 5, func(t *testing.T, b *bed) {
		if _, err := spoilt(t, b, 2).TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("three of five granted, and the rule is four: %v", err)
		}
	})
	inBubble(t, 5, func(t *testing.T, b *bed) {
		lease := must(t, spoilt(t, b, 0), "k")
		spoilt(t, b, 2)
		if err := lease.Extend(t.Context(), 20*time.Second); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("three of five extended, and the rule is four: %v", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("three of five released, and the rule is four: %v", err)
		}
	})
}

func TestR42UnsafeStrategiesAreRefused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		s     quorum.Strategy
		n     int
		texts []string
	}{
		{"2 of 4", fewest(2), 4, []string{"at least 2", "{a, b}", "{c, d}"}},
		{"F149 1 of 3", fewest(1), 3, []string{"{a}", "{b, c}"}},
		{"quorum above N", fewest(4), 3, []string{"at least 4", "3 stores"}},
		{"a vote more loses", rule{"exactly two", func(v quorum.Votes, _ int) bool { return v.Len() == 2 }}, 3,
			[]string{"exactly two", "{a, b}", "{a, b, c}"}},
		{"it panics", rule{"angry", func(quorum.Votes, int) bool { panic("no idea") }}, 3, []string{"panicked", "no idea"}},
		{"it panics late", rule{"late", func(v quorum.Votes, n int) bool {
			if v.Len() == n {
				panic("full")
			}
			return v.Len() > n/2
		}}, 3, []string{"panicked", "full"}},
		{"it is nil", nil, 3, []string{"without a strategy"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, err := quorum.Combine(tc.s, named("a", "b", "c", "d")[:tc.n]...)
			if set != nil || !errors.Is(err, quorum.ErrInvalidOption) {
				t.Fatalf("Combine = %v, %v, want ErrInvalidOption", set, err)
			}
			for _, text := range tc.texts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not name %q", err, text)
				}
			}
		})
	}
}

func named(names ...string) []quorum.Store {
	var all []quorum.Store
	for _, n := range names {
		all = append(all, memstore.New(n))
	}
	return all
}

// alias is a second client of one server: that it is one, only the server's
// answers can tell.
type alias struct {
	*memstore.Store
	name string
}

func (a *alias) Name() string { return a.name }

// wrapper is a store that can be looked into.
type wrapper struct {
	quorum.Store
	name string
}

func (w *wrapper) Name() string         { return w.name }
func (w *wrapper) Unwrap() quorum.Store { return w.Store }

func TestF107UselessMembersAreRefused(t *testing.T) {
	a, b, c := memstore.New("a"), memstore.New("b"), memstore.New("c")
	zone := mustCombine(t, quorum.Consensus(), a, b)
	forgets := storetest.Spoil(&storeWithout{memstore.New("f", memstore.Forgetful())})
	for _, tc := range []struct {
		name    string
		members []quorum.Store
		text    string
	}{
		{"no stores", nil, "0 stores"},
		{"too many", named(strings.Split("abcdefghijklmnopq", "")...), "17 stores"},
		{"nil", []quorum.Store{a, nil, c}, "store 1 is nil"},
		{"one name twice", []quorum.Store{a, memstore.New("a"), c}, `named "a"`},
		{"R42 one pointer twice", []quorum.Store{a, &wrapper{b, "b2"}, b}, `"b" is given twice`},
		{"R42 one store under wrappers", []quorum.Store{&wrapper{a, "a1"}, &wrapper{storetest.Spoil(a), "a2"}, c}, `"a" is given twice`},
		{"R42 a store inside a set and beside it", []quorum.Store{zone, a, c}, `"a" is given twice`},
		{"a store that forgets and cannot come back", []quorum.Store{a, b, forgets}, `"f" may forget`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, err := quorum.Combine(quorum.Consensus(), tc.members...)
			if set != nil || !errors.Is(err, quorum.ErrInvalidOption) {
				t.Fatalf("Combine = %v, %v, want ErrInvalidOption", set, err)
			}
			if !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%q does not say %s", err, tc.text)
			}
		})
	}
	if _, err := quorum.New(nil); !errors.Is(err, quorum.ErrInvalidOption) {
		t.Errorf("New(nil) = %v, want ErrInvalidOption", err)
	}
}

// storeWithout hides every ability of a store.
type storeWithout struct{ quorum.Store }

func TestR42OneServerUnderTwoNamesVotesOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		members := []quorum.Store{b.spoil[0], &alias{b.memory[0], "again"}, b.spoil[2]}
		b.set = mustCombine(t, quorum.Consensus(), members...)
		l := b.locker()
		b.spoil[2].Set(storetest.Always(storetest.Fail(nil)))
		lease, err := l.TryAcquire(t.Context(), "k")
		if lease != nil || !errors.Is(err, quorum.ErrNoQuorum) {
			t.Fatalf("one server granted twice and the other is down: %v, %v, want ErrNoQuorum", lease, err)
		}
		twins := b.seen(quorum.EventTwin)
		if len(twins) != 1 || !strings.Contains(twins[0].Err.Error(), `"again"`) || !strings.Contains(twins[0].Err.Error(), `"a"`) {
			t.Errorf("events that tell of it: %+v, want one that names both", twins)
		}
		b.settle()
		b.checkEmpty("k")
		b.spoil[2].Set()
		lease, err = l.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatalf("two servers of three members are up: %v", err)
		}
		b.settle()
		twin := 0
		for _, v := range lease.Votes() {
			if v.Outcome == quorum.OutcomeTwin {
				twin++
			}
		}
		if twin != 1 {
			t.Errorf("%d votes are of a twin, want 1: %+v", twin, lease.Votes())
		}
		if err := l.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "same server") {
			t.Errorf("Check = %v, want the two names of one server", err)
		}
	})
}

func TestR43ReachIsShared(t *testing.T) {
	wide := storetest.Spoil(memstore.New("wide"))
	wide.Pretend(func(l *quorum.Limits) { l.Reach = quorum.ReachCluster })
	host := storetest.Spoil(memstore.New("host"))
	host.Pretend(func(l *quorum.Limits) { l.Reach = quorum.ReachHost })
	memory := mustCombine(t, quorum.Consensus(), named("a", "b")...)
	for name, members := range map[string][]quorum.Store{
		"memory among servers": {wide, memstore.New("m")},
		"file among servers":   {wide, host},
		"a set of memories":    {wide, memory},
	} {
		_, err := quorum.Combine(quorum.Consensus(), members...)
		if !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(err.Error(), "rivals") {
			t.Errorf("%s: %v, want a refusal that speaks of rivals", name, err)
		}
	}
	if _, err := quorum.New(memory, quorum.Cluster()); !errors.Is(err, quorum.ErrInvalidOption) {
		t.Errorf("New(memories, Cluster()) = %v, want ErrInvalidOption", err)
	}
	if _, err := quorum.New(wide, quorum.Cluster()); err != nil {
		t.Errorf("New of a store that arbitrates between machines: %v", err)
	}
}

func TestFingerprintIsOfTheSetAndNotOfTheList(t *testing.T) {
	print := func(s quorum.Strategy, names ...string) quorum.Fingerprint {
		return quorum.FingerprintOf(mustCombine(t, s, named(names...)...), time.Minute)
	}
	first := print(quorum.Consensus(), "a", "b", "c")
	if got := print(quorum.Consensus(), "c", "a", "b"); got != first {
		t.Errorf("the same stores in another order have fingerprint %v, not %v", got, first)
	}
	for name, other := range map[string]quorum.Fingerprint{
		"strategy": print(quorum.Unanimous(), "a", "b", "c"),
		"members":  print(quorum.Consensus(), "a", "b", "d"),
		"fewer":    print(quorum.Consensus(), "a", "b"),
		"quoting":  print(quorum.Consensus(), `a" "b`, "c"),
		"MaxTTL":   quorum.FingerprintOf(mustCombine(t, quorum.Consensus(), named("a", "b", "c")...), 2*time.Minute),
	} {
		if other == first {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
	nest := func(zones ...[]string) quorum.Fingerprint {
		var sets []quorum.Store
		for _, z := range zones {
			sets = append(sets, mustCombine(t, quorum.Consensus(), named(z...)...))
		}
		return quorum.FingerprintOf(mustCombine(t, quorum.Consensus(), sets...), time.Minute)
	}
	if a, b := nest([]string{"a", "b"}, []string{"c"}), nest([]string{"c"}, []string{"b", "a"}); a != b {
		t.Errorf("nested sets in another order have fingerprints %v and %v", a, b)
	}
	if a, b := nest([]string{"a", "b"}, []string{"c"}), nest([]string{"a"}, []string{"b", "c"}); a == b {
		t.Error("stores in other zones have the same fingerprint")
	}
}

func TestR11AllClientsAskInOneOrder(t *testing.T) {
	firsts := map[string]int{}
	for i := range 200 {
		key := fmt.Sprint("key ", i)
		var want []string
		for _, list := range [][]string{{"a", "b", "c", "d", "e"}, {"e", "d", "c", "b", "a"}, {"c", "a", "e", "b", "d"}} {
			var order []string
			for _, i := range quorum.AskOrderOf(mustCombine(t, quorum.Consensus(), named(list...)...), key) {
				order = append(order, list[i])
			}
			if want == nil {
				want = order
			}
			if !slices.Equal(order, want) {
				t.Fatalf("%q: a client that lists %v asks %v, another %v", key, list, order, want)
			}
		}
		firsts[want[0]]++
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if n := firsts[name]; n < 15 || n > 75 {
			t.Errorf("of 200 keys %d start at store %s, want about 40: %v", n, name, firsts)
		}
	}
}
