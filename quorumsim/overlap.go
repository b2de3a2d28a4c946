package quorumsim

import (
	"fmt"
	"math"
	"time"
)

// Violation is something that must not have been.
type Violation struct {
	// Check says which rule was broken. Of [Overlap]:
	//
	//	exclusion   two clients held a key exclusively at once
	//	sharing     a reader held beside a writer
	//	order       a token is not above one that was held before it was asked for
	//	unique      two exclusive leases have one token
	//	stale       a resource took a write after one with a higher token
	//	forged      a resource took a write under a token that its client never had
	//	revival     a lease is held again after it was over
	//	history     the events contradict each other, so that nothing is shown
	//
	// Of the world besides: remaining (a client believes for too long), left
	// behind and stray vote (in a store), after the end (a lease that is over is
	// held again or sends something), messages (too many), progress (the faults
	// are over, and yet somebody does not get in or a store does not vote).
	Check string
	At    time.Duration
	Key   string // or the resource; may be empty
	Text  string
}

// String says the violation in a line.
func (v Violation) String() string { return v.At.String() + " " + v.Check + ": " + v.Text }

// Overlap proves or refutes of a history that no two clients held a key at
// once (readers may), that tokens grew and that no resource took a stale write.
// It returns everything that refutes it, in the order of the events, two leases
// that are held at once only once; nothing is a proof, for this history and as
// far as its times are true.
//
// It needs of each lease Asks (without which the order of tokens is not
// judged) and Acquires, then what there was of Renews, Reckons, Loses, Releases
// and Dies. A lease is held from Acquires until the first of Loses, Releases,
// Dies and its last Until. An Until of 0 is not known, so held until one of the
// others; a Token of 0 is not known, and not judged. A client that does not know whether it holds must be given as
// holding: unknown is not no. Events of one instant count in the order given.
// Of writes only Takes counts. Events that only people read may be left out.
//
// A history from elsewhere must come from one clock, or from clocks whose
// difference is smaller than what it is to show. A write that a resource took
// under an old token before it saw the next holder's is no violation: no fence
// can know.
func Overlap(h History) []Violation {
	j := judge{
		keys: map[string]*keyFacts{}, leases: map[int]*hold{}, tops: map[string]Event{},
		had: map[tokenOf]bool{}, told: map[[2]int]bool{},
	}
	for _, e := range h {
		if e.At < j.now {
			j.violate(e, "history", "%s comes after an event of %v", e, j.now)
		}
		j.now = e.At
		j.event(e)
	}
	return j.found
}

// hold is one lease.
type hold struct {
	Event              // as it was acquired last: Client, Key, Lease, Shared, Token, Until
	aboveAny     int64 // highest token that was held when it was asked for
	aboveWritten int64 // and of the exclusive ones
	held         bool  // ever
	over         bool
}

// at reports whether the lease is held at an instant.
func (l *hold) at(t time.Duration) bool { return !l.over && l.Until > t }

// keyFacts is what was seen of a key.
type keyFacts struct {
	any, written int64         // highest tokens held so far
	tokens       map[int64]int // of exclusive leases
	open         []*hold       // held when last looked at
}

// tokenOf says whose a token is.
type tokenOf struct {
	client int
	token  int64
}

// judge reads a history.
type judge struct {
	now    time.Duration
	keys   map[string]*keyFacts
	leases map[int]*hold
	tops   map[string]Event // by resource, the write with the highest token
	had    map[tokenOf]bool
	told   map[[2]int]bool // pairs of leases that were reported
	all    []*hold         // that were ever held
	found  []Violation
}

func (j *judge) violate(e Event, check, format string, args ...any) {
	v := Violation{Check: check, At: e.At, Key: e.Key, Text: fmt.Sprintf(format, args...)}
	if v.Key == "" {
		v.Key = e.Resource
	}
	j.found = append(j.found, v)
}

func (j *judge) event(e Event) {
	switch e.What {
	case Asks:
		k := j.key(e.Key)
		if j.leases[e.Lease] != nil {
			j.violate(e, "history", "lease %d is asked for twice", e.Lease)
		}
		j.leases[e.Lease] = &hold{Event: e, aboveAny: k.any, aboveWritten: k.written}
	case Acquires:
		j.acquires(e)
	case Renews, Reckons:
		j.renews(e)
	case Loses, Releases, Fails:
		if l := j.leases[e.Lease]; l != nil {
			l.over = true
		}
	case Dies:
		for _, l := range j.all {
			l.over = l.over || l.Client == e.Client
		}
	case Takes:
		j.takes(e)
	}
}

func (j *judge) key(name string) *keyFacts {
	if j.keys[name] == nil {
		j.keys[name] = &keyFacts{tokens: map[int64]int{}}
	}
	return j.keys[name]
}

func (j *judge) acquires(e Event) {
	l, k := j.leases[e.Lease], j.key(e.Key)
	switch {
	case l == nil:
		l = &hold{}
		j.leases[e.Lease] = l
	case l.held || l.Key != e.Key || l.Client != e.Client:
		j.violate(e, "history", "lease %d is acquired twice, or by another client or for another key than it was asked for", e.Lease)
	}
	l.Event, l.held, l.over = e, true, false
	j.all = append(j.all, l)
	j.had[tokenOf{e.Client, e.Token}] = true
	if e.Token != 0 {
		j.compare(l, k, e)
	}
	k.open = append(k.open, l)
	j.holds(l, e)
}

// compare compares the token of a lease with those before it.
func (j *judge) compare(l *hold, k *keyFacts, e Event) {
	above := l.aboveWritten
	if !l.Shared {
		above = l.aboveAny
		if other, taken := k.tokens[e.Token]; taken {
			j.violate(e, "unique", "leases %d and %d have the token %d", other, l.Lease, l.Token)
		}
		k.tokens[e.Token] = l.Lease
		k.written = max(k.written, e.Token)
	}
	if e.Token <= above {
		j.violate(e, "order", "lease %d of client %d has token %d; %d was held before it was asked for", l.Lease, l.Client, l.Token, above)
	}
	k.any = max(k.any, e.Token)
}

func (j *judge) renews(e Event) {
	l := j.leases[e.Lease]
	switch {
	case l == nil || !l.held:
		j.violate(e, "history", "lease %d %s and was never acquired", e.Lease, e.What)
		return
	case !l.at(e.At):
		if e.What == Renews {
			j.violate(e, "revival", "lease %d of client %d is renewed after it was over", l.Lease, l.Client)
		}
		l.over = false
	}
	if e.Token != l.Token {
		j.violate(e, "history", "lease %d has token %d, and token %d before", l.Lease, e.Token, l.Token)
	}
	l.Until = e.Until
	j.holds(l, e)
}

// holds compares a lease that is held from now, or for longer, with the others.
func (j *judge) holds(l *hold, e Event) {
	if l.Until == 0 {
		l.Until = math.MaxInt64
	}
	k := j.key(l.Key)
	open := k.open[:0]
	for _, o := range k.open {
		if o == l || o.at(e.At) {
			open = append(open, o)
		}
		pair := [2]int{min(o.Lease, l.Lease), max(o.Lease, l.Lease)}
		if o == l || !o.at(e.At) || !l.at(e.At) || o.Shared && l.Shared || j.told[pair] {
			continue
		}
		j.told[pair] = true
		check := "exclusion"
		if o.Shared || l.Shared {
			check = "sharing"
		}
		j.violate(e, check, "lease %d of client %d and lease %d of client %d both hold %s, until %s and %s",
			o.Lease, o.Client, l.Lease, l.Client, l.Key, end(o.Until), end(l.Until))
	}
	k.open = open
}

func end(t time.Duration) string {
	if t == math.MaxInt64 {
		return "they say otherwise"
	}
	return t.String()
}

func (j *judge) takes(e Event) {
	if !j.had[tokenOf{e.Client, e.Token}] {
		j.violate(e, "forged", "%s took a write of client %d under token %d, which it never had", e.Resource, e.Client, e.Token)
	}
	top, seen := j.tops[e.Resource]
	if seen && e.Token < top.Token {
		j.violate(e, "stale", "%s took the write of client %d, token %d, after that of client %d, token %d",
			e.Resource, e.Client, e.Token, top.Client, top.Token)
	}
	if !seen || e.Token > top.Token {
		j.tops[e.Resource] = e
	}
}
