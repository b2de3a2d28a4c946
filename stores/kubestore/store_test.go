package kubestore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/kubestore"
)

// leaseOf reads the Lease of a name, as kubectl would.
func leaseOf(t *testing.T, c rest.Interface, name string) *coordination.Lease {
	t.Helper()
	l := &coordination.Lease{}
	name = kubestore.LeaseName("quorum", name)
	if err := c.Get().Namespace(namespace).Resource("leases").Name(name).Do(t.Context()).Into(l); err != nil {
		t.Fatal(err)
	}
	return l
}

func put(t *testing.T, c rest.Interface, l *coordination.Lease) {
	t.Helper()
	if err := c.Put().Namespace(namespace).Resource("leases").Name(l.Name).Body(l).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// TestWhatPeopleSee: the spec shows who holds a name and no secret, and a name
// is freed by hand without losing its counter.
func TestWhatPeopleSee(t *testing.T) {
	node := testserver.Leases(t)
	c := client(t, node, nil)
	s := store(t, c)
	declareNew(t, s)
	name := "Größe/k.1 {x}"
	a := ask(name, owner())
	token := mustAcquire(t, s, a).Token
	l := leaseOf(t, c, name)
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != "tester" || *l.Spec.LeaseDurationSeconds != 8 || l.Spec.AcquireTime == nil {
		t.Errorf("the spec of a Lease that is held: %+v", l.Spec)
	}
	if l.Annotations["quorumlock.github.io/name"] != name {
		t.Errorf("the Lease says that it is of %q", l.Annotations["quorumlock.github.io/name"])
	}
	state, err := s.Inspect(t.Context(), a)
	if err != nil || len(state.Holders) != 1 || state.Holders[0].Owner != a.Owner.Digest() || state.Holders[0].Label != "tester" {
		t.Fatalf("R61: inspect: %+v %v", state, err)
	}
	if text, _ := json.Marshal(state); strings.Contains(string(text), a.Owner.Hex()) {
		t.Error("Inspect shows the owner's secret")
	}

	delete(l.Annotations, "quorumlock.github.io/votes")
	put(t, c, l)
	_, err = s.Extend(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeNotHeld)
	b := ask(name, owner())
	if g := mustAcquire(t, s, b); g.Token != token+1 {
		t.Errorf("token %d after %d and a vote that was removed by hand", g.Token, token)
	}
	mustRelease(t, s, b)
	if l = leaseOf(t, c, name); l.Spec.HolderIdentity != nil {
		t.Errorf("the spec of a Lease that is free: %+v", l.Spec)
	}

	l.Annotations["quorumlock.github.io/name"] = "another"
	put(t, c, l)
	_, err = s.Acquire(t.Context(), b)
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !strings.Contains(err.Error(), "another name") {
		t.Errorf("R59: a Lease of another name: %v", err)
	}
}

// TestRoundTrips counts the requests of a verb; two of a read are at once.
func TestRoundTrips(t *testing.T) {
	node := testserver.Leases(t)
	requests := &counter{}
	s := store(t, client(t, node, func(rt http.RoundTripper) http.RoundTripper { requests.RoundTripper = rt; return requests }))
	s.SetWall(func() time.Time { return time.Unix(1_764_000_060, 0) }) // a move of the step costs one
	declareNew(t, s)
	cost := func(what string, want int64, f func()) {
		t.Helper()
		before := requests.n.Load()
		f()
		if got := requests.n.Load() - before; got != want {
			t.Errorf("%s takes %d requests, want %d", what, got, want)
		}
	}
	for fresh := range 2 {
		a := ask("k", owner())
		var g quorum.Grant
		first := int64(2 * (1 - fresh)) // it is made, and the record read after it
		// Name and record, the write, the record.
		cost("Acquire", 4+first, func() { g = mustAcquire(t, s, a) })
		a.Floor = g.Token
		cost("Extend", 2, func() { mustExtend(t, s, a) })
		a.Floor = g.Token + 1
		cost("Extend that raises", 2, func() { mustExtend(t, s, a) })
		cost("refusal", 2, func() { contended(t, s, ask("k", owner())) })
		cost("Release", 1, func() { mustRelease(t, s, a) })
	}
}

func TestOneNamespaceUnderTwoNamesIsSeen(t *testing.T) {
	node := testserver.Leases(t)
	var members []quorum.Store
	for _, name := range []string{"a", "b"} {
		members = append(members, open(t, node.Kubeconfig(node.Admin), "name", name, "prefix", name))
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "same server") {
		t.Errorf("R42: Check = %v, want an error that names the two", err)
	}
}

func TestNumbersAreTheProtocols(t *testing.T) {
	if kubestore.StepPeriod != core.StepPeriod || kubestore.StepBits != core.StepBits || kubestore.StepMost != 1<<14 {
		t.Errorf("a step of %v and %d bits moved by %d at most", kubestore.StepPeriod, kubestore.StepBits, kubestore.StepMost)
	}
}

// TestSightingsAreDropped: what a client remembers of names is bounded by those
// that are in use.
func TestSightingsAreDropped(t *testing.T) {
	s := open(t, kubeconfig(t))
	x := newTimes(s)
	for n := range 2000 {
		s.See(fmt.Sprint("name ", n), time.Second)
		x.Advance(time.Second)
	}
	if n := s.Sightings(); n < 60 || n > 256 {
		t.Errorf("%d Leases are remembered, want those of the last minute and no more than are kept at once", n)
	}
}
