//go:build unix

package bench

import (
	"context"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"syscall"
	"time"
)

// locks is a lock library as one process uses it.
type locks interface {
	// acquire waits until it holds key, or until ctx has ended.
	acquire(ctx context.Context, key string) (held, error)
}

// held is a lock that was acquired.
type held interface {
	Release(ctx context.Context) error
}

// load is a closed loop: each worker acquires, holds, releases, and begins anew.
type load struct {
	locks   []locks // worker i uses locks[i % len(locks)]
	workers int
	key     func(worker, cycle int) string
	hold    time.Duration
	length  time.Duration // no cycle begins later
	cycles  int           // of a worker at most; 0 is as many as fit
	cut     bool          // all want one lock: length begins once they stand in line, and who waits at the end is cancelled
	skip    time.Duration // at least one cycle begins after it, whatever length says
}

// gather is how long workers have to come to stand in line before it counts.
const gather = 500 * time.Millisecond

// afterwards is how long the cycles under way may take when length is over.
const afterwards = 30 * time.Second

// cycle is one acquire and release. Instants count from the start of the load.
type cycle struct {
	worker int
	asked  time.Duration // Acquire was called
	held   time.Duration // and returned
	left   time.Duration // Release was called
	gone   time.Duration // and returned
	err    error
}

// run returns the cycles that ended, by the time of their Acquire's return.
func (l load) run() []cycle {
	wait := l.length + afterwards
	bounded, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	waiting := bounded
	if l.cut {
		waiting, cancel = context.WithTimeout(bounded, l.length)
		defer cancel()
	}
	cycles := make([][]cycle, l.workers)
	start := time.Now()
	var all sync.WaitGroup
	for w := range l.workers {
		all.Go(func() { cycles[w] = l.work(waiting, bounded, start, w) })
	}
	all.Wait()
	sum := slices.Concat(cycles...)
	slices.SortFunc(sum, func(a, b cycle) int { return int(a.held - b.held) })
	return sum
}

func (l load) work(waiting, bounded context.Context, start time.Time, worker int) []cycle {
	mine := l.locks[worker%len(l.locks)]
	out := make([]cycle, 0, 16+16384/l.workers) // all together little, or a thousand workers measure the collector
	last := time.Duration(-1)
	for i := 0; l.cycles == 0 || i < l.cycles; i++ {
		c := cycle{worker: worker, asked: time.Since(start)}
		if c.asked >= l.length && last >= l.skip {
			break
		}
		last = c.asked
		h, err := mine.acquire(waiting, l.key(worker, i))
		c.held = time.Since(start)
		if c.err = err; err == nil {
			if l.hold > 0 {
				<-time.After(l.hold)
			}
			c.left = time.Since(start)
			c.err = h.Release(bounded)
			c.gone = time.Since(start)
		}
		out = append(out, c)
		if waiting.Err() != nil {
			break
		}
	}
	return out
}

// sample is what one run of a load measured, by the name of the figure. Times
// are in microseconds, and what can be divided is divided by the cycles.
type sample map[string]float64

// sample runs a load of a row between two looks at what client and servers have
// counted, and returns the cycles that ended between them. Where who still waits
// is cut off, the first requests of all and the cancelling are left out of it.
func (s *servers) sample(r row, l load) (sample, []cycle) {
	runtime.GC()
	length := l.length
	if l.cut {
		l.length += gather + gather/10
	}
	var all []cycle
	var run sync.WaitGroup
	begun, from := time.Now(), time.Duration(0)
	before, used := s.count(r.commands), spent()
	run.Go(func() { all = l.run() })
	if l.cut {
		<-time.After(gather)
		before, used, from = s.count(r.commands), spent(), time.Since(begun)
		<-time.After(length)
	} else {
		run.Wait()
	}
	to, now := time.Since(begun), spent()
	if !l.cut {
		<-time.After(10 * time.Millisecond) // for what a row left to the background
	}
	counted := s.between(before, r.commands)
	run.Wait()
	if l.cut {
		all = slices.DeleteFunc(all, func(c cycle) bool { return c.held < from || c.held >= to && c.err == nil })
	}
	took := to - from
	good := slices.DeleteFunc(slices.Clone(all), func(c cycle) bool { return c.err != nil })
	n := float64(len(good))
	if n == 0 {
		return sample{"rate": 0, "success": 0}, all
	}
	m := sample{
		"success":    n / float64(len(all)),
		"allocs":     float64(now.allocs-used.allocs) / n,
		"goroutines": float64(now.goroutines-used.goroutines) / n,
		"client CPU": micros(now.cpu-used.cpu) / n,
		"server CPU": micros(counted.cpu) / n,
		"commands":   counted.commands / n,
		"reads":      counted.reads / n,
		"bytes":      counted.bytes / n,
	}
	var acquires, releases, cycles []time.Duration
	for _, c := range good {
		acquires, releases = append(acquires, c.held-c.asked), append(releases, c.gone-c.left)
		cycles = append(cycles, c.held-c.asked+c.gone-c.left)
	}
	m["rate"] = n / took.Seconds()
	m["acquire"], m["release"] = percentile(acquires, 0.5), percentile(releases, 0.5)
	m["cycle"], m["cycle p99"] = percentile(cycles, 0.5), percentile(cycles, 0.99)
	return m, all
}

// usage is what this process has used since it started.
type usage struct {
	allocs, goroutines uint64
	cpu                time.Duration
}

func spent() usage {
	read := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(read)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // it cannot fail
	return usage{memory.Mallocs, read[0].Value.Uint64(), time.Duration(r.Utime.Nano() + r.Stime.Nano())}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// percentile is a quantile in microseconds, or 0 of nothing.
func percentile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return micros(all[min(int(q*float64(len(all))), len(all)-1)])
}
