//go:build unix

package acceptance

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// Soak has processes of their own take one lock, again and again, while an
// observer who knows nothing of locks counts who is inside.
type Soak struct {
	Processes, Rounds int
	Workers           int             // goroutines of each process; 0 is 1
	Readers           int             // so many of them
	Options           []quorum.Option // what all processes agree on
	DSNs              []string
	// Open opens the set in each process.
	Open func(ctx context.Context, dsns []string) (*quorum.CombinedStore, error)
	// Trouble is made meanwhile; entered says how far the work is.
	Trouble func(entered func() int)
}

// Worker reports whether this process is one of a soak, and must start no
// servers of its own.
func Worker() bool { return os.Getenv(soakDSNs) != "" }

const (
	soakDSNs  = "QUORUM_SOAK_DSNS"
	soakGuard = "QUORUM_SOAK_GUARD"
)

// Run runs the soak. It must be all that its test does but for starting servers
// and must come first there, see [Worker]: each process is this test again, which
// then works and judges nothing. Run returns who came in how often.
func (s Soak) Run(t *testing.T) Turns {
	s.Workers = max(s.Workers, 1)
	if Worker() {
		s.work(t)
		return Turns{}
	}
	set, err := s.Open(t.Context(), s.DSNs)
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(set, s.Options...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(context.WithoutCancel(t.Context())) }()
	Poll(t, time.Minute, "the set to be declared new", func() bool { // the limits of its calls are short
		err = l.Init(t.Context())
		return err == nil
	})
	g := &Guard{}
	path := g.listen(t, s.Processes*s.Workers)
	var wait sync.WaitGroup
	for i := range s.Processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), soakDSNs+"="+strings.Join(s.DSNs, " "), soakGuard+"="+path)
		wait.Go(func() {
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, text)
			}
		})
	}
	if s.Trouble != nil {
		s.Trouble(g.Entries)
	}
	wait.Wait()
	g.Judge(t, s.Processes*s.Workers*s.Rounds)
	return g.Turns()
}

// work is one process.
func (s Soak) work(t *testing.T) {
	store, err := s.Open(t.Context(), strings.Fields(os.Getenv(soakDSNs)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(store, s.Options...)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range s.Workers {
		wait.Go(func() {
			if err := s.rounds(t.Context(), l, i < s.Readers); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Log(err) // a member that is down keeps its votes until their TTL
	}
}

// rounds is one worker.
func (s Soak) rounds(ctx context.Context, l *quorum.Locker, reads bool) error {
	guard, err := net.Dial("unix", os.Getenv(soakGuard))
	if err != nil {
		return err
	}
	defer func() { _ = guard.Close() }()
	replies := bufio.NewReader(guard)
	tell := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(guard, format+"\n", args...)
		}
		if err == nil {
			_, err = replies.ReadString('\n')
		}
	}
	enter, leave, mode := "enter", "leave", []quorum.Option(nil)
	if reads {
		enter, leave, mode = "read", "unread", []quorum.Option{quorum.Shared()}
	}
	for range s.Rounds {
		tell("ask")
		limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
		lease, failed := l.Acquire(limited, "job", mode...)
		cancel()
		if failed != nil {
			return failed
		}
		tell("%s %d", enter, lease.Token())
		tell("%s", leave)
		// A minority that fails is retried by the locker; so is the rest.
		_ = lease.Release(ctx)
	}
	tell("done")
	return err
}
