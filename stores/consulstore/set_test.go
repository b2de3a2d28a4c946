package consulstore_test

import (
	"bufio"
	"context"
	"errors"
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
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
	"github.com/quorumlock/quorum/storetest"
)

// set is three Consul servers as one store, each behind a wrapper that spoils it.
type set struct {
	nodes []*testserver.ConsulNode
	spoil []*storetest.Spoiled
	store *quorum.CombinedStore
}

func newSet(t *testing.T) *set {
	t.Helper()
	s := &set{}
	var members []quorum.Store
	for i := range 3 {
		node := testserver.Consul(t)
		sp := storetest.Spoil(member(t, i, node.Addr))
		t.Cleanup(sp.Close)
		s.nodes, s.spoil = append(s.nodes, node), append(s.spoil, sp)
		members = append(members, sp)
	}
	var err error
	if s.store, err = quorum.Combine(quorum.Consensus(), members...); err != nil {
		t.Fatal(err)
	}
	return s
}

func member(t *testing.T, i int, addr string) *consulstore.Store {
	t.Helper()
	s, err := consulstore.New("node"+strconv.Itoa(i), client(t, addr), consulstore.MinTTL(minTTL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func locker(t *testing.T, store quorum.Store, options ...quorum.Option) *quorum.Locker {
	t.Helper()
	l, err := quorum.New(store, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}

// calm is what all clients of a set agree on: times that a busy machine keeps.
var calm = []quorum.Option{
	quorum.TTL(8 * time.Second), quorum.MaxTTL(8 * time.Second), quorum.CallLimit(time.Second),
	quorum.Backoff(60*time.Millisecond, 200*time.Millisecond),
}

func takeLease(t *testing.T, l *quorum.Locker, key string) *quorum.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatalf("acquire %q: %v", key, err)
	}
	return lease
}

// TestSetSurvivesOneServer: a server is killed and comes back with its vote,
// another hangs while the lease is released, and tokens grow.
func TestSetSurvivesOneServer(t *testing.T) {
	s := newSet(t)
	l := locker(t, s.store, calm...)
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease := takeLease(t, l, "k")
	everywhere := func() bool {
		status, err := l.Inspect(t.Context(), "k")
		if err != nil {
			return false
		}
		for _, st := range status.Stores {
			if len(st.State.Holders) != 1 || st.State.Holders[0].Token != lease.Token() {
				return false
			}
		}
		return true
	}
	await(t, "the third server to be repaired", everywhere)
	s.nodes[0].Stop()
	if err := lease.Extend(t.Context(), 8*time.Second); err != nil {
		t.Errorf("extend with two of three: %v", err)
	}
	s.nodes[0].Restart()
	await(t, "all three again", func() bool { return lease.Extend(t.Context(), 8*time.Second) == nil && everywhere() })
	s.nodes[1].Stall()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release while one hangs: %v", err)
	}
	next := takeLease(t, l, "k")
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	s.nodes[1].Resume()
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSpoiledRepliesNeverLetTwoIn loses, doubles and delays what the stores are
// asked and answer.
func TestSpoiledRepliesNeverLetTwoIn(t *testing.T) {
	s := newSet(t)
	l := locker(t, s.store, calm...)
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	calls := 0
	every := func(n int) func(storetest.Call) bool {
		return func(storetest.Call) bool {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return calls%n == 0
		}
	}
	for _, sp := range s.spoil {
		sp.Set(
			storetest.On(every(17), storetest.DropReply(nil)),
			storetest.On(every(13), storetest.Double(5*time.Millisecond)),
			storetest.On(every(19), storetest.LateApply(20*time.Millisecond, nil)),
		)
	}
	g := &guard{}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 6 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				lease, err := l.Acquire(ctx, "k")
				cancel()
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				g.hear(fmt.Sprintf("enter %d", lease.Token()))
				g.hear("leave")
				_ = lease.Release(t.Context()) // what fails is retried
			}
		})
	}
	workers.Wait()
	g.judge(t, 24)
}

const (
	soakProcesses = 10
	soakRounds    = 200
)

// TestTenProcessesNeverOverlap has ten processes take one lock over three
// servers, two hundred times each. They poll: told of every release all nine
// that wait would ask at once, and two cores have no time for that.
func TestTenProcessesNeverOverlap(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	s := newSet(t)
	l := locker(t, s.store, calm...)
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = takeLease(t, l, "job").Release(t.Context())
	g := newGuard(t)
	var addrs []string
	for _, n := range s.nodes {
		addrs = append(addrs, n.Addr)
	}
	var wait sync.WaitGroup
	for i := range soakProcesses {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSoakWorker$")
		cmd.Env = append(os.Environ(), "QUORUM_CONSUL_NODES="+strings.Join(addrs, ","), "QUORUM_CONSUL_GUARD="+g.path)
		wait.Go(func() {
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, text)
			}
		})
	}
	wait.Wait()
	g.judge(t, soakProcesses*soakRounds)
}

// TestSoakWorker is one process of it.
func TestSoakWorker(t *testing.T) {
	addrs := os.Getenv("QUORUM_CONSUL_NODES")
	if addrs == "" {
		return // it is no test of its own
	}
	var members []quorum.Store
	for i, addr := range strings.Split(addrs, ",") {
		sp := storetest.Spoil(member(t, i, addr))
		sp.Pretend(func(l *quorum.Limits) { l.Watches = false })
		t.Cleanup(sp.Close)
		members = append(members, sp)
	}
	store, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		t.Fatal(err)
	}
	l := locker(t, store, calm...)
	conn, err := net.Dial("unix", os.Getenv("QUORUM_CONSUL_GUARD"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	replies := bufio.NewReader(conn)
	tell := func(format string, args ...any) {
		_, err := fmt.Fprintf(conn, format+"\n", args...)
		if err == nil {
			_, err = replies.ReadString('\n')
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range soakRounds {
		lease := takeLease(t, l, "job")
		tell("enter %d", lease.Token())
		tell("leave")
		_ = lease.Release(t.Context())
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
	if err != nil || token <= g.last {
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d: %s after %d (%v)", g.n, line, g.last, err))
	}
	if g.inside++; g.inside > 1 {
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d: %d inside", g.n, g.inside))
	}
	g.last = token
	g.n++
}

// judge demands n entries and nothing wrong with them.
func (g *guard) judge(t *testing.T, n int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n != n {
		t.Errorf("%d entries, want %d", g.n, n)
	}
	if len(g.wrong) > 0 {
		t.Error(errors.New(strings.Join(g.wrong, "\n")))
	}
}
