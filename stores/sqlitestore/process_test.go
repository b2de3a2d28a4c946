//go:build linux

package sqlitestore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
)

// roleEnv makes this test binary one of the processes of a test: role, then
// the file.
const roleEnv = "SQLITESTORE_TEST_ROLE"

func TestMain(m *testing.M) {
	role, path, ok := strings.Cut(os.Getenv(roleEnv), " ")
	if !ok {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	s, err := Open(ctx, "host", path)
	if err == nil {
		switch role {
		case "hammer":
			err = hammer(ctx, s)
		case "cycle":
			err = cycle(ctx, s)
		case "hold":
			err = hold(ctx, s)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func start(t testing.TB, role, path string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role+" "+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, out
}

// hammer takes locks again and again, mostly gives them back, and never ends.
func hammer(ctx context.Context, s *Store) error {
	serves, err := s.Serves(ctx, request(""))
	if err != nil || len(serves) != 1 {
		return fmt.Errorf("the store serves %v: %w", serves, err)
	}
	for i := 0; ; i++ {
		r := request("key " + strconv.Itoa(i%3))
		r.Set = serves[0]
		r.TTL = minTTL
		r.Label = strings.Repeat("x", i%200)
		g, err := s.Acquire(ctx, r)
		if errors.Is(err, quorum.ErrHeld) {
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println(i%3, g.Token)
		if i%4 != 0 {
			if err := s.Release(ctx, r); err != nil && !errors.Is(err, quorum.ErrNotHeld) {
				return err
			}
		}
	}
}

// heldFor is the TTL of those who renew: long enough for a busy machine, and
// short enough to wait for its end.
const heldFor = 3 * time.Second

// hold takes a lock by a Locker, which renews it, until the process is killed.
func hold(ctx context.Context, s *Store) error {
	l, err := quorum.New(s, quorum.TTL(heldFor))
	if err != nil {
		return err
	}
	if _, err := l.Acquire(ctx, "job"); err != nil {
		return err
	}
	fmt.Println("held")
	select {}
}

// Processes are killed at any instruction, also within a transaction. What they
// leave is whole, ends at its TTL, and no token is given again.
func TestF082KilledProcessLeavesALeaseThatEnds(t *testing.T) {
	for _, journal := range journals {
		t.Run(journal, func(t *testing.T) {
			path := newPath(t)
			db := database(t, path, journal)
			s := over(t, db)
			acceptance.DeclareNew(t, s, request(""))
			last := map[string]int64{}
			for round := range 6 {
				cmd, out := start(t, "hammer", path)
				lines := bufio.NewScanner(out)
				for n := 0; lines.Scan(); n++ {
					key, text, _ := strings.Cut(lines.Text(), " ")
					token, err := strconv.ParseInt(text, 10, 64)
					if err != nil {
						break // the line that the kill cut off
					}
					if token <= last[key] {
						t.Fatalf("round %d: token %d of key %s after %d", round, token, key, last[key])
					}
					last[key] = token
					if n == 20+7*round {
						if err := cmd.Process.Kill(); err != nil {
							t.Fatal(err)
						}
					}
				}
				_ = cmd.Wait()
				for key := range last {
					var g quorum.Grant
					r := request("key " + key)
					acceptance.Await(t, "the dead process's lease to end", func() (ok bool) {
						var err error
						g, err = s.Acquire(t.Context(), r)
						return err == nil
					})
					if g.Token <= last[key] {
						t.Fatalf("round %d: key %s after the kill: token %d, want one above %d", round, key, g.Token, last[key])
					}
					last[key] = g.Token
					acceptance.MustRelease(t, s, r)
				}
			}
			if n := rows(t, s); n != 3 {
				t.Errorf("%d rows for 3 names", n)
			}
			if verdict := one[string](t, db, "PRAGMA integrity_check"); verdict != "ok" {
				t.Errorf("the file: %s", verdict)
			}
		})
	}
}

// TestR14R31KilledHolderFreesTheName: what a process held that was killed by
// kill -9 ends within its TTL, and who comes next is told how.
func TestR14R31KilledHolderFreesTheName(t *testing.T) {
	path := newPath(t)
	s := open(t, world(t, clock.System()), path)
	l, err := quorum.New(s, quorum.TTL(heldFor))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(context.WithoutCancel(t.Context())) }()
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd, out := start(t, "hold", path)
	if text, err := bufio.NewReader(out).ReadString('\n'); text != "held\n" {
		t.Fatalf("the holder said %q, %v", text, err)
	}
	if _, err := l.TryAcquire(t.Context(), "job"); !errors.Is(err, quorum.ErrHeld) {
		t.Fatalf("beside a process that holds: %v, want ErrHeld", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	status, err := l.Inspect(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range status.Stores[0].State.Holders {
		if h.Left > heldFor {
			t.Errorf("the vote of a dead process stays for %v, more than its TTL", h.Left)
		}
	}
	lease := acceptance.Acquire(t, l, "job")
	if p := lease.Previous(); p != quorum.PreviousExpired {
		t.Errorf("the holder before ended %v, want expired", p)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	lease = acceptance.Acquire(t, l, "job")
	if p := lease.Previous(); p != quorum.PreviousReleased {
		t.Errorf("the holder before ended %v, want released", p)
	}
}

// TestF019TenProcessesNeverOverlap has ten processes take one lock while others
// write into the same file and are killed.
func TestF019TenProcessesNeverOverlap(t *testing.T) {
	soak := acceptance.Soak{
		Processes: 10, Rounds: 200,
		Options: []quorum.Option{quorum.TTL(10 * time.Second), quorum.MaxTTL(time.Minute)},
		Open: func(ctx context.Context, dsns []string) (*quorum.CombinedStore, error) {
			return quorum.Open(ctx, dsns, Opener())
		},
	}
	if acceptance.Worker() {
		soak.Run(t)
		return
	}
	path := newPath(t)
	soak.DSNs = []string{"sqlite:" + path + "?name=host"}
	soak.Trouble = func(entered func() int) {
		for round := range 8 {
			at := soak.Processes * soak.Rounds * (round + 1) / 10
			acceptance.Poll(t, 5*time.Minute, "the soak's progress", func() bool { return entered() >= at || t.Failed() })
			cmd, out := start(t, "hammer", path)
			lines, n := bufio.NewScanner(out), 0
			for n < 30 && lines.Scan() {
				n++
			}
			if n < 30 {
				t.Errorf("a process that was to be killed ended by itself after %d acquisitions", n)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	soak.Run(t)
}
