package mw_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/mw"
	"github.com/quorumlock/quorum/storetest"
)

// lose waits until the lock of a request is lost.
func lose(r *http.Request, store *storetest.Spoiled) {
	store.Set(storetest.Always(storetest.Fail(errors.New("connection refused"))))
	<-r.Context().Done()
}

// socket is a recorder with what only a server's writer has.
type socket struct {
	*httptest.ResponseRecorder
	deadline, hijacked bool
}

func (s *socket) SetWriteDeadline(time.Time) error { s.deadline = true; return nil }

func (s *socket) WriteHeader(status int) {
	if status >= http.StatusOK { // the recorder takes a hint for the response
		s.ResponseRecorder.WriteHeader(status)
	}
}

func (s *socket) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.hijacked = true
	return nil, nil, nil
}

func TestR73LossBeforeTheResponse(t *testing.T) {
	refused := func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, quorum.ErrLost) || !strings.Contains(err.Error(), "nothing of this response is sent") {
			t.Errorf("the handler is told %v", err)
		}
	}
	for _, row := range []struct {
		name   string
		status int
		body   string
		handle func(t *testing.T, w http.ResponseWriter, lose func())
	}{
		{"a write", 503, "", func(t *testing.T, w http.ResponseWriter, lose func()) {
			lose()
			for range 2 {
				n, err := w.Write([]byte("done"))
				if refused(t, err); n != 0 {
					t.Errorf("%d bytes written", n)
				}
			}
		}},
		{"a status", 503, "", func(t *testing.T, w http.ResponseWriter, lose func()) {
			lose()
			w.WriteHeader(http.StatusCreated)
			_, err := w.Write([]byte("done"))
			refused(t, err)
		}},
		{"a flush", 503, "", func(t *testing.T, w http.ResponseWriter, lose func()) {
			lose()
			w.(http.Flusher).Flush()
			refused(t, http.NewResponseController(w).Flush())
		}},
		{"a hijack", 503, "", func(t *testing.T, w http.ResponseWriter, lose func()) {
			lose()
			_, _, err := w.(http.Hijacker).Hijack()
			refused(t, err)
		}},
		{"an early hint", 503, "", func(_ *testing.T, w http.ResponseWriter, lose func()) {
			w.WriteHeader(http.StatusEarlyHints)
			lose()
		}},
		{"nothing", 503, "", func(_ *testing.T, _ http.ResponseWriter, lose func()) { lose() }},
		{"begun by a write", 200, "donedone", func(t *testing.T, w http.ResponseWriter, lose func()) {
			for range 2 {
				if _, err := w.Write([]byte("done")); err != nil {
					t.Error(err)
				}
				lose()
			}
		}},
		{"begun by a status", 201, "", func(_ *testing.T, w http.ResponseWriter, lose func()) {
			w.WriteHeader(http.StatusCreated)
			lose()
		}},
		{"begun by a flush", 200, "", func(t *testing.T, w http.ResponseWriter, lose func()) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			lose()
		}},
		{"begun by a hijack", 200, "", func(t *testing.T, w http.ResponseWriter, lose func()) {
			if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
				t.Error(err)
			}
			lose()
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			bed(t, func(t *testing.T, locks *quorum.Locker, store *storetest.Spoiled) {
				w := httptest.NewRecorder()
				w.Header().Set("Trace", "7")
				mw.HTTP(locks, pathOf, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Etag", "handler's")
					row.handle(t, w, func() { lose(r, store) })
				}), mw.RetryAfter(2*time.Second)).ServeHTTP(&socket{ResponseRecorder: w}, httptest.NewRequest(http.MethodPost, "/k", nil))
				retry, tag, body := "", "handler's", row.body
				if row.status == http.StatusServiceUnavailable {
					retry, tag, body = "2", "", "the lock of this resource was lost on the way; try again later\n"
				}
				h := w.Header()
				if w.Code != row.status || h.Get("Retry-After") != retry || h.Get("Etag") != tag || h.Get("Trace") != "7" ||
					w.Body.String() != body {
					t.Errorf("%d %q with %v", w.Code, w.Body, h)
				}
				store.Set()
			})
		})
	}
}

// What a server's writer can do, a handler under a lock can do as well; and a
// lock that the handler itself gave back is not lost.
func TestR73ResponseWriterIsWhole(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, _ *storetest.Spoiled) {
		s := &socket{ResponseRecorder: httptest.NewRecorder()}
		mw.HTTP(locks, pathOf, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			released := mw.Lease(r.Context()).Release(r.Context())
			c := http.NewResponseController(w)
			_, _, hijack := c.Hijack()
			if err := errors.Join(released, c.SetWriteDeadline(time.Now()), c.Flush(), hijack); err != nil {
				t.Error(err)
			}
			_, _ = w.Write([]byte("done"))
		})).ServeHTTP(s, httptest.NewRequest(http.MethodPost, "/k", nil))
		if !s.deadline || !s.hijacked || !s.Flushed || s.Code != http.StatusOK || s.Body.String() != "done" {
			t.Errorf("%+v, %d %q", s, s.Code, s.Body)
		}
	})
}
