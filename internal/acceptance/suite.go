//go:build unix

package acceptance

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// Suite is the whole of what a set must show.
type Suite struct {
	// New makes the members of a set, on servers that are empty.
	New func(t *testing.T) []Member
	// TTL is a short one that all members take; quarantines last twice as long.
	TTL time.Duration
}

// Run runs the suite, each part on a set of its own.
func (s Suite) Run(t *testing.T) {
	for _, part := range []struct {
		name string
		run  func(t *testing.T, s *Set)
	}{
		{"F001 tokens grow over overlapping quorums", tokensGrow},
		{"R58 fresh names need no confirm", freshNamesStartAlike},
		{"R37 a member that is away is done without", doneWithout},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, Combine(t, s.New(t))) })
	}
	t.Run("R46 a member that forgot lets no rival in", func(t *testing.T) { s.noRival(t) })
	t.Run("R29 tokens grow when members forget in turn", func(t *testing.T) { s.forgetInTurn(t) })
	t.Run("R29 all forget and serve again", func(t *testing.T) { s.allForget(t) })
}

func (s Suite) short() []quorum.Option {
	return []quorum.Option{quorum.TTL(s.TTL), quorum.MaxTTL(2 * s.TTL), quorum.NoRenew(), quorum.CallLimit(s.TTL / 2)}
}

// steady are settings under which nothing runs out while a slow machine works.
var steady = []quorum.Option{quorum.TTL(time.Minute), quorum.MaxTTL(time.Minute), quorum.CallLimit(15 * time.Second)}

// tokensGrow lets one member's counter run ahead and then draws quorums.
func tokensGrow(t *testing.T, s *Set) {
	l, n := s.Fresh(steady...), len(s.Members)
	few := (n - 1) / 2
	s.Cut(others(n, 0)...)
	for range 20 {
		if lease, err := l.TryAcquire(t.Context(), "job", quorum.AskOrder(quorum.AllAtOnce)); err == nil {
			t.Fatalf("one member of %d was enough: %v", n, lease.Votes())
		}
	}
	seed := Seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	last := int64(0)
	for round := range 40 {
		gone := random.Perm(n)[:few]
		s.Cut(gone...)
		token := Cycle(t, l, "job")
		if token <= last {
			t.Fatalf("round %d without members %v: token %d after %d (QUORUM_SEED=%d)", round, gone, token, last, seed)
		}
		last = token
	}
}

func others(n, but int) []int {
	var all []int
	for i := range n {
		if i != but {
			all = append(all, i)
		}
	}
	return all
}

// freshNamesStartAlike: stores of all kinds start a name from the same step, so
// that no token has to be written back.
func freshNamesStartAlike(t *testing.T, s *Set) {
	l := s.Fresh(steady...)
	Cycle(t, l, "first")
	const names = 30
	last := Cycle(t, l, "name-0")
	for i := range names {
		Cycle(t, l, "name-"+strconv.Itoa(i+1))
	}
	confirms := 0
	for _, sp := range s.Spoil {
		confirms += len(sp.Log(storetest.Verbs(storetest.VerbExtend)))
	}
	// A step may move between two members' answers, once in five minutes.
	if confirms > len(s.Members) {
		t.Errorf("%d write-backs for %d fresh names: their counters should start alike", confirms, names)
	}
	if token := Cycle(t, l, "name-0"); token <= last {
		t.Errorf("token %d after %d", token, last)
	}
}

// doneWithout cuts each member off in turn while a lock is held and renewed.
func doneWithout(t *testing.T, s *Set) {
	l := s.Fresh(steady...)
	lease := Acquire(t, l, "job")
	for i := range s.Members {
		s.Cut()
		Poll(t, time.Minute, "a vote of every member", func() bool {
			// The store may have a vote before the holder has heard of it, and so
			// does not count on it yet.
			return lease.Extend(t.Context(), time.Minute) == nil && s.Holders(l, "job") == len(s.Members) &&
				!slices.ContainsFunc(lease.Votes(), func(v quorum.Vote) bool { return v.Outcome != quorum.OutcomeGranted })
		})
		s.Cut(i)
		if err := lease.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("extend without %s: %v", s.Members[i].Store.Name(), err)
		}
		Held(t, l, "job", "without "+s.Members[i].Store.Name())
	}
	s.Cut()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	Poll(t, time.Minute, "nothing left behind", func() bool { return s.Holders(l, "job") == 0 })
}

// noRival has the holder stand on a bare quorum. One member of it comes back
// without what it acknowledged, and those that were away come up: may a rival
// have them?
func (s Suite) noRival(t *testing.T) {
	for i, m := range Combine(t, s.New(t)).Members {
		if m.Forget == nil {
			continue
		}
		t.Run(m.Store.Name(), func(t *testing.T) {
			set := Combine(t, s.New(t))
			n := len(set.Members)
			l := set.Fresh(steady...)
			away := others(n, i)[:(n-1)/2]
			set.Cut(away...)
			holder := Acquire(t, l, "job")
			Poll(t, time.Minute, "word from those that are away", func() bool { // a request to them may still be on its way
				return !slices.ContainsFunc(away, func(j int) bool { return holder.Votes()[j].Outcome != quorum.OutcomeUndelivered })
			})
			set.Members[i].Forget()
			rest := others(n, i)
			rest = rest[len(away):]
			set.Cut(rest...) // the rival does not even see those that remember
			rival, err := set.Locker(steady...).TryAcquire(t.Context(), "job")
			if rival != nil || !errors.Is(err, quorum.ErrNoQuorum) {
				t.Errorf("a rival beside %v, which is held: %v, %v", holder.Token(), rival, err)
			}
			if holder.Err() != nil {
				t.Errorf("the holder: %v", holder.Err())
			}
			set.Cut()
		})
	}
}

// forgetInTurn: each member loses everything, and leaves quarantine by what the
// others, of whatever kind, remember.
func (s Suite) forgetInTurn(t *testing.T) {
	set := Combine(t, s.New(t))
	l := set.Fresh(s.short()...)
	last := int64(0)
	for i, m := range set.Members {
		token := Cycle(t, l, "job")
		if token <= last {
			t.Fatalf("round %d: token %d after %d", i, token, last)
		}
		last = token
		if m.Forget == nil {
			continue
		}
		m.Forget()
		if token = Cycle(t, l, "job"); token <= last {
			t.Fatalf("%s forgot: token %d after %d", m.Store.Name(), token, last)
		}
		last = token
		Poll(t, time.Minute, m.Store.Name()+" to leave its quarantine", func() bool { return set.votes(l) })
	}
	if token := Cycle(t, l, "job"); token <= last {
		t.Errorf("token %d after %d", token, last)
	}
}

func (s Suite) allForget(t *testing.T) {
	set := Combine(t, s.New(t))
	l := set.Fresh(s.short()...)
	before := Cycle(t, l, "job")
	forgot := 0
	for _, m := range set.Members {
		if m.Forget != nil {
			m.Forget()
			forgot++
		}
	}
	if _, err := l.TryAcquire(t.Context(), "job"); forgot > len(set.Members)/2 && !errors.Is(err, quorum.ErrNoQuorum) {
		t.Errorf("right after %d of %d forgot: %v, want ErrNoQuorum", forgot, len(set.Members), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	lease, err := l.Acquire(ctx, "job")
	if err != nil {
		t.Fatal(err)
	}
	if lease.Token() <= before {
		t.Errorf("token %d after %d", lease.Token(), before)
	}
	if warned := set.Seen(quorum.EventRefilled); len(warned) == 0 {
		t.Error("nothing was told of a member that left its quarantine")
	}
	_ = lease.Release(t.Context())
}

// Seed is random, or what QUORUM_SEED says, to replay a run.
func Seed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("QUORUM_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return rand.Uint64()
}
