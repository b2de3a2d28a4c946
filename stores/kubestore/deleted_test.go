package kubestore_test

import (
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/kubestore"
)

// TestR46LeasesDeletedWhileHeld: kubectl delete of the name's Lease ends the
// holder's vote and nothing else; of the record's begins a quarantine, in which
// the holder goes on.
func TestR46LeasesDeletedWhileHeld(t *testing.T) {
	s, node := fresh(t)
	admin := client(t, node, nil)
	remove := func(name string) {
		t.Helper()
		if err := admin.Delete().Namespace(namespace).Resource("leases").Name(name).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	a, b := ask("k", owner()), ask("other", owner())
	a.Floor, b.Floor = mustAcquire(t, s, a).Token, mustAcquire(t, s, b).Token

	remove(kubestore.LeaseName("quorum", "k"))
	_, err := s.Extend(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeNotHeld)

	other := open(t, node.Kubeconfig(node.Admin))
	next := ask("k", owner())
	mustAcquire(t, other, next) // made again, under a client that remembers the first
	_, err = s.Extend(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeNotHeld)
	contended(t, s, ask("k", owner()))

	remove(kubestore.SetName("quorum"))
	mustExtend(t, s, b)
	_, err = s.Acquire(t.Context(), ask("new", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	_, err = other.Acquire(t.Context(), ask("new", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	mustExtend(t, s, b)
	mustRelease(t, s, b)
}
