package quorumsim

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/sim"
)

// Job is one process of the simulated world, as the function sees it that
// [Config.Job] names. The function begins with the run and, when the process is
// killed, anew with its next life. When it returns the process closes its
// locker: what it still holds is given back.
//
// When the process dies or the run ends, the function goes no further than
// where it waits: it unwinds by a panic, as it would by runtime.Goexit. Its
// deferred calls run, and none of them can do anything any more. A function
// that recovers must panic again with what it does not know.
//
// A Job and its leases are for their own function only. Calls from elsewhere
// panic.
type Job struct {
	r       *run
	c       *sim.Client
	began   clock.Instant
	resumes func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	over    bool
}

// ErrStale means that the resource's fence refused a write, since it has seen a
// higher token.
var ErrStale = errors.New("quorumsim: stale token")

// invalid unwinds a job that asked for what makes no sense: it must not go on as
// if it had been refused, maybe for ever.
type invalid struct{ error }

// errEnded unwinds a job.
var errEnded = errors.New("quorumsim: the process is dead or the run is over")

// start begins a life of a client's process.
func (r *run) start(c *sim.Client) {
	if before := r.jobs[c.ID()]; before != nil {
		before.end()
	}
	j := &Job{r: r, c: c, began: c.Now()}
	r.jobs[c.ID()] = j
	j.resumes, j.stop = iter.Pull(j.body)
	c.After(0, j.resume)
}

func (j *Job) body(yield func(struct{}) bool) {
	defer func() {
		p := recover()
		if wrong, ok := p.(invalid); ok {
			if j.r.wrong == nil {
				j.r.wrong = wrong.error
			}
			j.over = true
			j.c.Close(nil)
			return
		}
		if p != nil && p != any(errEnded) {
			panic(p)
		}
	}()
	j.yield = yield
	j.r.cfg.Job(j)
	j.over = true
	j.c.Close(nil)
}

// end unwinds the job where it waits.
func (j *Job) end() {
	j.over = true
	j.stop()
}

// resume lets the job run until it waits again.
func (j *Job) resume() {
	switch {
	case j.over:
	case j.c.Stopping():
		j.end()
	default:
		j.r.running = j
		j.resumes()
		j.r.running = nil
	}
}

// check panics unless it is this job that runs.
func (j *Job) check() {
	if j.over {
		panic(errEnded)
	}
	if j.r.running != j {
		panic(fmt.Sprintf("quorumsim: job of client %d used from elsewhere than its own function", j.c.ID()))
	}
}

// wait lets the others run until what arm prepares calls wake, which it must do
// once, later, and not for another wait.
func (j *Job) wait(arm func(wake func())) {
	j.check()
	arm(j.resume)
	if !j.yield(struct{}{}) {
		panic(errEnded)
	}
}

// Client returns the number of the process, from 0.
func (j *Job) Client() int { return j.c.ID() }

// Now returns how long the process has run, by its own clock.
func (j *Job) Now() time.Duration { return j.c.Now().Sub(j.began) }

// Sleep waits for d by the process's clock, and longer if it is paused.
func (j *Job) Sleep(d time.Duration) {
	j.wait(func(wake func()) { j.c.After(d, wake) })
}

// Intn draws a number from 0 to n-1. It panics if n is below 1.
func (j *Job) Intn(n int) int {
	j.check()
	if n < 1 {
		panic("quorumsim: Intn of less than 1")
	}
	return int(j.c.Choose(uint64(n)))
}

// Log adds a line to the history.
func (j *Job) Log(format string, args ...any) {
	j.check()
	j.r.add(Event{What: Logs, Client: j.c.ID(), Text: fmt.Sprintf(format, args...)})
}

// Write sends a write to a resource, under a token, and waits until the
// resource has taken it or, with [ErrStale], refused it. It does not look at
// any lease. The process may be paused before the write leaves, and the write
// takes its time to arrive: what becomes of the lease meanwhile only a fence
// notices. A resource comes into being by its first write, and belongs to one
// key, since tokens of different keys mean nothing to each other.
func (j *Job) Write(resource string, token int64) error {
	var taken bool
	e := Event{Client: j.c.ID(), Resource: resource, Token: token}
	j.wait(func(wake func()) {
		j.c.After(0, func() { // a pause may come here
			e.What = Writes
			j.r.add(e)
			j.c.Send(func() { taken = j.r.write(e) }, wake)
		})
	})
	if !taken {
		return fmt.Errorf("%w: %s refused token %d", ErrStale, resource, token)
	}
	return nil
}
