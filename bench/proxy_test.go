//go:build unix

package bench

import (
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands before a server and holds back every byte for a while, each way,
// as a longer wire would. It lives until the test ends.
func proxy(tb testing.TB, server string, delay time.Duration) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var all sync.WaitGroup
	var open sync.Map // net.Conn
	tb.Cleanup(func() {
		_ = l.Close()
		open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			open.Store(client, nil)
			open.Store(behind, nil)
			all.Go(func() { carry(behind, client, delay) })
			all.Go(func() { carry(client, behind, delay) })
		}
	})
	return l.Addr().String()
}

// late is what is on the wire.
type late struct {
	due  time.Time
	data []byte
}

// carry passes on what comes from one side. Both sides are closed at the end.
func carry(to, from net.Conn, delay time.Duration) {
	wire := make(chan late, 1024)
	var sender sync.WaitGroup
	sender.Go(func() {
		for l := range wire {
			<-time.After(time.Until(l.due))
			if _, err := to.Write(l.data); err != nil {
				_ = from.Close()
			}
		}
		_ = to.Close()
	})
	room := make([]byte, 64<<10)
	for {
		n, err := from.Read(room)
		if n > 0 {
			wire <- late{time.Now().Add(delay), append([]byte(nil), room[:n]...)}
		}
		if err != nil { // io.EOF, or the other direction has closed it
			break
		}
	}
	close(wire)
	sender.Wait()
	_ = from.Close()
}
