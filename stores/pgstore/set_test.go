//go:build linux

package pgstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/pgstore"
)

// TestSetOfThree has three servers that the parts of the suite share, each part
// in schemas of its own.
func TestSetOfThree(t *testing.T) {
	var nodes []*testserver.PostgresNode
	for range 3 {
		nodes = append(nodes, testserver.Postgres(t))
	}
	acceptance.Suite{TTL: time.Second, New: func(t *testing.T) []acceptance.Member {
		var members []acceptance.Member
		for i, node := range nodes {
			schema, p := newSchema(), pool(t, node.URL())
			s, err := pgstore.New("node"+strconv.Itoa(i), p, pgstore.Schema(schema))
			if err == nil {
				err = s.Setup(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			members = append(members, acceptance.Member{Store: s, Forget: func() {
				run(t, p, fmt.Sprintf("truncate %s.lock", schema))
			}})
		}
		return members
	}}.Run(t)
}

// TestTenProcessesNeverOverlapWhileServersFail has one server killed and
// restarted, and another stopped for a while.
func TestTenProcessesNeverOverlapWhileServersFail(t *testing.T) {
	soak := acceptance.Soak{
		Processes: 10, Rounds: 200,
		Options: []quorum.Option{
			quorum.TTL(3 * time.Second), quorum.MaxTTL(3 * time.Second), quorum.CallLimit(300 * time.Millisecond),
		},
		Open: func(ctx context.Context, dsns []string) (*quorum.CombinedStore, error) {
			return quorum.Open(ctx, dsns, pgstore.Opener())
		},
	}
	if acceptance.Worker() {
		soak.Run(t)
		return
	}
	var nodes []*testserver.PostgresNode
	for i := range 3 {
		node := testserver.Postgres(t)
		nodes = append(nodes, node)
		soak.DSNs = append(soak.DSNs, fmt.Sprintf("%s&name=node%d&pool_max_conns=4", node.URL(), i))
	}
	soak.Trouble = func(entered func() int) {
		total := soak.Processes * soak.Rounds
		wait := func(n int) {
			acceptance.Poll(t, 2*time.Minute, "the soak's progress", func() bool { return entered() >= n || t.Failed() })
		}
		wait(total / 4)
		nodes[0].Stop()
		wait(total / 3)
		nodes[0].Restart()
		wait(total / 2)
		nodes[1].Stall()
		at, end := entered(), time.Now().Add(5*time.Second)
		acceptance.Poll(t, time.Minute, "a stall", func() bool { return entered() >= at+20 || time.Now().After(end) })
		nodes[1].Resume()
	}
	soak.Run(t)
}

// TestR14KilledHolderFreesTheName: what a process held that was killed by kill -9
// ends on the server within its TTL.
func TestR14KilledHolderFreesTheName(t *testing.T) {
	const ttl = 2 * time.Second
	open := func() (*quorum.CombinedStore, *quorum.Locker) {
		set, err := quorum.Open(t.Context(), []string{os.Getenv("QUORUM_HOLDER")}, pgstore.Opener())
		if err != nil {
			t.Fatal(err)
		}
		l, err := quorum.New(set, quorum.TTL(ttl), quorum.MaxTTL(ttl))
		if err != nil {
			t.Fatal(err)
		}
		return set, l
	}
	if os.Getenv("QUORUM_HOLDER") != "" { // the holder
		_, l := open()
		acceptance.Acquire(t, l, "job")
		fmt.Println("held")
		<-t.Context().Done() // it is killed
		return
	}
	t.Setenv("QUORUM_HOLDER", shared(t).URL()+"&name=a&schema="+newSchema())
	_, l := open()
	defer func() { _ = l.Close(context.WithoutCancel(t.Context())) }()
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "held"; {
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
		if h.Left > ttl {
			t.Errorf("the vote of a dead process stays for %v, more than %v", h.Left, ttl)
		}
	}
	acceptance.Cycle(t, l, "job")
}

// TestR10R31TwoProcesses: one is killed, one hands its lease over.
func TestR10R31TwoProcesses(t *testing.T) {
	p := acceptance.Parting{
		Options: []quorum.Option{quorum.TTL(5 * time.Second), quorum.MaxTTL(5 * time.Second)},
		Open: func(ctx context.Context, dsns []string) (*quorum.CombinedStore, error) {
			return quorum.Open(ctx, dsns, pgstore.Opener())
		},
	}
	if !acceptance.Worker() {
		p.DSNs = []string{shared(t).URL() + "&name=a&schema=" + newSchema()}
	}
	p.Run(t)
}

// TestR13ProcessesComeInByTurns has eight processes of two waiters stand in
// the queues of three servers.
func TestR13ProcessesComeInByTurns(t *testing.T) {
	soak := acceptance.Soak{
		Processes: 8, Workers: 2, Rounds: 20,
		Options: []quorum.Option{quorum.TTL(time.Minute), quorum.MaxTTL(time.Minute), quorum.CallLimit(15 * time.Second)},
		Open: func(ctx context.Context, dsns []string) (*quorum.CombinedStore, error) {
			return quorum.Open(ctx, dsns, pgstore.Opener())
		},
	}
	if !acceptance.Worker() {
		for i := range 3 {
			soak.DSNs = append(soak.DSNs, fmt.Sprintf("%s&name=node%d&pool_max_conns=3", testserver.Postgres(t).URL(), i))
		}
	}
	turns := soak.Run(t)
	if !acceptance.Worker() {
		turns.Judge(t, 16)
	}
}
