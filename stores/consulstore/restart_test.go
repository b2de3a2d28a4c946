package consulstore_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/consulstore"
)

func TestR29RestartForgetsNothing(t *testing.T) {
	s, node := fresh(t)
	a := ask("k", owner())
	token := mustAcquire(t, s, a).Token
	node.Restart() // after a kill -9
	await(t, "the server to answer again", func() bool {
		_, err := s.Extend(t.Context(), a)
		outcome := quorum.OutcomeOf(err)
		return outcome != quorum.OutcomeUndelivered && outcome != quorum.OutcomeUnknown
	})
	if g := mustExtend(t, s, a); g.Token != token {
		t.Errorf("after a restart the vote has token %d, want %d", g.Token, token)
	}
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeContended)
	mustRelease(t, s, a)
	if next := mustAcquire(t, s, ask("k", owner())); next.Token != token+1 {
		t.Errorf("after a restart the next token is %d, want %d", next.Token, token+1)
	}
}

func TestR46EmptiedServerIsKeptOut(t *testing.T) {
	s, node := fresh(t)
	token := mustAcquire(t, s, ask("k", owner())).Token
	before, err := s.ReadStep(t.Context(), ask("", quorum.Owner{}))
	if err != nil {
		t.Fatal(err)
	}
	node.RestartEmpty()
	var step quorum.Step
	await(t, "the server to answer again", func() bool {
		step, err = s.ReadStep(t.Context(), ask("", quorum.Owner{}))
		return err == nil
	})
	if step.Quarantine == "" || step.Over || step.Step != 0 {
		t.Fatalf("the record of an emptied server: %+v", step)
	}
	leave(t, s, before.Step)
	if g := mustAcquire(t, s, ask("k", owner())); g.Token <= token {
		t.Errorf("token %d after the disk was lost, %d before", g.Token, token)
	}
}

// leave waits for the end of a quarantine and ends it with the step that others
// remember.
func leave(t *testing.T, s *consulstore.Store, remembered int64) {
	t.Helper()
	began := time.Now()
	_, err := s.Acquire(t.Context(), ask("other", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	var step quorum.Step
	await(t, "the quarantine to be over", func() bool {
		step, err = s.ReadStep(t.Context(), ask("", quorum.Owner{}))
		return err == nil && step.Over
	})
	if took := time.Since(began); took < maxTTL/2 { // it began before this was called
		t.Errorf("a quarantine of %v was over after %v", maxTTL, took)
	}
	raise := quorum.Raise{Quarantine: step.Quarantine, Step: max(remembered, step.Step)}
	if err := s.Raise(t.Context(), ask("", quorum.Owner{}), raise); err != nil {
		t.Fatal(err)
	}
}

// TestRestoredBackupIsQuarantined restores an earlier snapshot of the server
// under a client that has seen what came after it.
func TestRestoredBackupIsQuarantined(t *testing.T) {
	s, node := fresh(t)
	c := client(t, node.Addr)
	mustRelease(t, s, func() quorum.Request { r := ask("k", owner()); mustAcquire(t, s, r); return r }())
	backup, _, err := c.Snapshot().Save(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(backup)
	if err != nil {
		t.Fatal(err)
	}
	_ = backup.Close()
	other := store(t, client(t, node.Addr))
	var token int64
	for range 3 {
		a := ask("k", owner())
		token = mustAcquire(t, other, a).Token
		mustRelease(t, other, a)
	}
	held := ask("held", owner())
	mustAcquire(t, s, held)
	if err := c.Snapshot().Restore(nil, bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	first, err := s.ReadStep(t.Context(), ask("", quorum.Owner{}))
	if err != nil {
		t.Fatal(err)
	}
	// The other client saw more than the backup too, and takes the quarantine
	// that is under way for the answer to it.
	_, err = other.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	second, err := other.ReadStep(t.Context(), ask("", quorum.Owner{}))
	if err != nil || second.Quarantine != first.Quarantine {
		t.Errorf("the quarantine %q became %q (%v) when a second client noticed", first.Quarantine, second.Quarantine, err)
	}
	leave(t, s, first.Step)
	if g := mustAcquire(t, other, ask("k", owner())); g.Token <= token {
		t.Errorf("token %d after the backup was restored, %d before", g.Token, token)
	}
}

func TestServerThatHangs(t *testing.T) {
	s, node := fresh(t)
	a := ask("k", owner())
	mustAcquire(t, s, a)
	node.Stall()
	short := a
	short.Limit = 500 * time.Millisecond
	_, err := s.Extend(t.Context(), short)
	wantOutcome(t, err, quorum.OutcomeUnknown)
	short.Key, short.Owner = "other", owner()
	_, err = s.Acquire(t.Context(), short)
	wantOutcome(t, err, quorum.OutcomeUndelivered) // nothing but a read and a session was sent
	short.Key, short.Owner = "k", a.Owner
	err = s.Release(t.Context(), short)
	wantOutcome(t, err, quorum.OutcomeUnknown)
	node.Resume()
	// The release that nobody heard the end of was carried out, or is again.
	a.Entomb = true
	_ = s.Release(t.Context(), a)
	mustAcquire(t, s, ask("k", owner()))
}

func TestServerThatIsAwayIsUndelivered(t *testing.T) {
	s, node := fresh(t)
	a := ask("k", owner())
	mustAcquire(t, s, a)
	node.Stop()
	for verb, err := range map[string]error{
		"Acquire": func() error { _, err := s.Acquire(t.Context(), ask("other", owner())); return err }(),
		"Release": s.Release(t.Context(), a),
	} {
		if got := quorum.OutcomeOf(err); got != quorum.OutcomeUndelivered {
			t.Errorf("%s of a server that is away: %v (%v)", verb, got, err)
		}
		if strings.Contains(err.Error(), a.Owner.Hex()) {
			t.Errorf("R63: the error of %s shows an owner", verb)
		}
	}
}

// TestR14KilledHolderFreesTheName kills a process that holds: the name is free
// after twice the TTL, and not before the TTL.
func TestR14KilledHolderFreesTheName(t *testing.T) {
	s, node := fresh(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHolderProcess$")
	cmd.Env = append(os.Environ(), "QUORUM_CONSUL_HOLDER="+node.Addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	_, err = s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeContended)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	killed := time.Now()
	var g quorum.Grant
	await(t, "the name of a killed holder", func() bool {
		g, err = s.Acquire(t.Context(), ask("k", owner()))
		return err == nil
	})
	if took := time.Since(began); took < minTTL {
		t.Errorf("the name of a holder for %v was free after %v", minTTL, took)
	}
	if g.Previous != quorum.PreviousExpired {
		t.Errorf("R31: the next holder is told %v, want expired", g.Previous)
	}
	t.Logf("free %v after the kill; TTL %v", time.Since(killed).Round(10*time.Millisecond), minTTL)
}

// TestHolderProcess is the process that is killed.
func TestHolderProcess(t *testing.T) {
	addr := os.Getenv("QUORUM_CONSUL_HOLDER")
	if addr == "" {
		return // it is no test of its own
	}
	s := store(t, client(t, addr))
	mustAcquire(t, s, ending("k", owner()))
	_, _ = os.Stdout.WriteString("held\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	<-ctx.Done()
}
