package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/quorumlock/quorum/internal/sim"
)

// seedRunner runs seeds on several cores. What comes of a seed does not depend
// on that.
type seedRunner struct {
	run      func(seed uint64) *sim.Report
	progress *progress

	mu       sync.Mutex
	total    sim.Report
	failed   []*sim.Report // in the order of their seeds, without what comes after keepFailed
	unsteady []uint64      // that did not repeat
}

// keepFailed is how many failures are told one by one, and twiceEvery how
// often a seed is run twice.
const (
	keepFailed = 5
	twiceEvery = 20
)

// all runs n seeds from first on, until it is stopped.
func (r *seedRunner) all(first uint64, n, jobs int, stop <-chan os.Signal) *sim.Report {
	var next, stopped atomic.Int64
	done := make(chan struct{})
	watching := sync.WaitGroup{}
	watching.Go(func() {
		select {
		case <-stop:
			stopped.Store(1)
		case <-done:
		}
	})
	running := sync.WaitGroup{}
	for range min(jobs, n) {
		running.Go(func() {
			for stopped.Load() == 0 {
				i := next.Add(1) - 1
				if i >= int64(n) {
					return
				}
				r.one(first + uint64(i))
			}
		})
	}
	running.Wait()
	close(done)
	watching.Wait()
	r.progress.end()
	return &r.total
}

func (r *seedRunner) one(seed uint64) {
	report := r.run(seed)
	steady := seed%twiceEvery != 0 || r.run(seed).Hash == report.Hash
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Add(report)
	r.total.Violations = nil
	if !steady {
		r.unsteady = append(r.unsteady, seed)
	}
	if len(report.Violations) > 0 {
		at, _ := slices.BinarySearchFunc(r.failed, seed, func(o *sim.Report, seed uint64) int {
			return int(min(max(int64(o.Seed)-int64(seed), -1), 1))
		})
		r.failed = slices.Insert(r.failed, at, report)
	}
	r.progress.step(r.total.Runs, len(r.failed))
}

// progress is a line that is written over, at a terminal only.
type progress struct {
	out   io.Writer
	n     int
	began time.Time
	shown time.Time
}

func newProgress(out io.Writer, n int) *progress {
	p := &progress{n: n, began: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		p.out = out
	}
	return p
}

func (p *progress) step(runs, failed int) {
	now := time.Now()
	if p.out == nil || now.Sub(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = now
	left := time.Duration(float64(now.Sub(p.began)) / float64(runs) * float64(p.n-runs))
	_, _ = fmt.Fprintf(p.out, "\r\x1b[K%d of %d seeds, %d failed, %v left", runs, p.n, failed, left.Round(time.Second))
}

func (p *progress) end() {
	if p.out != nil {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
