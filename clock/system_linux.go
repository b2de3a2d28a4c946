package clock

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of clock_gettime(2): like CLOCK_MONOTONIC,
// and it goes on while the machine is suspended.
const clockBoottime = 7

// System returns the clock that leases use by default: on Linux
// CLOCK_BOOTTIME, which counts the time the machine sleeps, to 10 µs. Inside a
// testing/synctest bubble it is the true time and not the bubble's.
func System() Clock {
	if origin == origin.Round(0) { // the process began while the wall clock showed an absurd year, see readGo
		return machine{}
	}
	return process
}

// Machine returns a clock whose readings all processes of this machine share,
// for a store that writes them down: on Linux CLOCK_BOOTTIME itself.
func Machine() Clock { return machine{} }

type machine struct{}

func (machine) Now() Instant { return boottime() }

func boottime() Instant {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		// Linux has had the clock since 2.6.39; a sandbox that forbids it
		// leaves no way to tell the time asleep, and a lease must not outlive it.
		panic("clock: clock_gettime(CLOCK_BOOTTIME): " + errno.Error())
	}
	return Instant(time.Duration(ts.Sec)*time.Second + time.Duration(ts.Nsec))
}

var process = newSystem(readGo, boottime)

var origin = time.Now()

// readGo reads the wall clock, in nanoseconds since 1970, and CLOCK_MONOTONIC.
// The second is not to be had in a synctest bubble, nor where the wall clock
// shows an absurd year: Go drops it there.
func readGo() (wall int64, up Instant, ok bool) {
	t := time.Now()
	return t.UnixNano(), Instant(t.Sub(origin)), t != t.Round(0)
}

// system is CLOCK_BOOTTIME, which costs a system call where Go's two own
// readings cost none, and is read with every answer. It is CLOCK_MONOTONIC and
// the time asleep so far; and when the machine sleeps, the wall clock goes on
// and CLOCK_MONOTONIC does not. So while the two keep their distance, to within
// near, the time asleep is what it was, and else it is looked up. The one sleep
// that would be missed is one of which the wall clock was set back by as much,
// to within near, before the clocks were compared again.
type system struct {
	read func() (wall int64, up Instant, ok bool)
	boot func() Instant
	seen atomic.Pointer[distances]
}

// distances between the clocks, as they were last looked up: of the wall clock
// from CLOCK_MONOTONIC, and of CLOCK_BOOTTIME.
type distances struct{ wall, asleep int64 }

const near = int64(10 * time.Microsecond)

func newSystem(read func() (int64, Instant, bool), boot func() Instant) *system {
	s := &system{read: read, boot: boot}
	s.seen.Store(&distances{})
	return s
}

// Now implements [Clock].
func (s *system) Now() Instant {
	wall, up, ok := s.read() // a sleep between the two is seen now, or at the next reading
	if !ok {
		return s.boot()
	}
	seen := s.seen.Load()
	if off := wall - int64(up) - seen.wall; off > near || off < -near {
		return s.look(wall, up, seen)
	}
	return up + Instant(seen.asleep)
}

// look looks the time asleep up. A sleep between any two of its readings leaves
// distances behind that the next Now does not find, so that it looks again.
func (s *system) look(wall int64, up Instant, seen *distances) Instant {
	boot := s.boot()
	_, after, _ := s.read()
	if int64(after-up) > near { // it was held up: another reading may do better
		return max(boot, up+Instant(seen.asleep))
	}
	asleep := int64(boot - up) // or less, by what passed between the two
	if off := asleep - seen.asleep; off <= near && off >= -near {
		asleep = seen.asleep // the wall clock was set, and this one must not go back
	}
	s.seen.CompareAndSwap(seen, &distances{wall - int64(up), asleep})
	return up + Instant(asleep)
}
