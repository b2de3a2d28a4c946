package consulstore_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
)

// tally counts the requests of a client, those that wait apart.
type tally struct {
	http.Transport
	commands, blocking *atomic.Int64
}

func (c *tally) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("index") {
		c.blocking.Add(1)
	} else {
		c.commands.Add(1)
	}
	return c.Transport.RoundTrip(r)
}

// BenchmarkHandOver has processes, each with a Locker of its own, take one name
// in turn, hold it for nothing and ask again at once: once in the queue, and
// once by wake-ups alone. An operation is an acquisition.
func BenchmarkHandOver(b *testing.B) {
	addr := testserver.Consul(b).Addr
	for _, n := range []int{8, 16, 32} {
		for _, kind := range []string{"queue", "wakes"} {
			if n == 32 && kind == "wakes" {
				continue // on two cores its calls run into their limits
			}
			b.Run(fmt.Sprintf("%d/%s", n, kind), func(b *testing.B) { handOver(b, addr, n, kind == "queue") })
		}
	}
}

func handOver(b *testing.B, addr string, waiters int, queues bool) {
	var commands, blocking, got atomic.Int64
	prefix := fmt.Sprintf("bench/%d/%v/%d", waiters, queues, b.N)
	var all []*quorum.Locker
	for range waiters {
		transport := &tally{http.Transport{MaxIdleConnsPerHost: 64}, &commands, &blocking}
		b.Cleanup(transport.CloseIdleConnections)
		c, err := api.NewClient(&api.Config{Address: addr, HttpClient: &http.Client{Transport: transport}})
		if err != nil {
			b.Fatal(err)
		}
		s := store(b, c, consulstore.Prefix(prefix))
		s.Queues(queues)
		l, err := quorum.New(s, quorum.TTL(10*time.Second))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Close(context.Background()) })
		all = append(all, l)
	}
	if err := all[0].Init(b.Context()); err != nil {
		b.Fatal(err)
	}
	counts := make([]int64, waiters)
	var wg sync.WaitGroup
	work := func(total int64) {
		for i, l := range all {
			wg.Go(func() {
				for got.Add(1) <= total {
					h, err := l.Acquire(b.Context(), "k", quorum.Wait(time.Minute))
					if err != nil {
						b.Error(err)
						return
					}
					counts[i]++
					if err := h.Release(context.Background()); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	b.ResetTimer()
	work(int64(b.N))
	b.StopTimer()
	least, most := counts[0], counts[0]
	for _, n := range counts {
		least, most = min(least, n), max(most, n)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acquisitions/s")
	b.ReportMetric(float64(commands.Load())/float64(b.N), "commands/op")
	b.ReportMetric(float64(blocking.Load())/float64(b.N), "blocking/op")
	b.ReportMetric(float64(least), "fewest")
	b.ReportMetric(float64(most), "most")
}
