package mw

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"

	"github.com/quorumlock/quorum"
)

// guarded begins no response under a lock that is lost: what would begin it has
// the request refused instead. It looks when the handler acts and when it
// returns, and never from another goroutine, so that it races with nothing.
type guarded struct {
	http.ResponseWriter
	lease  *quorum.Lease
	before http.Header // as it was when the handler got it
	refuse func(http.ResponseWriter, error)
	begun  bool
	lost   error // after the refusal
}

// allow returns nil if the handler's response may go out or has begun.
func (g *guarded) allow() error {
	if g.begun || g.lost != nil {
		return g.lost
	}
	err := g.lease.Err()
	if !errors.Is(err, quorum.ErrLost) { // also of a handler that released it
		return nil
	}
	g.lost = fmt.Errorf("mw: the request was refused, and nothing of this response is sent: %w", err)
	clear(g.Header()) // what the handler said is of no response that is sent
	maps.Copy(g.Header(), g.before)
	g.refuse(g.ResponseWriter, err)
	return g.lost
}

func (g *guarded) Write(b []byte) (int, error) {
	if err := g.allow(); err != nil {
		return 0, err
	}
	g.begun = true
	return g.ResponseWriter.Write(b)
}

func (g *guarded) WriteHeader(status int) {
	if g.allow() != nil {
		return
	}
	// A status below 200 comes before a response, but for the change of protocols.
	g.begun = g.begun || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	g.ResponseWriter.WriteHeader(status)
}

// Flush is for handlers that look for an [http.Flusher].
func (g *guarded) Flush() { _ = g.FlushError() }

// FlushError is what [http.ResponseController.Flush] calls.
func (g *guarded) FlushError() error {
	if err := g.allow(); err != nil {
		return err
	}
	err := http.NewResponseController(g.ResponseWriter).Flush()
	g.begun = g.begun || !errors.Is(err, http.ErrNotSupported)
	return err
}

// Hijack is that of an [http.Hijacker]: what is taken over is no longer refused.
func (g *guarded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := g.allow(); err != nil {
		return nil, nil, err
	}
	conn, buffer, err := http.NewResponseController(g.ResponseWriter).Hijack()
	g.begun = g.begun || err == nil
	return conn, buffer, err
}

// Unwrap lets an [http.ResponseController] find what else the writer can do.
func (g *guarded) Unwrap() http.ResponseWriter { return g.ResponseWriter }
