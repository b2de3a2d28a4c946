package quorum

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// CombinedStore is several stores as one: a strategy decides how many must
// agree. It is itself a [Store], so sets nest: a quorum of zones, each a quorum
// of nodes. It keeps no vote of its own and does no I/O but what it is asked.
type CombinedStore struct {
	strategy Strategy
	unsorted bool // the strategy tells members apart by their place in the list
	name     string
	rule     *core.Rule
	risks    []domainRisk // that AllowDomain accepted
	members  []Store
	async    []Async // those that are; nil for the others
	leafs    []Store // see leaves
	servers  *identities
	health   *health     // of the members, of verbs that this composite was asked as a member
	owned    []io.Closer // what Open made
	closing  sync.Once
	closed   error // of closing
}

// Combine puts stores together under a strategy. It does no I/O, and fails on
// everything that can be known then: no stores or more than [MaxMembers], one
// given twice, two with one name, stores that arbitrate between different
// rivals, one that may forget and could not be refilled, a strategy two of
// whose quorums share no store, and a failure domain that decides alone, see
// [InDomain].
func Combine(s Strategy, members ...Store) (*CombinedStore, error) {
	var allowed []string
	for a, ok := s.(allowing); ok; a, ok = s.(allowing) {
		s, allowed = a.Strategy, append(allowed, a.labels...)
	}
	if s == nil {
		return nil, fmt.Errorf("%w: Combine without a strategy", ErrInvalidOption)
	}
	if len(members) == 0 || len(members) > MaxMembers {
		return nil, fmt.Errorf("%w: Combine with %d stores: it takes 1 to %d", ErrInvalidOption, len(members), MaxMembers)
	}
	if err := checkMembers(members); err != nil {
		return nil, err
	}
	p, byName := s.(placed)
	if byName {
		var err error
		if s, err = p.place(members); err != nil {
			return nil, err
		}
	}
	rule, err := tabulate(s, members)
	if err != nil {
		return nil, err
	}
	c := &CombinedStore{
		strategy: s, unsorted: !byName && !rule.Counts(), rule: rule,
		members: slices.Clone(members), servers: newIdentities(len(members)), health: newHealth(len(members)),
	}
	for _, m := range members {
		s, _ := m.(Async)
		c.async = append(c.async, s)
	}
	c.name, c.leafs = c.list(), c.listLeaves()
	if err := c.checkDomains(allowed); err != nil {
		return nil, err
	}
	return c, nil
}

func checkMembers(members []Store) error {
	seen := map[Store]bool{}
	named := map[string]bool{}
	for i, m := range members {
		if m == nil {
			return fmt.Errorf("%w: store %d is nil", ErrInvalidOption, i)
		}
		if named[m.Name()] {
			return fmt.Errorf("%w: two stores are named %q: a name is part of the set's fingerprint", ErrInvalidOption, m.Name())
		}
		named[m.Name()] = true
		if err := checkTwice(m, seen); err != nil {
			return err
		}
		first, limits := members[0].Limits().Reach, m.Limits()
		if limits.Reach == ReachNone && len(members) > 1 {
			return fmt.Errorf("%w: store %q grants everything, and must stand alone", ErrInvalidOption, m.Name())
		}
		if limits.Reach != first {
			return fmt.Errorf("%w: store %q arbitrates between rivals of one %s and %q of one %s: rivals must all share every store",
				ErrInvalidOption, members[0].Name(), first, m.Name(), limits.Reach)
		}
		if _, ok := As[HighWater](m); limits.Forgets && !ok {
			return fmt.Errorf("%w: store %q may forget votes and is no HighWater, so it could not come back", ErrInvalidOption, m.Name())
		}
	}
	return nil
}

// checkTwice refuses a store that stands in a tree of stores twice, under
// whatever wrappers: it would have two votes.
func checkTwice(s Store, seen map[Store]bool) error {
	for s != nil {
		if reflect.ValueOf(s).Comparable() { // of a store that is a mere value only its server can tell
			if seen[s] {
				return fmt.Errorf("%w: store %q is given twice: one server is one vote", ErrInvalidOption, s.Name())
			}
			seen[s] = true
		}
		if c, ok := s.(*CombinedStore); ok {
			for _, m := range c.members {
				if err := checkTwice(m, seen); err != nil {
					return err
				}
			}
			return nil
		}
		u, ok := s.(interface{ Unwrap() Store })
		if !ok {
			return nil
		}
		s = u.Unwrap()
	}
	return nil
}

// Name lists the strategy and the members' names, alike whatever order they
// were given in where that makes no difference.
func (c *CombinedStore) Name() string { return c.name }

// list makes the name, once: whoever stands above asks for it in every call.
func (c *CombinedStore) list() string {
	list := make([]string, len(c.members))
	for i, m := range c.members {
		list[i] = m.Name()
	}
	if !c.unsorted {
		slices.Sort(list)
	}
	return c.strategy.String() + "{" + strings.Join(list, ", ") + "}"
}

// Members returns the stores, in the order given.
func (c *CombinedStore) Members() []Store { return slices.Clone(c.members) }

// Limits is the narrowest of the members' limits. A composite as a whole never
// forgets: its members leave quarantine by its own strategy.
func (c *CombinedStore) Limits() Limits {
	l := Limits{Shares: true, Reach: ReachCluster, MaxKey: maxKey, Domain: c.members[0].Limits().Domain}
	for _, m := range c.members {
		of := m.Limits()
		if of.Domain != l.Domain {
			l.Domain = ""
		}
		l.MinTTL = max(l.MinTTL, of.MinTTL)
		l.Grain = max(l.Grain, of.Grain)
		l.Observe = max(l.Observe, of.Observe)
		l.Reach = min(l.Reach, of.Reach)
		l.Shares = l.Shares && of.Shares
		l.Doubles = l.Doubles || of.Doubles
		if of.MaxKey > 0 {
			l.MaxKey = min(l.MaxKey, of.MaxKey)
		}
	}
	return l
}

// leaves returns the stores beneath that are no composites. The caller must not
// change the slice.
func (c *CombinedStore) leaves() []Store { return c.leafs }

func (c *CombinedStore) listLeaves() []Store {
	var out []Store
	for _, m := range c.members {
		if inner, ok := As[*CombinedStore](m); ok {
			out = append(out, inner.leaves()...)
		} else {
			out = append(out, m)
		}
	}
	return out
}

// fingerprint stands for the set: members, strategies and MaxTTL. The order of
// members counts where the strategy tells them apart by it.
func (c *CombinedStore) fingerprint(maxTTL time.Duration) Fingerprint {
	sum := sha256.Sum256(fmt.Appendf(nil, "quorum set v1\n%s\nmax ttl %d", c.describe(), maxTTL))
	return Fingerprint(binary.BigEndian.Uint64(sum[:]))
}

func (c *CombinedStore) describe() string {
	var parts []string
	for _, m := range c.members {
		if inner, ok := As[*CombinedStore](m); ok {
			parts = append(parts, inner.describe())
		} else {
			parts = append(parts, fmt.Sprintf("%q", m.Name()))
		}
	}
	if !c.unsorted {
		slices.Sort(parts)
	}
	return c.strategy.String() + "(" + strings.Join(parts, " ") + ")"
}

// askOrder is the order in which stores are asked for a key: by a hash of key
// and member, so that all clients agree whatever list they were given, and
// different keys start at different stores.
func (c *CombinedStore) askOrder(key string) core.Ranking {
	var weight [MaxMembers]uint64
	var room [MaxMembers]int
	order := room[:len(c.members)]
	for i, m := range c.members {
		weight[i], order[i] = hash(hash(fnvOffset, key)*fnvPrime, m.Name()), i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(weight[a], weight[b]), strings.Compare(c.members[a].Name(), c.members[b].Name()))
	})
	return core.RankingOf(order...)
}

// FNV-1a over 64 bits (Fowler, Noll, Vo 1991), as hash/fnv has it behind an
// interface that allocates. All versions of this library must agree on it.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hash(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}

// doubles is the set of members whose client may send a request twice.
func (c *CombinedStore) doubles() core.Set {
	var set core.Set
	for i, m := range c.members {
		if m.Limits().Doubles {
			set = set.With(i)
		}
	}
	return set
}

// Acquire asks the members as [Store.Acquire] of one store would: it passes
// the owner through, attempt and all, and its grant's token stands on a
// confirmed quorum. A refusal says "not granted", not "nothing of you is here":
// who called it releases.
func (c *CombinedStore) Acquire(ctx context.Context, r Request) (Grant, error) {
	q := c.inner(r)
	d := c.drive(q)
	return d.acquire(ctx, q, r)
}

// Extend counts the members that answer its floor, and repairs those that
// answer not held once a quorum has.
func (c *CombinedStore) Extend(ctx context.Context, r Request) (Grant, error) {
	q := c.inner(r)
	d := c.drive(q)
	return d.extend(ctx, q, r)
}

// Release goes to every member, and entombs: calls of the composite's own may
// still be under way.
func (c *CombinedStore) Release(ctx context.Context, r Request) error {
	q := c.inner(r)
	d := c.drive(q)
	return d.release(ctx, q, r)
}

// inner is the machine for one verb of an outer owner.
func (c *CombinedStore) inner(r Request) *core.Quorum {
	limit := r.Limit
	if limit <= 0 {
		limit = time.Second
	}
	return core.NewQuorum(core.Config{
		Rule: c.rule, Ask: c.askOrder(r.Key), Request: toCore(r),
		Within: limit, CallLimit: callLimit(limit, len(c.members)), ReleaseLimit: limit,
		Doubles: c.doubles(), Member: true,
	})
}

// callLimit is a store's share of a deadline that n stores share, at most 1 s.
func callLimit(within time.Duration, n int) time.Duration {
	return min(within/time.Duration(n+1), time.Second)
}

var _ Store = (*CombinedStore)(nil)
