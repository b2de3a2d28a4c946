package mw

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/quorumlock/quorum"
)

// HTTP wraps a handler so that of all requests with one key at most one is
// served at a time, among all processes that lock in these stores. key returns
// the lock's name; "" serves the request without a lock, and an error is
// answered with 400.
//
// By default it does not wait: a request whose key is held is answered with 423
// Locked and Retry-After, 409 Conflict by [Conflict]. Give quorum.Wait to have it
// wait. Too few stores that answer are 503 with Retry-After, never 423, and so
// is a request that waited in vain for its turn to ask (quorum.InFlight).
//
// The request's context ends when the client has gone and when the lock is lost
// ([quorum.LostError] as its cause); the lock is given back when the handler has
// returned, also by a panic. What the handler writes first after a loss is
// answered with 503 and Retry-After instead, and so is a handler that returns
// without a word: its headers are dropped, and its writes return an error that
// matches [quorum.ErrLost]. What it did until then stays done, and a response
// that was begun before a loss cannot be taken back: fence what is written.
//
// The handler's ResponseWriter is an [http.Flusher] and an [http.Hijacker] as far
// as the one below is, and an [http.ResponseController] reaches that one.
func HTTP(locks *quorum.Locker, key func(*http.Request) (string, error), next http.Handler, options ...HTTPOption) http.Handler {
	s := httpSettings{busy: http.StatusLocked, retry: time.Second, lock: []quorum.Option{quorum.Wait(0)}}
	for _, o := range options {
		o(&s)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, err := key(r)
		switch {
		case err != nil:
			http.Error(w, "no key to lock in this request", http.StatusBadRequest)
			return
		case name == "":
			next.ServeHTTP(w, r)
			return
		}
		began := false
		err = locks.Do(r.Context(), name, func(ctx context.Context, lease *quorum.Lease) error {
			began = true
			g := &guarded{ResponseWriter: w, lease: lease, before: w.Header().Clone(), refuse: s.refuse}
			next.ServeHTTP(g, r.WithContext(withLease(ctx, lease)))
			return g.allow() // of a handler that wrote nothing
		}, s.lock...)
		if !began {
			s.refuse(w, err)
		}
	})
}

// HTTPOption is a setting of [HTTP].
type HTTPOption func(*httpSettings)

type httpSettings struct {
	busy  int
	retry time.Duration
	lock  []quorum.Option
}

// Conflict answers a request whose key is held with 409 instead of 423.
func Conflict() HTTPOption {
	return func(s *httpSettings) { s.busy = http.StatusConflict }
}

// RetryAfter says when a refused client is to come again; default 1 s. It is
// rounded up to whole seconds.
func RetryAfter(d time.Duration) HTTPOption {
	return func(s *httpSettings) { s.retry = d }
}

// Locking adds options of the lock, such as quorum.Wait or quorum.TTL. A later
// quorum.Wait replaces the default of a single attempt.
func Locking(options ...quorum.Option) HTTPOption {
	return func(s *httpSettings) { s.lock = append(s.lock, options...) }
}

// refuse answers a request that was not served, or not to its end. The text names neither stores
// nor holders: it goes to whoever asked.
func (s httpSettings) refuse(w http.ResponseWriter, err error) {
	status, text, again := http.StatusInternalServerError, "the lock of this resource failed", false
	switch {
	case errors.Is(err, quorum.ErrLost):
		status, text, again = http.StatusServiceUnavailable, "the lock of this resource was lost on the way; try again later", true
	case errors.Is(err, quorum.ErrHeld):
		status, text, again = s.busy, "another request is at this resource; try again later", true
	case errors.Is(err, quorum.ErrInvalidKey):
		status, text = http.StatusBadRequest, "no key to lock in this request"
	case errors.Is(err, quorum.ErrNoQuorum), errors.Is(err, quorum.ErrExpired), errors.Is(err, quorum.ErrClosed),
		errors.Is(err, context.DeadlineExceeded): // it waited for its turn to ask: quorum.InFlight
		status, text, again = http.StatusServiceUnavailable, "the lock of this resource cannot be taken now; try again later", true
	}
	if again {
		seconds := (s.retry + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.Itoa(int(max(seconds, 1))))
	}
	http.Error(w, text, status)
}
