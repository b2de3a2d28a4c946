//go:build unix

package acceptance

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// Parting has another process take a lock and part with it: killed by kill -9,
// or by handing it over.
type Parting struct {
	Options []quorum.Option // what both processes agree on
	DSNs    []string
	// Open opens the set in each process.
	Open func(ctx context.Context, dsns []string) (*quorum.CombinedStore, error)
}

const partingKind = "QUORUM_PARTING"

// Run runs both. Like [Soak.Run] it must be all that its test does but for
// starting servers.
func (p Parting) Run(t *testing.T) {
	l := p.locker(t)
	if Worker() {
		p.work(t, l)
		return
	}
	Poll(t, time.Minute, "the set to be declared new", func() bool { return l.Init(t.Context()) == nil })
	token := p.killed(t, l)
	p.handedOver(t, l, token)
}

func (p Parting) locker(t *testing.T) *quorum.Locker {
	t.Helper()
	dsns := p.DSNs
	if Worker() {
		dsns = strings.Fields(os.Getenv(soakDSNs))
	}
	set, err := p.Open(t.Context(), dsns)
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(set, p.Options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// killed: whoever comes after a holder that died is told so.
func (p Parting) killed(t *testing.T, l *quorum.Locker) int64 {
	other, _ := p.begin(t, "killed")
	if _, err := l.TryAcquire(t.Context(), "job"); !errors.Is(err, quorum.ErrHeld) {
		t.Fatalf("beside the other process: %v, want ErrHeld", err)
	}
	_ = other.Process.Kill()
	_ = other.Wait()
	lease := Acquire(t, l, "job")
	if lease.Previous() != quorum.PreviousExpired {
		t.Errorf("R31: after kill -9 the next holder is told %v, want expired", lease.Previous())
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return lease.Token()
}

// handedOver: one process goes on with the lease of another.
func (p Parting) handedOver(t *testing.T, l *quorum.Locker, last int64) {
	other, text := p.begin(t, "giver")
	if err := other.Wait(); err != nil { // it closed its Locker, and released nothing
		t.Fatal(err)
	}
	lease, err := l.Resume(t.Context(), []byte(text))
	if err != nil {
		t.Fatalf("R10: resume: %v", err)
	}
	if lease.Token() <= last || lease.Err() != nil {
		t.Errorf("R10: token %d after %d, %v", lease.Token(), last, lease.Err())
	}
	if _, err := l.TryAcquire(t.Context(), "job"); !errors.Is(err, quorum.ErrHeld) {
		t.Errorf("R10: beside the lease that was handed over: %v, want ErrHeld", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("R10: %v", err)
	}
	next := Acquire(t, l, "job")
	if next.Previous() != quorum.PreviousReleased || next.Token() <= lease.Token() {
		t.Errorf("after a release the next holder is told %v, want released; token %d after %d",
			next.Previous(), next.Token(), lease.Token())
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// begin starts the other process and returns what it says once it holds.
func (p Parting) begin(t *testing.T, kind string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), soakDSNs+"="+strings.Join(p.DSNs, " "), partingKind+"="+kind)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "held "); ok {
			return cmd, text
		}
		said = append(said, lines.Text())
	}
	t.Fatalf("the other process did not get the lock: %v\n%s", cmd.Wait(), strings.Join(said, "\n"))
	return nil, ""
}

// work is the other process.
func (p Parting) work(t *testing.T, l *quorum.Locker) {
	lease := Acquire(t, l, "job")
	if os.Getenv(partingKind) == "giver" {
		text, err := lease.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("held " + string(text) + "\n")
		return
	}
	_, _ = os.Stdout.WriteString("held \n")
	select { // it is killed
	case <-t.Context().Done():
	case <-time.After(time.Minute):
	}
}
