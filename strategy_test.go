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
	"github.com/quorumlock/quorum/storetest"
)

// quorumsOf reads which sets of stores satisfy a set, by asking all of them.
func quorumsOf(set *quorum.CombinedStore) []uint {
	var all []uint
	for v := range uint(1) << len(set.Members()) {
		if quorum.MetOf(set, v) {
			all = append(all, v)
		}
	}
	return all
}

// sameQuorums demands that a set's quorums are those of a definition in words
// of its members' names, and that every two of them share a store.
func sameQuorums(t *testing.T, set *quorum.CombinedStore, met func(has map[string]bool) bool) {
	t.Helper()
	var want []uint
	for v := range uint(1) << len(set.Members()) {
		has := map[string]bool{}
		for i, m := range set.Members() {
			has[m.Name()] = v>>i&1 == 1
		}
		if met(has) {
			want = append(want, v)
		}
	}
	got := quorumsOf(set)
	if !slices.Equal(got, want) {
		t.Errorf("%s: the quorums are %b, want %b", set.Name(), got, want)
	}
	for _, a := range got {
		for _, b := range got {
			if a&b == 0 {
				t.Fatalf("%s: the quorums %b and %b share no store", set.Name(), a, b)
			}
		}
	}
}

// refused demands that Combine refuses with all of the texts.
func refused(t *testing.T, s quorum.Strategy, members []quorum.Store, texts ...string) {
	t.Helper()
	set, err := quorum.Combine(s, members...)
	if set != nil || !errors.Is(err, quorum.ErrInvalidOption) {
		t.Fatalf("Combine(%v) = %v, %v, want ErrInvalidOption", s, set, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

func TestR38AtLeast(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for k := -1; k <= n+1; k++ {
			members := named("a", "b", "c", "d", "e", "f")[:n]
			if k <= n/2 || k > n {
				refused(t, quorum.AtLeast(k), members, fmt.Sprint("at least ", k))
				continue
			}
			sameQuorums(t, mustCombine(t, quorum.AtLeast(k), members...), func(has map[string]bool) bool {
				votes := 0
				for _, yes := range has {
					votes += map[bool]int{true: 1}[yes]
				}
				return votes >= k
			})
		}
	}
}

func TestR38Weighted(t *testing.T) {
	// Every weight from 1 to 3 of four stores.
	for code := range 81 {
		weights, total := map[string]int{}, 0
		for i, name := range []string{"a", "b", "c", "d"} {
			weights[name] = code/[]int{1, 3, 9, 27}[i]%3 + 1
			total += weights[name]
		}
		set := mustCombine(t, quorum.Weighted(weights), named("c", "a", "d", "b")...)
		sameQuorums(t, set, func(has map[string]bool) bool {
			yes, no := 0, 0
			for name, w := range weights {
				if has[name] {
					yes += w
				} else {
					no += w
				}
			}
			return yes > no
		})
	}
	abc := named("a", "b", "c")
	refused(t, quorum.Weighted(map[string]int{"a": 1, "b": 1}), abc, `no weight to store "c"`)
	refused(t, quorum.Weighted(map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}), abc, `"d", which is none of the stores`)
	refused(t, quorum.Weighted(map[string]int{"a": 1, "b": 1, "c": 0}), abc, `weight 0 to store "c"`)
	refused(t, quorum.Weighted(map[string]int{"a": 1, "b": 1, "c": 1 << 40}), abc, `to store "c"`)
	given := map[string]int{"a": 3, "b": 1, "c": 1}
	s := quorum.Weighted(given)
	given["a"] = 1 // too late to matter
	if got := quorumsOf(mustCombine(t, s, abc...)); len(got) != 4 {
		t.Errorf("a store of three of five votes is in %d quorums, want 4: it decides alone", len(got))
	}
}

// zoned are stores that are labelled by their first letter.
func zoned(names ...string) []quorum.Store {
	var all []quorum.Store
	for _, m := range named(names...) {
		all = append(all, quorum.InDomain(m, m.Name()[:1]))
	}
	return all
}

func TestR38Zones(t *testing.T) {
	for _, names := range [][]string{
		{"a1", "b1", "c1"},
		{"a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"},
		{"a1", "a2", "b1", "b2", "b3", "c1"},
		{"c2", "a1", "b1", "c1", "d1", "d2", "e1", "a2"},
	} {
		size := map[string]int{}
		for _, name := range names {
			size[name[:1]]++
		}
		set := mustCombine(t, quorum.Zones(), zoned(names...)...)
		sameQuorums(t, set, func(has map[string]bool) bool {
			agree, zones := 0, 0
			for zone, n := range size {
				votes := 0
				for name, yes := range has {
					if yes && name[:1] == zone {
						votes++
					}
				}
				zones++
				if 2*votes > n {
					agree++
				}
			}
			return 2*agree > zones
		})
	}
	refused(t, quorum.Zones(), append(zoned("a1", "b1"), named("c1")...), `"c1", which is in none`, "InDomain")
	refused(t, quorum.Zones(), zoned("a1", "a2", "a3", "b1", "b2", "b3"), `domain "a"`, "no quorum")
	refused(t, quorum.Zones(), zoned("a1", "a2", "a3"), `domain "a"`, "quorum by themselves")
}

func TestR38Joint(t *testing.T) {
	all := map[string]quorum.Store{}
	for _, m := range named("a", "b", "c", "d", "e", "f") {
		all[m.Name()] = m
	}
	pick := func(names string) (out []quorum.Store) {
		for _, n := range strings.Split(names, "") {
			out = append(out, all[n])
		}
		return out
	}
	majority := func(has map[string]bool, names string) bool {
		votes := 0
		for _, n := range strings.Split(names, "") {
			votes += map[bool]int{true: 1}[has[n]]
		}
		return 2*votes > len(names)
	}
	for _, tc := range [][2]string{{"abc", "bcd"}, {"abc", "def"}, {"abc", "abcde"}, {"a", "bcd"}, {"abcde", "bcf"}, {"abc", "abc"}} {
		old := mustCombine(t, quorum.Consensus(), pick(tc[0])...)
		next := mustCombine(t, quorum.Consensus(), pick(tc[1])...)
		set, err := quorum.Joint(old, next)
		if err != nil {
			t.Fatal(err)
		}
		sameQuorums(t, set, func(has map[string]bool) bool { return majority(has, tc[0]) && majority(has, tc[1]) })
		for _, one := range []*quorum.CombinedStore{old, next} {
			meets(t, set, one)
		}
	}
	zone := func(names string) quorum.Store { return mustCombine(t, quorum.Consensus(), pick(names)...) }
	nest := mustCombine(t, quorum.Unanimous(), zone("abc"), zone("def"))
	set, err := quorum.Joint(nest, mustCombine(t, quorum.Consensus(), pick("abc")...))
	if err != nil {
		t.Fatal(err)
	}
	sameQuorums(t, set, func(has map[string]bool) bool { return majority(has, "abc") && majority(has, "def") })
	if _, err := quorum.Joint(nil, set); !errors.Is(err, quorum.ErrInvalidOption) {
		t.Errorf("Joint(nil, set) = %v, want ErrInvalidOption", err)
	}
	many := mustCombine(t, quorum.Consensus(), named(strings.Split("ghijklmnopqrs", "")...)...)
	if _, err := quorum.Joint(nest, many); err == nil || !strings.Contains(err.Error(), "19 stores") {
		t.Errorf("Joint of 19 stores = %v, want the number refused", err)
	}
}

// meets demands that every quorum of both shares a store with every one of one.
func meets(t *testing.T, both, one *quorum.CombinedStore) {
	t.Helper()
	at := map[string]uint{}
	for i, m := range both.Members() {
		at[m.Name()] = 1 << i
	}
	for _, v := range quorumsOf(one) {
		mapped := uint(0)
		for i, m := range one.Members() {
			if v>>i&1 == 1 {
				mapped |= at[m.Name()]
			}
		}
		for _, w := range quorumsOf(both) {
			if w&mapped == 0 {
				t.Fatalf("the joint quorum %b and %b of %s share no store", w, mapped, one.Name())
			}
		}
	}
}

// Strategies that know their members by name do so whatever list they are in.
func TestR45NamedStrategiesAreOneSetInAnyOrder(t *testing.T) {
	weights := map[string]int{"a1": 2, "b1": 1, "c1": 1, "d1": 1}
	joint := func(members []quorum.Store) *quorum.CombinedStore {
		set, err := quorum.Joint(mustCombine(t, quorum.Consensus(), members[:3]...), mustCombine(t, quorum.Consensus(), members...))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	for name, build := range map[string]func(members []quorum.Store) *quorum.CombinedStore{
		"weighted": func(m []quorum.Store) *quorum.CombinedStore { return mustCombine(t, quorum.Weighted(weights), m...) },
		"zones":    func(m []quorum.Store) *quorum.CombinedStore { return mustCombine(t, quorum.Zones(), m...) },
		"joint":    joint,
	} {
		one, other := build(zoned("a1", "b1", "c1", "d1")), build(zoned("c1", "b1", "a1", "d1"))
		if a, b := quorum.FingerprintOf(one, time.Minute), quorum.FingerprintOf(other, time.Minute); a != b || one.Name() != other.Name() {
			t.Errorf("%s: %s and %s have fingerprints %v and %v, want one", name, one.Name(), other.Name(), a, b)
		}
	}
	print := func(s quorum.Strategy, m []quorum.Store) quorum.Fingerprint {
		return quorum.FingerprintOf(mustCombine(t, s, m...), time.Minute)
	}
	if print(quorum.Weighted(weights), zoned("a1", "b1", "c1", "d1")) == print(quorum.Weighted(map[string]int{"a1": 1, "b1": 2, "c1": 1, "d1": 1}), zoned("a1", "b1", "c1", "d1")) {
		t.Error("other weights have the same fingerprint")
	}
	moved := []quorum.Store{quorum.InDomain(named("d1")[0], "c")}
	if print(quorum.Zones(), zoned("a1", "b1", "c1", "d1")) == print(quorum.Zones(), append(zoned("a1", "b1", "c1"), moved...)) {
		t.Error("a store in another zone has the same fingerprint")
	}
	if print(quorum.AllowDomain(quorum.Consensus(), "a"), zoned("a1", "a2", "b1")) != print(quorum.Consensus(), named("a1", "a2", "b1")) {
		t.Error("labels that no rule reads change the fingerprint")
	}
}

func TestR44FailureDomains(t *testing.T) {
	c := quorum.Consensus()
	refused(t, c, zoned("a1", "a2", "b1"), `the 2 stores in domain "a" are a quorum`, "AllowDomain")
	refused(t, c, zoned("a1", "a2", "b1", "b2"), `without the 2 stores in domain "a"`)
	refused(t, c, append(zoned("a1", "a2"), named("x", "y")...), `domain "a"`)
	refused(t, quorum.AllowDomain(c, "b"), zoned("a1", "a2", "b1"), `domain "a"`)
	refused(t, quorum.AllowDomain(nil, "b"), zoned("a1"), "without a strategy")
	for name, tc := range map[string]struct {
		s       quorum.Strategy
		members []quorum.Store
	}{
		"each by itself":             {c, zoned("a1", "b1", "c1")},
		"no labels":                  {c, named("a1", "a2", "b1")},
		"a minority":                 {c, zoned("a1", "a2", "b1", "c1", "d1")},
		"accepted":                   {quorum.AllowDomain(c, "a"), zoned("a1", "a2", "b1")},
		"accepted twice":             {quorum.AllowDomain(quorum.AllowDomain(c, "a"), "b"), zoned("a1", "a2", "b1", "b2")},
		"any store blocks anyway":    {quorum.Unanimous(), zoned("a1", "a2", "b1")},
		"one store decides by right": {quorum.Weighted(map[string]int{"a1": 5, "a2": 1, "b1": 1}), zoned("a1", "a2", "b1")},
	} {
		if _, err := quorum.Combine(tc.s, tc.members...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	zone := func(label string, names ...string) quorum.Store {
		return quorum.InDomain(mustCombine(t, c, named(names...)...), label)
	}
	refused(t, c, []quorum.Store{zone("x", "a", "b", "c"), zone("x", "d", "e", "f"), zone("y", "g", "h", "i")}, `the 6 stores in domain "x"`)
	nest := mustCombine(t, c, zone("x", "a", "b", "c"), zone("y", "d", "e", "f"), zone("z", "g", "h", "i"))
	if got := nest.Limits().Domain; got != "" {
		t.Errorf("a set over three domains is in domain %q", got)
	}
	if got := mustCombine(t, quorum.AllowDomain(c, "a"), zoned("a1", "a2", "a3")...).Limits().Domain; got != "a" {
		t.Errorf("a set within domain a is in domain %q", got)
	}
}

func TestR44LabelHidesNothing(t *testing.T) {
	m := named("a")[0]
	labelled := quorum.InDomain(storetest.Spoil(m), "rack 1")
	if l := labelled.Limits(); l.Domain != "rack 1" || labelled.Name() != "a" {
		t.Errorf("the labelled store is %q with %+v", labelled.Name(), l)
	}
	if _, ok := quorum.As[quorum.HighWater](labelled); !ok {
		t.Error("the label hides an ability")
	}
	refused(t, quorum.Consensus(), []quorum.Store{labelled, &wrapper{m, "b"}}, "given twice")
	refused(t, quorum.Consensus(), []quorum.Store{quorum.InDomain(nil, "x")}, "is nil")
}

func TestR44CheckAdvises(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		var members []quorum.Store
		for i, sp := range b.spoil {
			members = append(members, quorum.InDomain(sp, fmt.Sprint("host ", bits.Len(uint(i))/2)))
		}
		l := b.lockerOf(mustCombine(t, quorum.AllowDomain(quorum.Consensus(), "host 0"), members...))
		if err := l.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		advice := b.seen(quorum.EventAdvice)
		if len(advice) != 1 || !strings.Contains(advice[0].Err.Error(), `domain "host 0"`) {
			t.Errorf("the advice is %+v, want one about host 0", advice)
		}
	})
}
