//go:build unix

package acceptance

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Guard watches who is inside. It knows nothing of locks. The zero Guard has
// seen nobody.
type Guard struct {
	mu     sync.Mutex
	inside int
	last   int64
	n      int
	wrong  []string
}

// Enter hears that somebody came in, with a token.
func (g *Guard) Enter(token int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token <= g.last {
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d with token %d after %d", g.n, token, g.last))
	}
	if g.inside++; g.inside > 1 {
		g.wrong = append(g.wrong, fmt.Sprintf("entry %d: %d inside", g.n, g.inside))
	}
	g.last = token
	g.n++
}

// Leave hears that somebody went out.
func (g *Guard) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
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

// listen lets other processes tell the guard, and returns where.
func (g *Guard) listen(t *testing.T) (path string) {
	t.Helper()
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
			go g.serve(conn)
		}
	}()
	return path
}

func (g *Guard) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		g.hear(lines.Text())
		if _, err := fmt.Fprintln(conn, "ok"); err != nil {
			return
		}
	}
}

func (g *Guard) hear(line string) {
	if line == "leave" {
		g.Leave()
		return
	}
	token, err := strconv.ParseInt(strings.TrimPrefix(line, "enter "), 10, 64)
	if err != nil {
		g.mu.Lock()
		g.wrong = append(g.wrong, "unreadable: "+line)
		g.mu.Unlock()
	}
	g.Enter(token)
}
