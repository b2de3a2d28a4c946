//go:build unix

package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/storetest"
)

func TestF001TokensGrowOverOverlappingQuorums(t *testing.T) {
	s := newSet(t, 5)
	l := s.Fresh()
	// Store 0 alone grants fifty times, so that its counter runs ahead.
	s.Cut(1, 2, 3, 4)
	for range 50 {
		if lease, err := l.TryAcquire(t.Context(), "job", quorum.AskOrder(quorum.AllAtOnce)); err == nil {
			t.Fatalf("one node of five was enough: %v", lease.Votes())
		}
	}
	s.Cut(3, 4)
	a := cycle(t, l, "job")
	s.Cut(0, 1)
	b := cycle(t, l, "job")
	if b <= a {
		t.Fatalf("token %d of {2, 3, 4} is not above %d of {0, 1, 2}", b, a)
	}
	seed := seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	for last, round := b, 0; round < 200; round++ {
		gone := random.Perm(5)[:2]
		s.Cut(gone...)
		token := cycle(t, l, "job")
		if token <= last {
			t.Fatalf("round %d without nodes %v: token %d after %d", round, gone, token, last)
		}
		last = token
	}
}

func TestAcquireIsOneCallANode(t *testing.T) {
	s := newSet(t, 3)
	l := s.Fresh()
	cycle(t, l, "job")
	settled := func() []int {
		var counts []int
		for range 50 {
			next := []int{s.commands(0), s.commands(1), s.commands(2)}
			if fmt.Sprint(next) == fmt.Sprint(counts) {
				break
			}
			counts = next
			time.Sleep(20 * time.Millisecond)
		}
		return counts
	}
	after := func(counts []int) []int { // the answer may come before the last node was asked
		acceptance.Await(t, "a script in every node", func() bool {
			return s.commands(0) > counts[0] && s.commands(1) > counts[1] && s.commands(2) > counts[2]
		})
		return settled()
	}
	before := settled()
	lease := acquire(t, l, "job")
	taken := after(before)
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	given := after(taken)
	for i := range 3 {
		if got := taken[i] - before[i]; got != 1 {
			t.Errorf("node %d ran %d scripts for an acquire, repair included; want 1", i, got)
		}
		if got := given[i] - taken[i]; got != 1 {
			t.Errorf("node %d ran %d scripts for a release; want 1", i, got)
		}
	}
}

func TestNamesUsedOnceNeedNoConfirmAndLeaveNothing(t *testing.T) {
	names := 10_000 // QUORUM_NAMES=100000 takes minutes
	if n, err := strconv.Atoi(os.Getenv("QUORUM_NAMES")); err == nil {
		names = n
	}
	var nodes []*testserver.RedisNode
	var clocks []*serverClock
	for range 3 {
		n, c := stoppedRedis(t)
		nodes, clocks = append(nodes, n), append(clocks, c)
	}
	s := &set{t: t, nodes: nodes}
	s.combine()
	l := s.Fresh(quorum.TTL(time.Minute), quorum.CallLimit(20*time.Second)) // a busy machine may stall
	cycle(t, l, "first")
	idle := s.memory()
	jobs := make(chan int)
	errs := make(chan error, 16)
	for range 16 {
		go func() {
			var err error
			for i := range jobs {
				if err != nil {
					continue
				}
				lease, e := l.Acquire(t.Context(), fmt.Sprint("job-", i))
				if e == nil {
					e = lease.Release(t.Context())
				}
				err = e
			}
			errs <- err
		}()
	}
	for i := range names {
		jobs <- i
	}
	close(jobs)
	for range 16 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	confirms := 0
	for _, sp := range s.Spoil {
		confirms += len(sp.Log(storetest.Verbs(storetest.VerbExtend)))
	}
	if confirms != 0 {
		t.Errorf("%d write-backs for %d fresh names: their counters should start alike", confirms, names)
	}
	full := s.memory()
	last := cycle(t, l, "job-7")
	for _, c := range clocks {
		c.Advance(30 * time.Minute)
	}
	acceptance.Poll(t, 4*time.Minute, "the counters' end", func() bool {
		for _, c := range s.clients {
			if n, err := c.DBSize(t.Context()).Result(); err != nil || n > 10 {
				return false
			}
		}
		return true
	})
	after := s.memory()
	t.Logf("memory of the first node: %d bytes idle, %d with %d names, %d after their time", idle, full, names, after)
	if grown, left := full-idle, after-idle; left > grown/4 {
		t.Errorf("of %d bytes for names %d are left", grown, left)
	}
	if token := cycle(t, l, "job-7"); token <= last {
		t.Errorf("a name used again after its counter went: token %d after %d", token, last)
	}
}

// memory is what the first node uses.
func (s *set) memory() int64 {
	s.t.Helper()
	used, err := s.clients[0].InfoMap(s.t.Context(), "memory").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	var n int64
	if _, err := fmt.Sscan(used["Memory"]["used_memory"], &n); err != nil {
		s.t.Fatal(err)
	}
	return n
}
