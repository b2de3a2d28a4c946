//go:build unix

package quorum_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// What many goroutines that take and give back a name each cost with stores that
// grant everything: the client's own part, in processor time.
func BenchmarkCycle(b *testing.B) {
	for _, n := range []int{3, 5} {
		for _, order := range []quorum.Order{quorum.InOrder, quorum.FirstThenRest, quorum.AllAtOnce} {
			for _, workers := range []int{1, 128, 1024} {
				b.Run(fmt.Sprintf("N=%d/%s/%d goroutines", n, order, workers), func(b *testing.B) { cycles(b, n, order, workers) })
			}
		}
	}
}

func cycles(b *testing.B, n int, order quorum.Order, workers int) {
	var members []quorum.Store
	for i := range n {
		s := &echo{name: fmt.Sprint("m", i), calls: make(chan chan struct{}, 1<<16)}
		go s.serve()
		b.Cleanup(func() { close(s.calls) })
		members = append(members, s)
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		b.Fatal(err)
	}
	l, err := quorum.New(set, quorum.AskOrder(order), quorum.CallLimit(10*time.Second)) // also on a starved machine
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close(context.Background()) })
	b.ReportAllocs()
	b.ResetTimer()
	began := cpu()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for key := fmt.Sprint("key ", w); left.Add(-1) >= 0; {
				lease, err := l.Acquire(context.Background(), key)
				if err == nil {
					err = lease.Release(context.Background())
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N), "cpu-µs/op")
}

func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// echo grants everything, on a goroutine of its own, as a server would.
type echo struct {
	name  string
	calls chan chan struct{}
}

var replies = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

func (e *echo) serve() {
	for c := range e.calls {
		runtime.Gosched()
		c <- struct{}{}
		for more := true; more; {
			select {
			case c, ok := <-e.calls:
				if !ok {
					return
				}
				c <- struct{}{}
			default:
				more = false
			}
		}
	}
}

func (e *echo) call() {
	c := replies.Get().(chan struct{})
	e.calls <- c
	<-c
	replies.Put(c)
}

func (e *echo) Name() string          { return e.name }
func (e *echo) Limits() quorum.Limits { return quorum.Limits{Reach: quorum.ReachCluster} }
func (e *echo) Acquire(_ context.Context, r quorum.Request) (quorum.Grant, error) {
	e.call()
	if r.Kind == quorum.KindRepair {
		return quorum.Grant{Token: r.Floor, TTL: r.TTL}, nil
	}
	return quorum.Grant{Token: max(r.Floor, 7), TTL: r.TTL}, nil
}
func (e *echo) Extend(_ context.Context, r quorum.Request) (quorum.Grant, error) {
	e.call()
	return quorum.Grant{Token: r.Floor, TTL: r.TTL}, nil
}
func (e *echo) Release(context.Context, quorum.Request) error { e.call(); return nil }
