package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/etcdstore"
)

// slack is what a loaded machine may add to a time that a server keeps.
const slack = 30 * time.Second

func TestR46RestartOfTheServerForgetsNothing(t *testing.T) {
	node, _, s := fresh(t)
	r := ask("k", owner())
	g := mustAcquire(t, s, r)
	node.Restart()
	var again quorum.Grant
	await(t, slack, "the server to be reached again", func() (ok bool) {
		var err error
		again, err = s.Extend(t.Context(), r)
		if out := quorum.OutcomeOf(err); err != nil && out != quorum.OutcomeUndelivered && out != quorum.OutcomeUnknown {
			t.Fatal(err)
		}
		return err == nil
	})
	if again.Token != g.Token || again.Server != g.Server {
		t.Errorf("after a restart %+v, before it %+v", again, g)
	}
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeContended)
	mustRelease(t, s, r)
	if next := mustAcquire(t, s, ask("k", owner())); next.Token <= g.Token {
		t.Errorf("token %d after %d", next.Token, g.Token)
	}
}

func TestKilledServerIsUndeliveredAtOnce(t *testing.T) {
	node, _, s := fresh(t)
	r := ask("k", owner())
	mustAcquire(t, s, r)
	node.Stop()
	await(t, slack, "the client to see it", func() bool {
		_, err := s.Acquire(t.Context(), ask("k", owner()))
		return quorum.OutcomeOf(err) == quorum.OutcomeUndelivered
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.Extend(ctx, r)
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	wantOutcome(t, s.Release(ctx, r), quorum.OutcomeUndelivered)
	if ctx.Err() != nil {
		t.Error("the calls waited for a server that is down")
	}
}

func TestStalledServerIsLeftAtTheLimit(t *testing.T) {
	node, _, s := fresh(t)
	r := ask("k", owner())
	mustAcquire(t, s, r)
	node.Stall()
	r.Limit = 500 * time.Millisecond
	await(t, slack, "the stall to begin, and a read, which writes nothing, to be given up", func() bool {
		_, err := s.Acquire(t.Context(), ask2(r))
		return quorum.OutcomeOf(err) == quorum.OutcomeUndelivered && errors.Is(err, context.DeadlineExceeded)
	})
	_, err := s.Extend(t.Context(), r)
	wantOutcome(t, err, quorum.OutcomeUnknown)
	node.Resume()
	r.Limit, r.Entomb = 5*time.Second, true
	await(t, slack, "the release", func() bool {
		err := s.Release(t.Context(), r)
		return err == nil || quorum.OutcomeOf(err) == quorum.OutcomeNotHeld
	})
	mustAcquire(t, s, ask2(r))
}

// ask2 is another owner's request.
func ask2(r quorum.Request) quorum.Request {
	r.Owner, r.Entomb = owner(), false
	return r
}

// A vote's lease that is revoked early, as an operator can, or that ends, is a
// lost vote, and seen at once.
func TestRevokedLeaseIsALostVote(t *testing.T) {
	_, c, s := fresh(t)
	r := ask("k", owner())
	mustAcquire(t, s, r)
	reply, err := c.Get(t.Context(), "quorum/name/k/vote")
	if err != nil || reply.Count != 1 {
		t.Fatal(reply, err)
	}
	if _, err := c.Revoke(t.Context(), clientv3.LeaseID(reply.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Extend(t.Context(), r)
	wantOutcome(t, err, quorum.OutcomeNotHeld)
	wantOutcome(t, s.Release(t.Context(), r), quorum.OutcomeNotHeld)
	if g := mustAcquire(t, s, ask2(r)); g.Previous != quorum.PreviousExpired {
		t.Errorf("the last holder %v, want expired", g.Previous)
	}
}

// The vote is removed, but its lease lives on as another's: nobody else's key
// may hang on it.
func TestSpareLeaseBelongsToOneOwner(t *testing.T) {
	_, c, s := fresh(t)
	leases := map[int64]string{}
	for range 20 {
		r := ask("k", owner())
		one := ask2(r)
		one.Key = "l"
		mustAcquire(t, s, r)
		mustAcquire(t, s, one)
		clear(leases)
		for _, key := range []string{"quorum/name/k/vote", "quorum/name/l/vote"} {
			reply, err := c.Get(t.Context(), key)
			if err != nil || reply.Count != 1 {
				t.Fatal(key, reply, err)
			}
			if other, shared := leases[reply.Kvs[0].Lease]; shared {
				t.Fatalf("%s and %s are under one lease", key, other)
			}
			leases[reply.Kvs[0].Lease] = key
		}
		mustRelease(t, s, r)
		mustRelease(t, s, one)
	}
}

// A backup has the same cluster, with a lower revision.
func TestR46RestoredBackupIsSeenAndQuarantined(t *testing.T) {
	node := testserver.Etcd(t)
	c := client(t, node)
	s := store(t, c)
	acceptance.DeclareNew(t, s, brief("", quorum.Owner{}))
	mustAcquire(t, s, brief("before", owner()))
	disk := node.CopyDisk()
	held := brief("k", owner())
	var g quorum.Grant
	await(t, slack, "the server to be reached again", func() bool {
		var err error
		g, err = s.Acquire(t.Context(), held)
		return err == nil
	})
	node.RestartFrom(disk)
	rival := brief("k", owner())
	var err error
	await(t, slack, "the server to be reached again", func() bool {
		_, err = s.Acquire(t.Context(), rival)
		out := quorum.OutcomeOf(err)
		return out != quorum.OutcomeUndelivered && out != quorum.OutcomeUnknown
	})
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	// A process that never saw the higher revision is kept out by the record.
	_, err = store(t, client(t, node)).Acquire(t.Context(), rival)
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	held.Kind, held.Floor = quorum.KindRepair, g.Token
	if again := mustAcquire(t, s, held); again.Token != g.Token {
		t.Errorf("repaired with token %d, want %d", again.Token, g.Token)
	}
	leave(t, s)
	_ = s.Release(t.Context(), held) // it may have ended while the quarantine lasted
	if next := mustAcquire(t, s, rival); next.Token <= g.Token {
		t.Errorf("token %d after %d was given and forgotten", next.Token, g.Token)
	}
}

// leave takes a store out of quarantine as a lone one leaves, once its time is
// over.
func leave(t *testing.T, s *etcdstore.Store) {
	t.Helper()
	var step quorum.Step
	await(t, briefMaxTTL+slack, "the end of the quarantine", func() bool {
		var err error
		step, err = s.ReadStep(t.Context(), brief("", quorum.Owner{}))
		if err != nil || step.Quarantine == "" {
			t.Fatalf("not in quarantine: %+v %v", step, err)
		}
		return step.Over
	})
	o := quorum.Raise{Quarantine: step.Quarantine, Step: step.Step, Alone: true}
	if err := s.Raise(t.Context(), brief("", quorum.Owner{}), o); err != nil {
		t.Fatal(err)
	}
}

// A cluster of three elects another leader while a vote is held: the vote stays,
// and ends at latest a TTL, a second and the election after it.
func TestR37LeaderIsKilledWhileALockIsHeld(t *testing.T) {
	nodes := testserver.EtcdCluster(t, 3)
	c := client(t, nodes...)
	s := store(t, c)
	declareNew(t, s)
	r := ask("k", owner())
	r.TTL = 6 * time.Second // also where the election takes long
	g := mustAcquire(t, s, r)
	for _, n := range nodes {
		status, err := c.Status(t.Context(), n.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if status.Leader == status.Header.MemberId {
			n.Stop()
			break
		}
	}
	rival := ask("k", owner())
	await(t, slack, "a renewal under another leader", func() bool {
		_, err := s.Acquire(t.Context(), rival)
		if err == nil {
			t.Fatal("a rival got in while the lock is held")
		}
		again, err := s.Extend(t.Context(), r)
		if out := quorum.OutcomeOf(err); out == quorum.OutcomeNotHeld {
			t.Fatalf("the vote was lost with the leader: %v", err)
		}
		return err == nil && again.Token == g.Token
	})
	await(t, r.TTL+slack, "the vote to end", func() bool {
		next, err := s.Acquire(t.Context(), rival)
		return err == nil && next.Token > g.Token
	})
}

func TestR14KilledHolderIsFreedWithinTheBound(t *testing.T) {
	node, _, s := fresh(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHolderProcess$")
	cmd.Env = append(os.Environ(), "QUORUM_ETCD_HOLDER="+node.Addr)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it holds
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), brief("k", owner()))
	wantOutcome(t, err, quorum.OutcomeContended)
	_ = cmd.Process.Kill()
	died := time.Now()
	_ = cmd.Wait()
	await(t, briefMaxTTL+slack, "the dead holder's vote to end", func() bool {
		g, err := s.Acquire(t.Context(), brief("k", owner()))
		if err == nil && g.Previous != quorum.PreviousExpired {
			t.Errorf("the last holder %v, want expired", g.Previous)
		}
		return err == nil
	})
	t.Logf("free %v after the kill, TTL %v", time.Since(died).Round(10*time.Millisecond), briefMaxTTL)
}

// TestHolderProcess is the process that is killed.
func TestHolderProcess(t *testing.T) {
	addr := os.Getenv("QUORUM_ETCD_HOLDER")
	if addr == "" {
		return // it is no test of its own
	}
	s, r := store(t, clientOf(t, clientv3.Config{Endpoints: []string{addr}})), brief("k", owner())
	mustAcquire(t, s, r)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		mustExtend(t, s, r)
		fmt.Print("h")
	}
}
