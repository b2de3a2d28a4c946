package kubestore_test

import (
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/kubestore"
)

// answers waits until a server that was started again answers this client.
func answers(t *testing.T, s *kubestore.Store) {
	t.Helper()
	await(t, "the server to answer again", func() bool {
		_, err := s.Inspect(t.Context(), ask("k", owner()))
		return err == nil
	})
}

func TestR29RestartForgetsNothing(t *testing.T) {
	s, node := fresh(t)
	a := ask("k", owner())
	a.Floor = mustAcquire(t, s, a).Token
	node.Stop()
	node.Etcd.Restart()
	_, err := s.Extend(t.Context(), a)
	if outcome := quorum.OutcomeOf(err); outcome != quorum.OutcomeUndelivered && outcome != quorum.OutcomeUnknown {
		t.Errorf("without its API server: %v", err)
	}
	node.Restart()
	answers(t, s)
	if g := mustExtend(t, s, a); g.Token != a.Floor {
		t.Errorf("after a restart the vote has token %d, want %d", g.Token, a.Floor)
	}
	contended(t, s, ask("k", owner()))
	mustRelease(t, s, a)
	if next := mustAcquire(t, s, ask("k", owner())); next.Token != a.Floor+1 {
		t.Errorf("after a restart the next token is %d, want %d", next.Token, a.Floor+1)
	}
}

func TestR46EmptiedServerIsKeptOut(t *testing.T) {
	s, node := fresh(t)
	x := newTimes(s)
	token := mustAcquire(t, s, ask("k", owner())).Token
	before, err := s.ReadStep(t.Context(), ask("", quorum.Owner{}))
	if err != nil {
		t.Fatal(err)
	}
	node.Stop()
	node.Etcd.RestartFrom("")
	node.Restart()
	answers(t, s)
	leave(t, s, x, before.Step)
	if g := mustAcquire(t, s, ask("k", owner())); g.Token <= token {
		t.Errorf("token %d after the disk was lost, %d before", g.Token, token)
	}
}

// leave finds a store in quarantine, and ends it with the step that others
// remember.
func leave(t *testing.T, s *kubestore.Store, x *times, remembered int64) {
	t.Helper()
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	x.Advance(maxTTL)
	step, err := s.ReadStep(t.Context(), ask("", quorum.Owner{}))
	if err != nil || !step.Over {
		t.Fatalf("%v later the record is %+v %v", maxTTL, step, err)
	}
	raise := quorum.Raise{Quarantine: step.Quarantine, Step: max(remembered, step.Step)}
	if err := s.Raise(t.Context(), ask("", quorum.Owner{}), raise); err != nil {
		t.Fatal(err)
	}
}

// TestRestoredBackupIsQuarantined puts an earlier state in the place of the
// server's, under a client that has seen what came after it.
func TestRestoredBackupIsQuarantined(t *testing.T) {
	s, node := fresh(t)
	x := newTimes(s)
	other := open(t, node.Kubeconfig(node.Admin)) // which sees nothing of what is lost
	newTimes(other)
	cycle := func() int64 {
		a := ask("k", owner())
		defer mustRelease(t, s, a)
		return mustAcquire(t, s, a).Token
	}
	cycle()
	node.Stop()
	disk := node.Etcd.CopyDisk()
	node.Restart()
	answers(t, s)
	var token int64
	for range 3 {
		token = cycle()
	}
	node.Stop()
	node.Etcd.RestartFrom(disk)
	node.Restart()
	answers(t, other)
	leave(t, s, x, 0)
	if g := mustAcquire(t, other, ask("k", owner())); g.Token <= token {
		t.Errorf("token %d after the backup was restored, %d before", g.Token, token)
	}
	_, err := s.Acquire(t.Context(), ask("another", owner())) // seen once, answered once
	wantOutcome(t, err, quorum.OutcomeGranted)
}
