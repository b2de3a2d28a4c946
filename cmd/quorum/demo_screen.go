package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/quorumlock/quorum"
)

// screen shows the demo: at a terminal who holds the lock stands in one line
// that is written over, elsewhere each change is a line of its own.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	began    time.Time
	now      string // the line at the bottom
	state    string // of the nodes
	count    int
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, began: time.Now()}
	if f, ok := out.(*os.File); ok {
		s.terminal = term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	}
	return s
}

// line writes a line as it is.
func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(fmt.Sprintf(format, args...))
}

// event writes a line with the time.
func (s *screen) event(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(s.stamp() + fmt.Sprintf(format, args...))
}

func (s *screen) holds(worker int, lease *quorum.Lease, waited time.Duration) {
	text := fmt.Sprintf("worker %d holds, token %d, votes %s, after %v", worker, lease.Token(), votes(lease), waited.Round(time.Millisecond))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.status(text)
}

func (s *screen) free(worker int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		s.status(fmt.Sprintf("worker %d gave the lock back", worker))
	}
}

// nodes keeps the state of the nodes for the line at the bottom.
func (s *screen) nodes(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

// done removes the line at the bottom.
func (s *screen) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	s.now = ""
}

// status changes the line at the bottom, or writes one.
func (s *screen) status(text string) {
	if !s.terminal {
		s.print(s.stamp() + text)
		return
	}
	s.now = fmt.Sprintf("%s[%s] %d times; %s", s.stamp(), s.state, s.count, text)
	fmt.Fprint(s.out, "\r\x1b[K"+s.now)
}

// print writes a line above the one at the bottom.
func (s *screen) print(text string) {
	if s.terminal {
		text = "\r\x1b[K" + text
	}
	fmt.Fprintln(s.out, text)
	if s.terminal {
		fmt.Fprint(s.out, s.now)
	}
}

func (s *screen) stamp() string { return fmt.Sprintf("%6.2f  ", time.Since(s.began).Seconds()) }

// votes lists the stores that granted.
func votes(lease *quorum.Lease) string {
	text := ""
	for _, v := range lease.Votes() {
		if v.Outcome != quorum.OutcomeGranted {
			continue
		}
		if text != "" {
			text += " "
		}
		text += v.Store
	}
	return text
}
