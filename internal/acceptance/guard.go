//go:build unix

package acceptance

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Guard watches who is inside. It knows nothing of locks. The zero Guard has
// seen nobody.
type Guard struct {
	mu      sync.Mutex
	inside  int // writers
	readers int
	last    int64 // the highest token
	wrote   int64 // and the highest of a writer
	n       int
	wrong   []string

	visitors []*visitor
	expected int           // visitors, who begin together
	gathered chan struct{} // closed once they are all there
	turns    Turns
}

// Turns is in what order those came in who asked again and again.
type Turns struct {
	// Waits is, for each entry, how many others came in since it was asked for.
	Waits []int
	// Fewest and Most are a visitor's entries when the first had all of its own.
	Fewest, Most int
}

// Judge demands that waiters who are served in the order of asking came in by
// turns. Whoever is not given a processor for the length of its turn loses it
// and comes back to its place, so that five entries in a hundred may come late;
// in no order some twenty would.
func (o Turns) Judge(t *testing.T, waiters int) {
	t.Helper()
	waits := slices.Sorted(slices.Values(o.Waits))
	longest, usual := waits[len(waits)-1], waits[len(waits)*95/100]
	t.Logf("%d waiters came in %d to %d times, and waited for %d others at most, but for 5 in 100 for %d",
		waiters, o.Fewest, o.Most, longest, usual)
	if o.Most-o.Fewest > 4+o.Most/20 || usual > waiters*13/10+2 {
		t.Errorf("R13: %d waiters came in %d to %d times, and waited, but for 5 in 100, for %d others at most", waiters, o.Fewest, o.Most, usual)
	}
}

// visitor is one who asks the guard's lock, over a connection of its own.
type visitor struct {
	asked, entries int
}

// Enter hears that somebody came in, with a token.
func (g *Guard) Enter(token int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token <= g.last {
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d with token %d after %d", g.n, token, g.last))
	}
	if g.inside++; g.inside > 1 || g.readers > 0 {
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d: %d inside, and %d readers", g.n, g.inside, g.readers))
	}
	g.last, g.wrote = token, token
	g.n++
}

// Read hears that a reader came in, with a token.
func (g *Guard) Read(token int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token <= g.wrote {
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d, of a reader, with token %d after a writer's %d", g.n, token, g.wrote))
	}
	if g.readers++; g.inside > 0 {
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d, of a reader: a writer is inside", g.n))
	}
	g.last = max(g.last, token)
	g.n++
}

// Leave hears that a writer went out.
func (g *Guard) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
}

// Unread hears that a reader did.
func (g *Guard) Unread() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readers--
}

// Entries returns how many came in.
func (g *Guard) Entries() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// Judge demands n entries and nothing wrong with them.
func (g *Guard) Judge(t *testing.T, n int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n != n {
		t.Errorf("%d entries, want %d", g.n, n)
	}
	for _, wrong := range g.wrong {
		t.Error(wrong)
	}
}

// Turns returns who came in how often and after how long.
func (g *Guard) Turns() Turns {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turns
}

// listen lets other processes tell the guard, and returns where.
func (g *Guard) listen(t *testing.T, visitors int) (path string) {
	t.Helper()
	g.expected, g.gathered = visitors, make(chan struct{})
	path = filepath.Join(t.TempDir(), "guard")
	listen, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listen.Close() })
	go func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return // closed with the test
			}
			go g.serve(t.Context(), conn)
		}
	}()
	return path
}

func (g *Guard) serve(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	v := g.welcome()
	select {
	case <-g.gathered:
	case <-ctx.Done():
		return
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		g.hear(v, lines.Text())
		if _, err := fmt.Fprintln(conn, "ok"); err != nil {
			return
		}
	}
}

func (g *Guard) welcome() *visitor {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := &visitor{}
	g.visitors = append(g.visitors, v)
	if len(g.visitors) == g.expected {
		close(g.gathered)
	}
	return v
}

func (g *Guard) hear(v *visitor, line string) {
	switch line {
	case "ask":
		g.mu.Lock()
		v.asked = g.n
		g.mu.Unlock()
		return
	case "leave":
		g.Leave()
		return
	case "unread":
		g.Unread()
		return
	case "done":
		g.done()
		return
	}
	text, reads := strings.CutPrefix(line, "read ")
	token, err := strconv.ParseInt(strings.TrimPrefix(text, "enter "), 10, 64)
	if err != nil {
		g.mu.Lock()
		g.wrong = append(g.wrong, "unreadable: "+line)
		g.mu.Unlock()
	}
	if reads {
		g.Read(token)
	} else {
		g.Enter(token)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	v.entries++
	g.turns.Waits = append(g.turns.Waits, g.n-1-v.asked)
}

// done hears that somebody had all its entries.
func (g *Guard) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turns.Most > 0 {
		return // not the first
	}
	g.turns.Fewest = g.n
	for _, v := range g.visitors {
		g.turns.Fewest, g.turns.Most = min(g.turns.Fewest, v.entries), max(g.turns.Most, v.entries)
	}
}
