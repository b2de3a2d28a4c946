package redisstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// hub is the subscriptions of a store: one connection, and one goroutine that
// receives from it. Both end a pulse after the last watch, or with close.
type hub struct {
	own string // this store's own channel, on which its waiters are told their turns

	mu     sync.Mutex
	topics map[string]*topic
	plain  bool // this user may hear of names alone
	stands bool // the server has confirmed the own channel
	closed bool
	ctx    context.Context // nil when nothing runs
	cancel context.CancelFunc
	ended  chan struct{} // closed when the goroutine has ended

	sending sync.Mutex // held while subscriptions are sent, so that they keep their order
	sub     *redis.PubSub
	sent    map[string]bool // subscribed to on sub
}

// topic is one channel of the server.
type topic struct {
	watchers []*watcher
	stands   bool // the server has confirmed the subscription
	broken   bool // it stood before, so that something may have been missed
}

const (
	pulse   = time.Second            // a ping follows when nothing came for so long, and the end when it is not answered
	pause   = 100 * time.Millisecond // after a connection broke, doubled each time
	longest = 2 * time.Second        // such a pause
)

// join adds a watcher to topics, and reports false when the hub was closed.
func (h *hub) join(client redis.UniversalClient, names []string, w *watcher) bool {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return false
	}
	if h.ctx == nil {
		h.topics = map[string]*topic{}
		h.ctx, h.cancel = context.WithCancel(context.Background())
		h.ended = make(chan struct{})
		go h.run(h.ctx, client, h.ended)
	}
	for i, name := range names {
		t := h.topics[name]
		if t == nil {
			t = &topic{}
			h.topics[name] = t
		}
		t.watchers = append(t.watchers, w)
		if i == 0 && t.stands {
			w.tell(quorum.Wake{Kind: quorum.WakeStarted})
		}
	}
	ctx := h.ctx
	h.mu.Unlock()
	h.send(ctx)
	return true
}

// leave removes a watcher. Nothing is told to it any more.
func (h *hub) leave(names []string, w *watcher) {
	h.mu.Lock()
	for _, name := range names {
		t := h.topics[name]
		if t == nil {
			continue
		}
		t.watchers = slices.DeleteFunc(t.watchers, func(other *watcher) bool { return other == w })
		if len(t.watchers) == 0 {
			delete(h.topics, name)
		}
	}
	ctx := h.ctx
	h.mu.Unlock()
	if ctx != nil {
		h.send(ctx)
	}
}

// close ends the connection and waits for its goroutine.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	running, cancel, ended := h.ctx != nil, h.cancel, h.ended
	h.mu.Unlock()
	if !running {
		return
	}
	cancel()
	h.sending.Lock()
	if h.sub != nil {
		_ = h.sub.Close() // a receiver that waits does not heed its context
	}
	h.sending.Unlock()
	<-ended
}

// run receives, on one connection after another, until nobody watches any more.
func (h *hub) run(ctx context.Context, client redis.UniversalClient, ended chan struct{}) {
	defer close(ended)
	wait := pause
	for {
		err := h.receive(ctx, client, &wait)
		if err == nil {
			return
		}
		if why := h.hopeless(ctx, err); why != nil {
			h.end(why)
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, longest)
	}
}

// receive makes one connection and passes on what comes from it. It returns nil
// when nobody watches any more.
func (h *hub) receive(ctx context.Context, client redis.UniversalClient, wait *time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sub := client.Subscribe(ctx)
	h.sending.Lock()
	h.sub, h.sent = sub, map[string]bool{}
	h.sending.Unlock()
	defer h.drop(sub)
	h.send(ctx)
	asked := false
	for {
		got, err := sub.ReceiveTimeout(ctx, pulse)
		var timeout net.Error
		switch {
		case err == nil:
			asked = false
		case !errors.As(err, &timeout) || !timeout.Timeout() || ctx.Err() != nil || asked:
			return err
		case h.idle():
			return nil
		default:
			asked = true
			if err := sub.Ping(ctx); err != nil {
				return err
			}
		}
		switch m := got.(type) {
		case *redis.Subscription:
			*wait = pause
			if m.Kind == "subscribe" {
				h.stand(m.Channel)
			}
		case *redis.Message:
			h.tell(m.Channel, m.Payload)
		}
	}
}

// drop gives up a connection.
func (h *hub) drop(sub *redis.PubSub) {
	_ = sub.Close()
	h.sending.Lock()
	defer h.sending.Unlock()
	if h.sub != sub {
		return // a later life of the hub has one already
	}
	h.sub, h.sent = nil, nil
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stands = false
	for _, t := range h.topics {
		t.broken, t.stands = t.broken || t.stands, false
	}
}

// send brings the subscriptions of the connection to what is watched.
func (h *hub) send(ctx context.Context) {
	h.sending.Lock()
	defer h.sending.Unlock()
	if h.sub == nil {
		return // run subscribes to everything once it has a connection
	}
	var more, fewer []string
	h.mu.Lock()
	if !h.sent[h.own] && !h.plain {
		more = append(more, h.own)
		h.sent[h.own] = true
	}
	for name := range h.topics {
		if !h.sent[name] && !(h.plain && strings.HasPrefix(name, keyspace)) {
			more = append(more, name)
			h.sent[name] = true
		}
	}
	for name := range h.sent {
		if h.topics[name] == nil && name != h.own {
			fewer = append(fewer, name)
			delete(h.sent, name)
		}
	}
	h.mu.Unlock()
	// A connection that fails here fails its receiver too.
	if len(more) > 0 {
		_ = h.sub.Subscribe(ctx, more...)
	}
	if len(fewer) > 0 {
		_ = h.sub.Unsubscribe(ctx, fewer...)
	}
}

// idle ends the hub's life when nobody watches.
func (h *hub) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.topics) > 0 {
		return false
	}
	h.cancel()
	h.ctx = nil
	return true
}

// hopeless says why another connection would help no more, if it would not.
func (h *hub) hopeless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return redis.ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, code := range []string{"NOPERM", "NOAUTH", "WRONGPASS"} {
		if !redis.HasErrorPrefix(err, code) && !strings.Contains(err.Error(), code) {
			continue
		}
		if code == "NOPERM" && !h.plain {
			h.plain = true // without those channels it may be allowed
			return nil
		}
		return err
	}
	if errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

// end tells every watcher that nothing will come any more.
func (h *hub) end(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.topics {
		for _, w := range t.watchers {
			select {
			case w.ended <- why:
			default: // it has heard
			}
		}
	}
	h.cancel()
	h.ctx, h.topics = nil, nil
}

// stand notes that the server confirmed a subscription. One that stood before
// has a gap behind it, in which anything may have happened.
func (h *hub) stand(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if name == h.own {
		h.stands = true
	}
	t := h.topics[name]
	if t == nil || strings.HasPrefix(name, keyspace) {
		return
	}
	t.stands = true
	for _, w := range t.watchers {
		w.tell(quorum.Wake{Kind: quorum.WakeStarted})
		if t.broken {
			w.tell(quorum.Wake{Kind: quorum.WakeChanged})
		}
	}
	t.broken = false
}

func (h *hub) tell(name, text string) {
	wake, of, ok := parse(text)
	if !ok {
		return
	}
	if name == h.own {
		name = of
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[name]; t != nil {
		for _, w := range t.watchers {
			w.tell(wake)
		}
	}
}
