package quorum

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorumlock/quorum/internal/core"
)

// InDomain labels a store with what fails together with it: a host, a rack, a
// zone. The label is the store's [Limits.Domain]; it may stand on a set, and
// then holds for all that is beneath. It changes nothing else of the store.
//
// [Combine] refuses a set in which one domain decides alone although no single
// store of it does: its loss would stop all locking, or its votes together
// would be a quorum that no other store knows of. Stores without a label are
// taken to fail each by itself. [AllowDomain] accepts what is refused.
func InDomain(s Store, label string) Store {
	if s == nil {
		return nil // Combine says so
	}
	return &inDomain{s, label}
}

type inDomain struct {
	Store
	label string
}

func (d *inDomain) Limits() Limits {
	l := d.Store.Limits()
	l.Domain = d.label
	return l
}

func (d *inDomain) Unwrap() Store { return d.Store }

// AllowDomain is s where a failure domain may decide alone: two of three nodes
// on one host, all of a test's servers on one machine. [Locker.Check] goes on
// advising against it. Only the domains named are accepted.
func AllowDomain(s Strategy, labels ...string) Strategy { return allowing{s, labels} }

type allowing struct {
	Strategy
	labels []string
}

// domainRisk is a domain that decides alone.
type domainRisk struct {
	label string
	text  string
}

// domainRisks lists the domains that block a quorum or are one, though none of
// their stores does by itself: that much is the strategy's own choice.
func (c *CombinedStore) domainRisks() []domainRisk {
	in := map[string][]int{}
	next := 0
	c.domains(nil, in, &next)
	var risks []domainRisk
	for _, label := range slices.Sorted(maps.Keys(in)) {
		inside := in[label]
		blocks := !c.satisfied(func(i int, _ Store) bool { return !slices.Contains(inside, i) })
		forms := c.satisfied(func(i int, _ Store) bool { return slices.Contains(inside, i) })
		for _, one := range inside {
			blocks = blocks && c.satisfied(func(i int, _ Store) bool { return i != one })
			forms = forms && !c.satisfied(func(i int, _ Store) bool { return i == one })
		}
		switch {
		case forms:
			risks = append(risks, domainRisk{label, fmt.Sprintf("the %d stores in domain %q are a quorum by themselves: "+
				"if all of it is lost, so is every lock's memory", len(inside), label)})
		case blocks:
			risks = append(risks, domainRisk{label, fmt.Sprintf("without the %d stores in domain %q there is no quorum: "+
				"if it is lost, nothing can be locked", len(inside), label)})
		}
	}
	return risks
}

// checkDomains refuses a set that has risks that were not accepted, and
// remembers those that were. Joint sets are made of two that were checked.
func (c *CombinedStore) checkDomains(allowed []string) error {
	if _, both := c.strategy.(joint); both {
		return nil
	}
	for _, r := range c.domainRisks() {
		if !slices.Contains(allowed, r.label) {
			return fmt.Errorf("%w: %s; spread the stores, or accept it with AllowDomain", ErrInvalidOption, r.text)
		}
		c.risks = append(c.risks, r)
	}
	return nil
}

// domains notes for each label the leaves that it stands on, or above, by their
// number.
func (c *CombinedStore) domains(above []string, in map[string][]int, next *int) {
	for _, m := range c.members {
		labels := above
		if label := m.Limits().Domain; label != "" && !slices.Contains(above, label) {
			labels = append(slices.Clone(above), label)
		}
		if inner, ok := As[*CombinedStore](m); ok {
			inner.domains(labels, in, next)
			continue
		}
		for _, label := range labels {
			in[label] = append(in[label], *next)
		}
		*next++
	}
}

// satisfied reports whether the leaves that have votes satisfy a tree of
// strategies. Leaves are numbered in the order of leaves.
func (c *CombinedStore) satisfied(has func(i int, leaf Store) bool) bool {
	next := 0
	return c.count(has, &next)
}

func (c *CombinedStore) count(has func(int, Store) bool, next *int) bool {
	var set core.Set
	for i, m := range c.members {
		ok := false
		if inner, composite := As[*CombinedStore](m); composite {
			ok = inner.count(has, next)
		} else {
			ok = has(*next, m)
			*next++
		}
		if ok {
			set = set.With(i)
		}
	}
	return c.rule.Met(set)
}

// allRisks is what was accepted in a set and in those beneath it.
func (c *CombinedStore) allRisks() []domainRisk {
	risks := slices.Clone(c.risks)
	for _, m := range c.members {
		if inner, ok := As[*CombinedStore](m); ok {
			risks = append(risks, inner.allRisks()...)
		}
	}
	return risks
}
