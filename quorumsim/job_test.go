package quorumsim_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/quorumsim"
)

// play runs one client's job, or several clients'.
func play(t *testing.T, cfg quorumsim.Config, jobs ...func(*quorumsim.Job)) *quorumsim.Report {
	t.Helper()
	cfg.Clients = len(jobs)
	cfg.Job = func(j *quorumsim.Job) { jobs[j.Client()](j) }
	r, err := quorumsim.Run(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
	return r
}

func hold(j *quorumsim.Job) {
	if _, err := j.Acquire("key", quorumsim.Ask{}); err != nil {
		panic(err)
	}
	j.Sleep(time.Hour)
}

func TestJobAcquireErrors(t *testing.T) {
	var try, wait, outage, beside error
	r := play(t, quorumsim.Config{}, hold, func(j *quorumsim.Job) {
		j.Sleep(time.Second)
		_, try = j.Acquire("key", quorumsim.Ask{Try: true})
		began := j.Now()
		_, wait = j.Acquire("key", quorumsim.Ask{Wait: 3 * time.Second})
		if took := j.Now() - began; took < 3*time.Second || took > 3200*time.Millisecond {
			t.Errorf("waited %v, want 3s and at most the roll-back", took)
		}
		_, beside = j.Acquire("key", quorumsim.Ask{Shared: true, Try: true})
	})
	if !errors.Is(try, quorumsim.ErrHeld) || !errors.Is(wait, quorumsim.ErrHeld) || !errors.Is(beside, quorumsim.ErrHeld) {
		t.Errorf("try %v, wait %v, shared %v: want ErrHeld", try, wait, beside)
	}
	if r.Asked != 4 || r.Acquired != 1 || r.Failed != 3 {
		t.Errorf("counts: %v", r)
	}
	dark := []quorumsim.Fault{{Kind: quorumsim.Partition, Stores: []int{0, 1, 2}}}
	play(t, quorumsim.Config{Faults: dark}, func(j *quorumsim.Job) {
		_, outage = j.Acquire("key", quorumsim.Ask{FailOnOutage: true})
	})
	var released error
	dark[0].From = 5 * time.Second
	play(t, quorumsim.Config{Faults: dark}, func(j *quorumsim.Job) {
		l, err := j.Acquire("key", quorumsim.Ask{})
		if err != nil {
			t.Error(err)
			return
		}
		j.Sleep(6 * time.Second)
		released = l.Release()
	})
	if !errors.Is(released, quorumsim.ErrNoQuorum) {
		t.Errorf("released in an outage: %v, want ErrNoQuorum", released)
	}
	if !errors.Is(outage, quorumsim.ErrNoQuorum) || errors.Is(outage, quorumsim.ErrHeld) {
		t.Errorf("outage: %v, want ErrNoQuorum", outage)
	}
}

func TestJobLeaseOfReaders(t *testing.T) {
	both := 0
	reader := func(j *quorumsim.Job) {
		l, err := j.Acquire("key", quorumsim.Ask{Shared: true, Try: true})
		if err != nil {
			t.Error(err)
			return
		}
		j.Sleep(time.Second)
		if l.Err() == nil {
			both++
		}
		j.Sleep(time.Second)
	}
	play(t, quorumsim.Config{}, reader, reader)
	if both != 2 {
		t.Errorf("%d readers held at once, want 2", both)
	}
}

func TestJobLease(t *testing.T) {
	r := play(t, quorumsim.Config{TTL: 9 * time.Second}, func(j *quorumsim.Job) {
		l, err := j.Acquire("key", quorumsim.Ask{NoRenew: true})
		if err != nil {
			t.Error(err)
			return
		}
		// Three stores one after another, 2 ms each; 1 % and 2 ms of drift.
		if left, want := l.Remaining(), 9*time.Second-92*time.Millisecond-6*time.Millisecond; left != want {
			t.Errorf("%v remain, want %v", left, want)
		}
		if l.Key() != "key" || l.Token() <= 0 || l.Err() != nil {
			t.Errorf("key %s, token %d, %v", l.Key(), l.Token(), l.Err())
		}
		if err := l.Extend(20 * time.Second); err != nil || l.Remaining() < 19*time.Second {
			t.Errorf("extended: %v, %v remain", err, l.Remaining())
		}
		if err := l.Sleep(5 * time.Second); err != nil {
			t.Errorf("slept: %v", err)
		}
		if err := l.Release(); err != nil {
			t.Errorf("released: %v", err)
		}
		for _, err := range []error{l.Err(), l.Extend(time.Second), l.Sleep(time.Second)} {
			if !errors.Is(err, quorumsim.ErrReleased) {
				t.Errorf("%v, want ErrReleased", err)
			}
		}
		if err := l.Release(); err != nil || l.Remaining() != 0 {
			t.Errorf("released again: %v, %v remain", err, l.Remaining())
		}
		short, err := j.Acquire("key", quorumsim.Ask{MaxHold: 4 * time.Second})
		if err != nil {
			t.Error(err)
			return
		}
		began := j.Now()
		if err := short.Sleep(time.Minute); !errors.Is(err, quorumsim.ErrLost) || !strings.Contains(err.Error(), "max hold") || j.Now()-began != 4*time.Second {
			t.Errorf("after %v: %v, want a loss by max hold after 4s", j.Now()-began, err)
		}
		if err := short.Release(); !errors.Is(err, quorumsim.ErrLost) {
			t.Errorf("released after the loss: %v, want ErrLost", err)
		}
		if short.Token() <= l.Token() {
			t.Errorf("token %d after %d", short.Token(), l.Token())
		}
	})
	if r.Acquired != 2 || r.Lost != 1 {
		t.Error(r)
	}
}

// Who is cut off loses the lease by its own clock, and hears of it in a wait.
func TestJobIsToldOfTheLoss(t *testing.T) {
	cut := []quorumsim.Fault{{Kind: quorumsim.Partition, From: 5 * time.Second, To: 40 * time.Second, Stores: []int{0, 1, 2}, Clients: []int{0}}}
	var extended, lost, released error
	play(t, quorumsim.Config{TTL: 6 * time.Second, Faults: cut}, func(j *quorumsim.Job) {
		l, err := j.Acquire("key", quorumsim.Ask{})
		if err != nil {
			t.Error(err)
			return
		}
		j.Sleep(6 * time.Second)
		extended = l.Extend(10 * time.Second)
		lost = l.Sleep(time.Minute)
		if j.Now() < 8*time.Second || j.Now() > 12*time.Second {
			t.Errorf("lost after %v, want it within a TTL of the cut", j.Now())
		}
		released = l.Release()
	})
	if !errors.Is(extended, quorumsim.ErrNoQuorum) || !errors.Is(lost, quorumsim.ErrLost) || !errors.Is(released, quorumsim.ErrLost) {
		t.Errorf("extended %v, lost %v, released %v", extended, lost, released)
	}
}

// A killed process goes no further than where it was, and begins anew; what it
// held is free after the TTL.
func TestJobIsKilled(t *testing.T) {
	kill := []quorumsim.Fault{{Kind: quorumsim.Kill, From: 5 * time.Second, To: 8 * time.Second, Clients: []int{0}}}
	lives, beyond, unwound := 0, false, false
	var acquired []time.Duration
	r := play(t, quorumsim.Config{TTL: 10 * time.Second, Faults: kill}, func(j *quorumsim.Job) {
		if lives++; lives == 2 && !unwound {
			t.Error("the first life was not over when the second began")
		}
		defer func() { unwound = true }()
		l, err := j.Acquire("key", quorumsim.Ask{})
		if err != nil {
			t.Error(err)
			return
		}
		defer func() {
			_ = l.Release() // cannot do anything any more in the first life
			beyond = beyond || lives == 1
		}()
		acquired = append(acquired, j.Now())
		j.Sleep(20 * time.Second)
		beyond = beyond || lives == 1
	})
	if lives != 2 || beyond || !unwound || len(acquired) != 2 {
		t.Errorf("%d lives, beyond %v, unwound %v, acquired %v", lives, beyond, unwound, acquired)
	}
	// Killed at 5 s, renewed before at 3.3 s or later: free by 15 s, and the
	// second life began at 8 s.
	if took := acquired[1]; took < 4*time.Second || took > 9*time.Second {
		t.Errorf("the second life got the lock after %v", took)
	}
	dead := slices.ContainsFunc(r.History, func(e quorumsim.Event) bool { return e.What == quorumsim.Dies && e.At == 5*time.Second })
	if !dead || r.Acquired != 2 {
		t.Errorf("death in the history %v, %v", dead, r)
	}
}

// A write outlives its process; what comes of it reaches nobody.
func TestJobDiesWhileItWrites(t *testing.T) {
	kill := []quorumsim.Fault{{Kind: quorumsim.Kill, From: 5 * time.Second, To: 9 * time.Second}}
	lives, beyond := 0, false
	r := play(t, quorumsim.Config{Latency: 400 * time.Millisecond, Faults: kill}, func(j *quorumsim.Job) {
		if lives++; lives > 1 {
			return
		}
		l, err := j.Acquire("key", quorumsim.Ask{})
		if err != nil {
			t.Error(err)
			return
		}
		j.Sleep(4900*time.Millisecond - j.Now())
		_ = j.Write("resource", l.Token())
		beyond = true
	})
	if lives != 2 || beyond || r.Taken != 1 {
		t.Errorf("%d lives, beyond %v, %d writes taken; want 2, false, 1", lives, beyond, r.Taken)
	}
}

// A job that returns gives back what it holds.
func TestJobReturns(t *testing.T) {
	r := play(t, quorumsim.Config{}, func(j *quorumsim.Job) {
		_, _ = j.Acquire("key", quorumsim.Ask{})
	}, func(j *quorumsim.Job) {
		j.Sleep(time.Second)
		if _, err := j.Acquire("key", quorumsim.Ask{Try: true}); err != nil {
			t.Errorf("a second after the holder returned: %v", err)
		}
	})
	if r.Acquired != 2 {
		t.Error(r)
	}
}

func TestJobWrites(t *testing.T) {
	r := play(t, quorumsim.Config{NoFence: []string{"open"}}, func(j *quorumsim.Job) {
		l, err := j.Acquire("key", quorumsim.Ask{})
		if err != nil {
			t.Error(err)
			return
		}
		if err := j.Write("fenced", l.Token()); err != nil {
			t.Error(err)
		}
		_ = l.Release()
		next, err := j.Acquire("key", quorumsim.Ask{})
		if err != nil {
			t.Error(err)
			return
		}
		if err := j.Write("fenced", next.Token()); err != nil {
			t.Error(err)
		}
		if err := j.Write("fenced", l.Token()); !errors.Is(err, quorumsim.ErrStale) {
			t.Errorf("the old token: %v, want ErrStale", err)
		}
		if err := j.Write("open", l.Token()); err != nil {
			t.Errorf("the old token without a fence: %v", err)
		}
	})
	if r.Taken != 3 || r.Refused != 1 {
		t.Error(r)
	}
}

// Whatever ends a run, no coroutine is left behind.
func TestJobEndsWithItsRun(t *testing.T) {
	before := runtime.NumGoroutine()
	boom := func(j *quorumsim.Job) {
		j.Sleep(time.Second)
		panic("boom")
	}
	cfg := quorumsim.Config{Clients: 2, Job: func(j *quorumsim.Job) { [...]func(*quorumsim.Job){hold, boom}[j.Client()](j) }}
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v, want the job's own panic", p)
			}
		}()
		_, _ = quorumsim.Run(cfg, 1)
	}()
	ended := make(chan struct{})
	cfg.Job = func(j *quorumsim.Job) {
		if j.Client() == 1 {
			runtime.Goexit() // as t.Fatal does
		}
		hold(j)
	}
	go func() {
		defer close(ended)
		_, _ = quorumsim.Run(cfg, 1)
		t.Error("Run went on after Goexit in a job")
	}()
	<-ended
	play(t, quorumsim.Config{}, hold, hold)
	for range 1000 { // the goroutine above may not be gone at once
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestJobIsForItsOwnFunction(t *testing.T) {
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "used from elsewhere") {
			t.Errorf("recovered %q", p)
		}
	}()
	var other *quorumsim.Job
	play(t, quorumsim.Config{}, func(j *quorumsim.Job) {
		other = j
		j.Sleep(time.Minute)
	}, func(j *quorumsim.Job) {
		j.Sleep(time.Second)
		other.Sleep(time.Second)
	})
}
