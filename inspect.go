package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Verdict is what the stores together say of a key.
type Verdict uint8

// The verdicts.
const (
	VerdictUnknown Verdict = iota // too few stores answered, or no owner and no absence makes a quorum
	VerdictFree                   // stores that could not be part of a holder's quorum say that nobody holds it
	VerdictHeld                   // one owner, or readers, hold a quorum of votes
)

// String names the verdict in lower case.
func (v Verdict) String() string { return [...]string{"unknown", "free", "held"}[v] }

// Status is what the stores say of a key. It is old when it arrives: never
// decide by it whether to enter, that is what Acquire is for.
type Status struct {
	Key     string
	Verdict Verdict
	Owner   string        // digest of the holder, when held by one
	Stores  []StoreStatus // one for each server, composites unfolded
}

// StoreStatus is one store's part.
type StoreStatus struct {
	Name  string
	State State
	Err   error // why it says nothing; State is then empty
}

// Inspect reads who holds a key, from every store at once. It returns an error
// only for an invalid key; stores that do not answer are in the Status.
func (l *Locker) Inspect(ctx context.Context, key string) (*Status, error) {
	err := checkKey(key, l.set.Limits().MaxKey)
	if err == nil {
		err = given(ctx)
	}
	if err != nil {
		return nil, &OpError{Op: "inspect", Key: key, Need: l.set.rule.Need(), reasons: []error{err}}
	}
	leaves := l.set.leaves()
	states := each(ctx, callLimit(l.def.ttl, 1), leaves, func(ctx context.Context, m Store) (State, error) {
		who, ok := As[Inspector](m)
		if !ok {
			return State{}, fmt.Errorf("%w: store %q cannot be inspected", ErrUnsupported, m.Name())
		}
		return who.Inspect(ctx, l.request(key))
	})
	s := &Status{Key: key, Stores: make([]StoreStatus, len(leaves))}
	for i, m := range leaves {
		s.Stores[i] = StoreStatus{Name: m.Name(), State: states[i].value, Err: states[i].err}
	}
	next := 0
	sight := look(l.set, s.Stores, &next)
	switch {
	case sight.free:
		s.Verdict = VerdictFree
	case sight.owner != "":
		s.Verdict, s.Owner = VerdictHeld, sight.owner
	}
	return s, nil
}

// reply is what one store answered.
type reply[T any] struct {
	value T
	err   error
	took  time.Duration
}

// each puts a question to every store at once, and returns when all have
// answered or the limit is over, whether or not a store heeds it. A panic of a
// store is its answer.
func each[T any](
	ctx context.Context, limit time.Duration, stores []Store, ask func(context.Context, Store) (T, error),
) []reply[T] {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type numbered struct {
		i int
		reply[T]
	}
	answers := make(chan numbered, len(stores)) // nobody is kept who answers too late
	for i, m := range stores {
		go func() {
			begin := time.Now()
			r := reply[T]{err: fmt.Errorf("store %q panicked", m.Name())}
			defer func() {
				if p := recover(); p != nil {
					r.err = fmt.Errorf("store %q panicked: %v", m.Name(), p)
				}
				r.took = time.Since(begin)
				answers <- numbered{i, r}
			}()
			r.value, r.err = ask(ctx, m)
			if o := OutcomeOf(r.err); (o == OutcomeUnknown || o == OutcomeUndelivered) && ctx.Err() != nil && outer.Err() == nil {
				r.err = &late{limit: limit, err: r.err}
			}
		}()
	}
	out := make([]reply[T], len(stores))
	for i := range out {
		out[i].err = errPending
	}
	for range stores {
		select {
		case a := <-answers:
			out[a.i] = a.reply
		case <-ctx.Done():
			// What came in the same instant counts.
			for {
				select {
				case a := <-answers:
					out[a.i] = a.reply
					continue
				default:
				}
				if outer.Err() == nil {
					for i := range out {
						if out[i].err == errPending {
							out[i].err = &late{limit: limit}
						}
					}
				}
				return out
			}
		}
	}
	return out
}

// request is one that reads: it belongs to no owner.
func (l *Locker) request(key string) Request {
	return Request{Key: key, MaxTTL: l.def.maxTTL, Set: l.print, Limit: callLimit(l.def.ttl, 1)}
}

// view is what one store, or a composite of them, says of a key.
type view struct {
	free  bool
	owner string
}

// look reads a tree of stores against its strategies, taking the leaves' states
// in order.
func look(set *CombinedStore, states []StoreStatus, next *int) view {
	var free core.Set
	votes := map[string]core.Set{}
	for i, m := range set.members {
		var v view
		if inner, ok := As[*CombinedStore](m); ok {
			v = look(inner, states, next)
		} else {
			v = lookAt(states[*next])
			*next++
		}
		if v.free {
			free = free.With(i)
		}
		if v.owner != "" {
			votes[v.owner] = votes[v.owner].With(i)
		}
	}
	out := view{free: set.rule.Met(free)}
	for owner, set0 := range votes {
		if set.rule.Met(set0) {
			out.owner = owner // at most one: quorums intersect
		}
	}
	return out
}

// readers is the owner of votes that are shared.
const readers = "readers"

func lookAt(s StoreStatus) view {
	switch {
	case s.Err != nil || s.State.Quarantine && len(s.State.Holders) == 0:
		return view{} // it does not know
	case len(s.State.Holders) == 0:
		return view{free: true}
	case s.State.Holders[0].Mode == ModeShared:
		return view{owner: readers}
	}
	return view{owner: s.State.Holders[0].Owner}
}

// Check asks every store whether it answers and who it is. It returns an error
// that matches [ErrMismatch] when a store serves another set, strategy or
// MaxTTL, [ErrNoQuorum] when those that answer and vote do not satisfy the
// strategy, and [ErrInvalidOption] when two members are one server, which it
// names. It tells again, as [EventAdvice], which failure domains decide alone,
// see [AllowDomain].
func (l *Locker) Check(ctx context.Context) error {
	if err := given(ctx); err != nil {
		return &OpError{Op: "check", Need: l.set.rule.Need(), reasons: []error{err}}
	}
	for _, r := range l.set.allRisks() {
		l.reports.tell(Event{Kind: EventAdvice, Err: errors.New(r.text)})
	}
	leaves := l.set.leaves()
	answers := each(ctx, callLimit(l.def.ttl, 1), leaves, func(ctx context.Context, m Store) (core.Answer, error) {
		a, _, err := readStep(ctx, m, l.request(""))
		return a, err
	})
	votes := make([]Vote, len(leaves))
	servers := make([]string, len(leaves))
	for i, m := range leaves {
		a := answers[i].value
		votes[i] = Vote{Store: m.Name(), Outcome: OutcomeOf(answers[i].err), Err: answers[i].err, Took: answers[i].took}
		servers[i] = a.Server
		if a.Step.Quarantine != "" {
			refused := &RefusedError{Outcome: OutcomeQuarantined, Left: a.Left}
			votes[i].Outcome, votes[i].Err = OutcomeQuarantined, refused
		}
	}
	for i := range leaves {
		for j := range i {
			if servers[i] != "" && servers[i] == servers[j] {
				votes[i].Outcome = OutcomeTwin
				votes[i].Err = &RefusedError{Outcome: OutcomeTwin, Reason: twinError(leaves[i].Name(), leaves[j].Name()).Error()}
			}
		}
	}
	e := &OpError{Op: "check", Need: l.set.rule.Need(), Votes: votes}
	if slices.ContainsFunc(votes, func(v Vote) bool { return v.Outcome == OutcomeMismatch }) {
		e.reasons = append(e.reasons, ErrMismatch)
	}
	if !l.set.satisfied(func(i int, _ Store) bool {
		return votes[i].Outcome == OutcomeGranted || votes[i].Outcome == OutcomeMismatch // which has its own word
	}) {
		e.reasons = append(e.reasons, ErrNoQuorum)
	}
	if slices.ContainsFunc(votes, func(v Vote) bool { return v.Outcome == OutcomeTwin }) {
		e.reasons = append(e.reasons, errTwins)
	}
	if len(e.reasons) == 0 {
		return nil
	}
	return e
}
