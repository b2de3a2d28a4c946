//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// killSlack is what a SIGKILL may take until the last process is gone.
	// The grace and it must fit in the margin.
	killSlack = 100 * time.Millisecond
	// lookEvery bounds how long a jump of the clock goes unnoticed: timers
	// stand still while the machine sleeps, and validity does not.
	lookEvery = time.Second
	// killEvery is how often SIGKILL is repeated, for what was forked meanwhile.
	killEvery = 10 * time.Millisecond
	// killLimit bounds the wait for processes that cannot be killed: stuck in
	// the kernel, or another user's.
	killLimit = 5 * time.Second
	// resumeAfter is when a stopped quorum that runs again looks after its job.
	// The kernel does not stop a process that no shell could resume: then it is
	// how soon the job goes on.
	resumeAfter = 100 * time.Millisecond
)

// holding is what supervising needs of a lease.
type holding interface {
	Context() context.Context
	Err() error
	Remaining() time.Duration
}

// lock is what running a command needs of a lease or a slot.
type lock interface {
	holding
	Key() string
	Token() int64
	Release(ctx context.Context) error
}

// job is what supervising needs of a running command and its descendants.
type job interface {
	Ended() <-chan syscall.WaitStatus // the command itself ended
	Gone() <-chan struct{}            // the command and all its descendants ended
	Stopped() <-chan struct{}         // the command was stopped, as by Ctrl-Z
	Command(sig syscall.Signal)       // signals the command alone
	Group(sig syscall.Signal)         // signals its process group
	All(sig syscall.Signal)           // signals all its descendants that can be found
	Suspend() bool                    // stops quorum as the job was stopped, if a shell may resume it
	Resume()                          // gives the job the terminal and lets it go on
}

// supervisor keeps a command inside the validity of its lease.
type supervisor struct {
	lease   holding
	job     job
	signals <-chan os.Signal
	margin  time.Duration // the command is told to stop when so much validity is left
	grace   time.Duration // and killed so much later
	warn    func(format string, args ...any)

	lost      error // why the command is being stopped; nil while it may run
	suspended bool  // quorum was stopped with the job, and the job still is
	kill      *time.Timer
}

// errUnkillable means that something of the command still runs.
var errUnkillable = errors.New("some of the command's processes could not be ended")

// run returns when the command has ended and, after a loss, when all that it
// started is gone. lost is nil if the command ran under the lock to its end.
// Processes that a command leaves behind on purpose are left alone when it
// ends by itself: they are not the command any more.
func (s *supervisor) run() (status syscall.WaitStatus, lost error) {
	s.kill = time.NewTimer(0)
	s.kill.Stop()
	look := time.NewTimer(0)
	defer look.Stop()
	defer s.kill.Stop()
	over := s.lease.Context().Done()
	ended := s.job.Ended()
	gone := (<-chan struct{})(nil) // of interest only after a loss
	giveUp := (<-chan time.Time)(nil)
	resume := (<-chan time.Time)(nil)
	for {
		select {
		case status = <-ended:
			ended = nil
			if s.lost == nil {
				return status, s.lease.Err()
			}
		case <-gone:
			if ended != nil {
				status = <-ended
			}
			s.job.All(syscall.SIGKILL) // where descendants cannot be waited for
			return status, s.lost
		case <-s.job.Stopped():
			if s.lost == nil && s.job.Suspend() {
				s.suspended = true
				resume = time.After(resumeAfter)
			}
		case <-resume:
			resume = nil
			s.resume()
		case sig := <-s.signals:
			s.forward(sig.(syscall.Signal))
		case <-over:
			over = nil
			s.stop(context.Cause(s.lease.Context()))
		case <-look.C:
			left := s.lease.Remaining()
			if left > s.margin {
				look.Reset(min(left-s.margin, lookEvery))
				continue
			}
			s.stop(s.why())
		case <-s.kill.C:
			s.job.All(syscall.SIGKILL)
			s.kill.Reset(killEvery)
			if giveUp == nil {
				giveUp = time.After(killLimit)
			}
		case <-giveUp:
			return status, errors.Join(s.lost, errUnkillable)
		}
		if s.lost != nil {
			gone = s.job.Gone()
		}
	}
}

// why says what is wrong with a lease whose validity is at its end.
func (s *supervisor) why() error {
	if err := s.lease.Err(); err != nil {
		return err
	}
	return fmt.Errorf("it could not be renewed, and its validity ends in %v", s.lease.Remaining().Round(time.Millisecond))
}

// stop tells the command to end and sets the time of its killing. It is never
// taken back: a command that was told to end cannot go on as if nothing were.
// A job that was stopped together with quorum is killed as it stands: nothing
// renewed meanwhile, and after the loss it must not run one more instruction,
// not even to clean up.
func (s *supervisor) stop(why error) {
	if s.lost != nil {
		return
	}
	s.lost = why
	if s.suspended {
		s.warn("lock lost while the job was stopped: %v; killing the command", why)
		s.kill.Reset(0)
		return
	}
	s.warn("lock lost: %v; ending the command, with SIGKILL after %v", why, s.grace)
	s.kill.Reset(s.grace)
	s.job.All(syscall.SIGTERM)
	s.job.All(syscall.SIGCONT) // a stopped process would not see the SIGTERM
}

// forward passes a signal on. What a terminal would send to a whole job goes
// to the process group; the user signals mean the command alone.
func (s *supervisor) forward(sig syscall.Signal) {
	switch sig {
	case syscall.SIGUSR1, syscall.SIGUSR2:
		s.job.Command(sig)
	case syscall.SIGCONT:
		s.resume()
	default:
		s.job.Group(sig)
	}
}

// resume lets a stopped job go on if it is still inside the validity.
func (s *supervisor) resume() {
	if s.suspended {
		if s.lease.Remaining() <= s.margin {
			s.stop(s.why())
		}
		if s.lost != nil {
			return
		}
		s.suspended = false
	}
	s.job.Resume()
}
