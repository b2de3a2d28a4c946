package etcdstore_test

import (
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
)

// What happens between a read and its transaction is seen by a compare. Each
// case shows for what its compare is, by what goes wrong without it.
func TestEveryCompareIsNeeded(t *testing.T) {
	node, _, s := fresh(t)
	w, c := wired(t, node)
	late := store(t, c)
	shared := func(r quorum.Request) quorum.Request { r.Mode = quorum.ModeShared; return r }
	for name, tc := range map[string]struct {
		slow    quorum.Request
		between func(s quorum.Store, slow quorum.Request)
		compare string // beneath the name's folder
		id      bool   // the owner's ID follows
		want    quorum.Outcome
	}{
		"a writer came in before a writer": {
			slow: ask("k", owner()), compare: "vote", want: quorum.OutcomeContended,
			between: func(s quorum.Store, _ quorum.Request) { mustAcquire(t, s, ask("k", owner())) },
		},
		"a reader came in before a writer": {
			slow: ask("k", owner()), compare: "read/", want: quorum.OutcomeContended,
			between: func(s quorum.Store, _ quorum.Request) { mustAcquire(t, s, shared(ask("k", owner()))) },
		},
		"a writer came in before a reader": {
			slow: shared(ask("k", owner())), compare: "vote", want: quorum.OutcomeContended,
			between: func(s quorum.Store, _ quorum.Request) { mustAcquire(t, s, ask("k", owner())) },
		},
		"the owner was entombed before its acquire arrived": {
			slow: ask("k", owner()), compare: "tomb/", id: true, want: quorum.OutcomeContended,
			between: func(s quorum.Store, slow quorum.Request) {
				slow.Entomb = true
				wantOutcome(t, s.Release(t.Context(), slow), quorum.OutcomeNotHeld)
			},
		},
	} {
		for _, mutant := range []bool{false, true} {
			if err := second(c.Delete(t.Context(), "quorum/name/k/", clientv3.WithPrefix())); err != nil {
				t.Fatal(err)
			}
			before := ask("k", owner()) // so that the counter is there, and a reader leaves it as it is
			mustAcquire(t, s, before)
			mustRelease(t, s, before)
			reader := shared(ask("k", owner()))
			mustAcquire(t, s, reader)
			mustRelease(t, s, reader)
			w.once(func(txn *etcdserverpb.TxnRequest) {
				tc.between(s, tc.slow)
				if key := "quorum/name/k/" + tc.compare; mutant {
					if tc.id {
						key += tc.slow.Owner.Hex()
					}
					without(txn, key)
					without(txn, "quorum/name/k/count") // a second guard of the same
				}
			})
			_, err := late.Acquire(t.Context(), tc.slow)
			want := tc.want
			if mutant {
				want = quorum.OutcomeGranted
			}
			if got := quorum.OutcomeOf(err); got != want {
				t.Errorf("%s, mutant %v: %v (%v), want %v", name, mutant, got, err, want)
			}
		}
	}
}

// A release in the middle of a renewal neither fails nor leaves the vote.
func TestF101ReleaseDuringARenewal(t *testing.T) {
	_, c, s := fresh(t)
	for range 200 {
		r := ask("k", owner())
		r.Floor = mustAcquire(t, s, r).Token + 3
		done := make(chan error)
		go func() {
			_, err := s.Extend(t.Context(), r)
			done <- err
		}()
		mustRelease(t, s, r)
		if err := <-done; err != nil && quorum.OutcomeOf(err) != quorum.OutcomeNotHeld {
			t.Fatal(err)
		}
		if exists(t, c, "quorum/name/k/vote") {
			t.Fatal("the vote is there after its release")
		}
	}
}

// Two members that are one cluster, whatever their prefixes, are found out.
func TestF107OneClusterUnderTwoNames(t *testing.T) {
	node, c, s := fresh(t)
	other := named(t, "b", c, "elsewhere")
	declareNew(t, other)
	third := named(t, "c", client(t, node), "third")
	declareNew(t, third)
	set, err := quorum.Combine(quorum.Consensus(), s, other, third)
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(set)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(t.Context()) }()
	if err := l.Check(t.Context()); err == nil {
		t.Error("Check finds nothing wrong with three members that are one cluster")
	}
}

// Every read is linearizable: no member that lags behind decides.
func TestF190NoReadIsSerializable(t *testing.T) {
	node, _, _ := fresh(t)
	w, c := wired(t, node)
	s := store(t, c)
	r := ask("k", owner())
	mustAcquire(t, s, r)
	mustExtend(t, s, r)
	if _, err := s.Inspect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, s, r)
	if w.lax.Load() {
		t.Error("a read was serializable")
	}
}
