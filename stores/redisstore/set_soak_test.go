//go:build unix

package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// The processes of the soak, and how often each takes the lock.
const (
	soakProcesses = 10
	soakRounds    = 200
)

// soakLock is what all processes of the soak agree on.
var soakLock = []quorum.Option{
	quorum.TTL(3 * time.Second), quorum.MaxTTL(3 * time.Second),
	quorum.CallLimit(100 * time.Millisecond), quorum.Backoff(2*time.Millisecond, 50*time.Millisecond),
}

// Ten processes take one lock over five nodes, two hundred times each, while
// one node is killed and comes back empty, and another is stopped for a while.
func TestTenProcessesNeverOverlapWhileNodesFail(t *testing.T) {
	s := newSet(t, 5)
	l := s.fresh(soakLock...)
	cycle(t, l, "job")
	g := newGuard(t)
	var addrs []string
	for _, n := range s.nodes {
		addrs = append(addrs, n.Addr)
	}
	var wait sync.WaitGroup
	for i := range soakProcesses {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSoakWorker$", "-test.v")
		cmd.Env = append(os.Environ(), "QUORUM_SOAK_NODES="+strings.Join(addrs, ","), "QUORUM_SOAK_GUARD="+g.path)
		wait.Go(func() {
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, text)
			}
		})
	}
	total := soakProcesses * soakRounds
	poll(t, time.Minute, "the first quarter", func() bool { return g.entries() > total/4 })
	s.nodes[1].Stop()
	poll(t, time.Minute, "some work without a node", func() bool { return g.entries() > total/3 })
	s.nodes[3].Stall()
	at := g.entries()
	poll(t, time.Minute, "some work without a second", func() bool { return g.entries() > at+20 })
	s.nodes[3].Resume()
	poll(t, time.Minute, "some work with four", func() bool { return g.entries() > at+100 })
	s.nodes[1].RestartEmpty()
	wait.Wait()
	if t.Failed() {
		return
	}
	if n := g.entries(); n != total {
		t.Errorf("%d entries, want %d", n, total)
	}
	for _, complaint := range g.complaints() {
		t.Error(complaint)
	}
	poll(t, 5*time.Second, "nothing left behind", func() bool { return s.holders(l, "job") == 0 })
}

// TestSoakWorker is one process of the soak, started by it.
func TestSoakWorker(t *testing.T) {
	addrs := os.Getenv("QUORUM_SOAK_NODES")
	if addrs == "" {
		return // it is no test of its own
	}
	var members []quorum.Store
	for i, addr := range strings.Split(addrs, ",") {
		st, err := redisstore.New("node"+strconv.Itoa(i), client(t, addr))
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, st)
	}
	store, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(store, soakLock...)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := net.Dial("unix", os.Getenv("QUORUM_SOAK_GUARD"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = guard.Close() }()
	replies := bufio.NewReader(guard)
	tell := func(format string, args ...any) {
		if _, err := fmt.Fprintf(guard, format+"\n", args...); err != nil {
			t.Fatal(err)
		}
		if _, err := replies.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for range soakRounds {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		lease, err := l.Acquire(ctx, "job")
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		tell("enter %d", lease.Token())
		tell("leave")
		// A minority that fails is retried by the locker; so is the rest.
		_ = lease.Release(t.Context())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Log(err) // a node that is down keeps its votes until their TTL
	}
}

// guard watches who is inside. It knows nothing of locks.
type guard struct {
	path string

	mu     sync.Mutex
	inside int
	last   int64
	n      int
	wrong  []string
}

func newGuard(t *testing.T) *guard {
	t.Helper()
	g := &guard{path: filepath.Join(t.TempDir(), "guard")}
	listen, err := net.Listen("unix", g.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listen.Close() })
	go func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return // closed with the test
			}
			go g.serve(conn)
		}
	}()
	return g
}

func (g *guard) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		g.hear(lines.Text())
		if _, err := fmt.Fprintln(conn, "ok"); err != nil {
			return
		}
	}
}

func (g *guard) hear(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if line == "leave" {
		g.inside--
		return
	}
	token, err := strconv.ParseInt(strings.TrimPrefix(line, "enter "), 10, 64)
	switch {
	case err != nil:
		g.wrong = append(g.wrong, "unreadable: "+line)
	case token <= g.last:
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d with token %d after %d", g.n, token, g.last))
	}
	if g.inside++; g.inside > 1 {
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d: %d inside", g.n, g.inside))
	}
	g.last = token
	g.n++
}

func (g *guard) entries() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

func (g *guard) complaints() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wrong
}
