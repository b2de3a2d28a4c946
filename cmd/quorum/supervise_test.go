//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fakeLease is valid until an instant, which a test may move or end.
type fakeLease struct {
	until  atomic.Int64 // Unix nanoseconds
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newFakeLease(valid time.Duration) *fakeLease {
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &fakeLease{ctx: ctx, cancel: cancel}
	l.validFor(valid)
	return l
}

func (l *fakeLease) validFor(d time.Duration) { l.until.Store(time.Now().Add(d).UnixNano()) }

func (l *fakeLease) Context() context.Context { return l.ctx }
func (l *fakeLease) Err() error               { return context.Cause(l.ctx) }
func (l *fakeLease) Remaining() time.Duration {
	if l.ctx.Err() != nil {
		return 0
	}
	return max(0, time.Until(time.Unix(0, l.until.Load())))
}

// fakeJob records what is done to it and when, and ends on the signals that
// it is told to end on.
type fakeJob struct {
	began   time.Time
	log     []string
	ended   chan syscall.WaitStatus
	gone    chan struct{}
	stopped chan struct{}
	suspend func()
	endsOn  []syscall.Signal
	dead    bool
}

func newFakeJob(endsOn ...syscall.Signal) *fakeJob {
	return &fakeJob{
		began: time.Now(), endsOn: endsOn, suspend: func() {}, ended: make(chan syscall.WaitStatus, 1),
		gone: make(chan struct{}), stopped: make(chan struct{}, 1),
	}
}

func (j *fakeJob) note(what string, sig syscall.Signal) {
	j.log = append(j.log, fmt.Sprintf("%v %s %d", time.Since(j.began), what, sig))
	if slices.Contains(j.endsOn, sig) && !j.dead {
		j.dead = true
		j.ended <- syscall.WaitStatus(sig)
		close(j.gone)
	}
}

func (j *fakeJob) Ended() <-chan syscall.WaitStatus { return j.ended }
func (j *fakeJob) Gone() <-chan struct{}            { return j.gone }
func (j *fakeJob) Stopped() <-chan struct{}         { return j.stopped }
func (j *fakeJob) Command(sig syscall.Signal)       { j.note("command", sig) }
func (j *fakeJob) Group(sig syscall.Signal)         { j.note("group", sig) }
func (j *fakeJob) All(sig syscall.Signal)           { j.note("all", sig) }
func (j *fakeJob) Suspend() bool                    { j.note("suspend", 0); j.suspend(); return true }
func (j *fakeJob) Resume()                          { j.note("resume", 0) }

func (j *fakeJob) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(j.log, want) {
		t.Errorf("the job saw\n%q, want\n%q", j.log, want)
	}
}

func supervise(l *fakeLease, j *fakeJob, signals <-chan os.Signal) (syscall.WaitStatus, error) {
	s := &supervisor{
		lease: l, job: j, signals: signals, margin: 3 * time.Second, grace: time.Second,
		warn: func(string, ...any) {},
	}
	return s.run()
}

func TestR67CommandIsToldToStopAtTheMarginAndKilledAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newFakeJob(syscall.SIGKILL)
		_, lost := supervise(newFakeLease(10*time.Second), j, nil)
		if lost == nil {
			t.Error("a lease that was not renewed is not reported as lost")
		}
		j.expect(t, "7s all 15", "7s all 18", "8s all 9", "8s all 9")
	})
}

func TestR67CommandThatObeysIsNotKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newFakeJob(syscall.SIGTERM)
		status, lost := supervise(newFakeLease(10*time.Second), j, nil)
		if lost == nil || exitCode(status) != 143 {
			t.Errorf("status %d, lost %v, want 143 and a loss", exitCode(status), lost)
		}
		j.expect(t, "7s all 15", "7s all 18", "7s all 9")
	})
}

func TestR67LossFromOutsideStopsTheCommandAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, j := newFakeLease(10*time.Second), newFakeJob(syscall.SIGKILL)
		taken := errors.New("taken over")
		time.AfterFunc(2*time.Second, func() { l.cancel(taken) })
		if _, lost := supervise(l, j, nil); !errors.Is(lost, taken) {
			t.Errorf("lost is %v, want the lease's cause", lost)
		}
		j.expect(t, "2s all 15", "2s all 18", "3s all 9", "3s all 9")
	})
}

func TestR67RenewedLeaseLetsTheCommandRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, j := newFakeLease(10*time.Second), newFakeJob()
		for i := range 100 {
			time.AfterFunc(time.Duration(i)*5*time.Second, func() { l.validFor(10 * time.Second) })
		}
		time.AfterFunc(8*time.Minute, func() { j.ended <- 7 << 8 })
		status, lost := supervise(l, j, nil)
		if lost != nil || exitCode(status) != 7 {
			t.Errorf("code %d, lost %v, want 7 and no loss", exitCode(status), lost)
		}
		j.expect(t)
	})
}

func TestR67CommandThatEndsAfterTheLossIsReportedAsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, j := newFakeLease(10*time.Second), newFakeJob()
		l.cancel(errors.New("taken over"))
		j.ended <- 0
		close(j.gone)
		if _, lost := supervise(l, j, nil); lost == nil {
			t.Error("the loss is not reported")
		}
	})
}

func TestR67UnkillableProcessIsReportedInBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, lost := supervise(newFakeLease(10*time.Second), newFakeJob(), nil)
		if !errors.Is(lost, errUnkillable) {
			t.Errorf("got %v, want errUnkillable", lost)
		}
		if took, want := time.Since(began), 8*time.Second+killLimit; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

func TestR68SignalsReachTheCommandOrItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newFakeJob(syscall.SIGTERM)
		signals := make(chan os.Signal, 8)
		for i, sig := range []syscall.Signal{
			syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGINT, syscall.SIGCONT, syscall.SIGTERM,
		} {
			time.AfterFunc(time.Duration(i+1)*time.Second/10, func() { signals <- sig })
		}
		status, lost := supervise(newFakeLease(10*time.Second), j, signals)
		if lost != nil || exitCode(status) != 143 {
			t.Errorf("code %d, lost %v, want 143 and no loss", exitCode(status), lost)
		}
		j.expect(t, "100ms command 10", "200ms command 12", "300ms group 1", "400ms group 3", "500ms group 2",
			"600ms resume 0", "700ms group 15")
	})
}

// While quorum stands still nothing renews. When it runs again its timers and
// signals are due at once, and in whatever order it sees them the job must
// be killed as it stands.
func TestF008ResumedJobThatLostItsLockIsKilledBeforeItGoesOn(t *testing.T) {
	for range 50 { // the order is random
		synctest.Test(t, func(t *testing.T) {
			l, j := newFakeLease(10*time.Second), newFakeJob(syscall.SIGKILL)
			signals := make(chan os.Signal, 1)
			j.suspend = func() {
				l.validFor(0)
				signals <- syscall.SIGCONT
				time.Sleep(time.Minute)
			}
			time.AfterFunc(time.Second/2, func() { j.stopped <- struct{}{} })
			if _, lost := supervise(l, j, signals); lost == nil {
				t.Error("the loss is not reported")
			}
			j.expect(t, "500ms suspend 0", "1m0.5s all 9", "1m0.5s all 9")
		})
	}
}

func TestStoppedJobGoesOnWhenItStillHoldsItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newFakeJob()
		time.AfterFunc(time.Second, func() { j.stopped <- struct{}{} })
		time.AfterFunc(2*time.Second, func() { j.ended <- 0 })
		if _, lost := supervise(newFakeLease(10*time.Second), j, nil); lost != nil {
			t.Errorf("lost: %v", lost)
		}
		j.expect(t, "1s suspend 0", "1.1s resume 0")
	})
}
