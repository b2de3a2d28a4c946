//go:build unix

package testserver

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands before a server as a network does that may hold packets back. It
// is safe for concurrent use, and ends with the test.
type Proxy struct {
	// Addr is its host and port.
	Addr string

	to    string
	ended chan struct{}

	mu     sync.Mutex
	passes chan struct{} // closed while it passes on what comes
	cold   time.Duration
	conns  map[net.Conn]struct{}
}

// NewProxy starts a proxy that passes on to a server at an address.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Addr: l.Addr().String(), to: to, ended: make(chan struct{}), passes: make(chan struct{}),
		conns: map[net.Conn]struct{}{},
	}
	close(p.passes)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		close(p.ended)
		p.Cut()
		all.Wait()
	})
	return p
}

// Silence has everything held back, each way, until Resume: connections stay
// open, new ones are accepted, and nobody is answered.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passes = make(chan struct{})
}

// Resume passes on what was held back, and what comes.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.passes)
}

// Cold has the first answer on each new connection take d longer.
func (p *Proxy) Cold(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cold = d
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// serve carries one connection, until either side closes it.
func (p *Proxy) serve(client net.Conn) {
	defer p.close(client)
	server, err := net.DialTimeout("tcp", p.to, stopLimit)
	if err != nil {
		return
	}
	defer p.close(server)
	p.mu.Lock()
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	cold := p.cold
	p.mu.Unlock()
	select {
	case <-p.ended: // Cut may have come before
		return
	default:
	}
	var back sync.WaitGroup
	back.Go(func() {
		p.pass(client, server, cold)
		_ = client.Close()
	})
	p.pass(server, client, 0)
	_ = server.Close()
	back.Wait()
}

func (p *Proxy) close(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// pass carries one direction. What comes first is kept for a while.
func (p *Proxy) pass(to, from net.Conn, cold time.Duration) {
	room := make([]byte, 64<<10)
	for {
		n, err := from.Read(room)
		if n > 0 && p.hold(cold) {
			_, err = to.Write(room[:n])
		}
		if cold = 0; err != nil {
			return
		}
	}
}

// hold waits until what came may go on, and reports false when the proxy ended.
func (p *Proxy) hold(cold time.Duration) bool {
	p.mu.Lock()
	passes := p.passes
	p.mu.Unlock()
	select {
	case <-time.After(cold):
	case <-p.ended:
		return false
	}
	select {
	case <-passes:
		return true
	case <-p.ended:
		return false
	}
}
