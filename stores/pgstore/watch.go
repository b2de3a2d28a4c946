package pgstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quorumlock/quorum"
)

// Bounds on the connection that listens.
const (
	standLimit = 5 * time.Second // until it is connected, listens and has heard itself
	closeLimit = time.Second
	redials    = 6                     // after it broke; then the watches end with an error
	redialWait = 50 * time.Millisecond // before the first, doubled each time
)

// errDeaf says that LISTEN succeeded and nothing came.
var errDeaf = errors.New("LISTEN is answered and delivers nothing, as behind a pooler in transaction mode; " +
	"give a direct address with ListenOn")

// hub shares one listening connection among all watches of a store. It exists
// while there are any.
type hub struct {
	mu      sync.Mutex
	watches map[string]map[*watch]struct{} // by the notification's payload
	count   int
	stands  bool
	stop    context.CancelFunc
	ended   chan struct{} // closed when the present listener is gone
}

// watch is one call of Watch.
type watch struct {
	tell  func(quorum.Wake)
	stood bool       // it was told that it stands
	gone  chan error // gets why the listener gave up
}

// Watch implements [quorum.Watcher]. It tells of what ends a vote after an
// Acquire that left a mark, and of every row deleted by hand; of a vote whose
// time is over nobody tells. After a broken connection it tells of a change,
// because one may have been missed.
func (s *Store) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	if err := s.check(verbWatch, &r); err != nil {
		return err
	}
	if !s.limits.Watches {
		return s.wrap(verbWatch, r.Key, fmt.Errorf("%w: the driver of the *sql.DB cannot listen; use ListenOn", quorum.ErrUnsupported))
	}
	w := &watch{tell: tell, gone: make(chan error, 1)}
	name := hex.EncodeToString([]byte(r.Key))
	if !s.join(ctx, name, w) {
		return nil
	}
	defer s.leave(name, w)
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.gone:
		return s.wrap(verbWatch, r.Key, explain(err, s.schema, true))
	}
}

// join adds a watch, and starts to listen if it is the first. It is false when
// ctx ended.
func (s *Store) join(ctx context.Context, name string, w *watch) bool {
	h := &s.hub
	for {
		h.mu.Lock()
		if h.stop != nil || h.ended == nil {
			break
		}
		ended := h.ended // the listener before is on its way out
		h.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return false
		}
		h.mu.Lock()
		if h.ended == ended {
			h.ended = nil
		}
		h.mu.Unlock()
	}
	defer h.mu.Unlock()
	if h.watches == nil {
		h.watches = map[string]map[*watch]struct{}{}
	}
	if h.watches[name] == nil {
		h.watches[name] = map[*watch]struct{}{}
	}
	h.watches[name][w] = struct{}{}
	h.count++
	if h.stop == nil {
		listening, stop := context.WithCancel(context.WithoutCancel(ctx))
		h.stop, h.ended = stop, make(chan struct{})
		go s.listen(listening, h.ended)
	} else if h.stands {
		w.stood = true
		w.tell(quorum.Wake{Kind: quorum.WakeStarted})
	}
	return true
}

// leave removes a watch. The last one ends the listener and waits for it.
func (s *Store) leave(name string, w *watch) {
	h := &s.hub
	h.mu.Lock()
	delete(h.watches[name], w)
	if len(h.watches[name]) == 0 {
		delete(h.watches, name)
	}
	h.count--
	var ended chan struct{}
	if h.count == 0 && h.stop != nil {
		h.stop()
		h.stop, h.stands, ended = nil, false, h.ended
	}
	h.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// listen keeps one connection that hears, until ctx ends or it gives up.
func (s *Store) listen(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	wait, again := redialWait, false
	for tries := 0; ; {
		stood, err := s.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		if stood {
			tries, wait, again = 0, redialWait, true
		}
		if tries++; tries > redials || !again || errors.Is(err, errDeaf) {
			s.giveUp(err)
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait *= 2
	}
}

// giveUp ends all watches with an error.
func (s *Store) giveUp(err error) {
	h := &s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop != nil {
		h.stop()
	}
	h.stop, h.stands = nil, false
	for _, watches := range h.watches {
		for w := range watches {
			w.gone <- err
			delete(watches, w)
		}
	}
}

// hear connects, listens, and passes on what comes. stood says that it heard.
func (s *Store) hear(ctx context.Context) (stood bool, err error) {
	c, end, err := s.standUp(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	s.started()
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			s.hub.mu.Lock()
			s.hub.stands = false
			s.hub.mu.Unlock()
			return true, err
		}
		s.pass(n.Payload)
	}
}

// standUp returns a connection that has heard a notification sent through the
// store's own handle: only that shows that it hears what others send.
func (s *Store) standUp(ctx context.Context) (*pgx.Conn, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, standLimit)
	defer cancel()
	var c *pgx.Conn
	var end func()
	var err error
	if s.direct != nil {
		c, end, err = dial(ctx, s.direct)
	} else {
		c, end, err = s.db.listener(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	nonce := "? " + rand.Text()
	if _, err = c.Exec(ctx, s.text.listen, pgx.QueryExecModeSimpleProtocol); err == nil {
		var none string
		err = s.send(ctx, standLimit, s.text.ping, []any{nonce}, []any{&none})
	}
	for err == nil {
		n, failed := c.WaitForNotification(ctx)
		switch {
		case failed == nil && n.Payload == nonce:
			return c, end, nil
		case failed != nil && ctx.Err() == context.DeadlineExceeded:
			err = errDeaf
		default:
			err = failed
		}
	}
	end()
	return nil, nil, err
}

// started tells all watches that they stand, or that they do again.
func (s *Store) started() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.stands = true
	for _, watches := range s.hub.watches {
		for w := range watches {
			wake := quorum.Wake{Kind: quorum.WakeStarted}
			if w.stood {
				wake.Kind = quorum.WakeChanged
			}
			w.stood = true
			w.tell(wake)
		}
	}
}

// pass tells the watches of one name what a payload says: NAME that it changed,
// "turn NAME OWNER COUNTER" and "next NAME OWNER MICROSECONDS".
func (s *Store) pass(payload string) {
	name, wake := payload, quorum.Wake{Kind: quorum.WakeChanged}
	if words := strings.Split(payload, " "); len(words) == 4 {
		number, _ := strconv.ParseInt(words[3], 10, 64)
		name, wake.Owner = words[1], words[2]
		switch words[0] {
		case "turn":
			wake.Kind, wake.Counter = quorum.WakeTurn, number
		case "next":
			wake.Kind, wake.After = quorum.WakeNext, time.Duration(number)*time.Microsecond
		}
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for w := range s.hub.watches[name] {
		w.tell(wake)
	}
}

// closeSoon says goodbye, but does not wait for a server that hangs.
func closeSoon(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = c.Close(ctx)
}
