package mw_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/mw"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

type message struct{ key string }

func keyOf(m message) (string, error) {
	if m.key == "" {
		return "", errNoKey
	}
	return m.key, nil
}

var errNoKey = errors.New("the message has no key")

// bed is a lock in one memory store that can be spoilt, in a bubble.
func bed(t *testing.T, f func(t *testing.T, locks *quorum.Locker, store *storetest.Spoiled)) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.Spoil(memstore.New("memory", memstore.WithClock(clock.Go())))
		defer store.Close()
		locks, err := quorum.New(store, quorum.WithClock(clock.Go()))
		if err != nil {
			t.Fatal(err)
		}
		f(t, locks, store)
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func take(t *testing.T, locks *quorum.Locker, key string) *quorum.Lease {
	t.Helper()
	lease, err := locks.TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestR73BusyMessage(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, _ *storetest.Spoiled) {
		handled := 0
		handle := func(context.Context, message) error { handled++; return nil }
		holder := take(t, locks, "order:7")
		for _, row := range []struct {
			busy mw.Busy
			want error
		}{{mw.Requeue, mw.ErrBusy}, {mw.Drop, nil}} {
			err := mw.Message(locks, keyOf, row.busy)(handle)(t.Context(), message{"order:7"})
			if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) || handled != 0 {
				t.Errorf("busy %d: %v, handled %d times", row.busy, err, handled)
			}
		}
		time.AfterFunc(time.Minute, func() { _ = holder.Release(context.Background()) })
		if err := mw.Message(locks, keyOf, mw.Wait)(handle)(t.Context(), message{"order:7"}); err != nil || handled != 1 {
			t.Errorf("waiting: %v, handled %d times", err, handled)
		}
		if err := mw.Message(locks, keyOf, mw.Requeue)(handle)(t.Context(), message{"order:8"}); err != nil || handled != 2 {
			t.Errorf("free: %v, handled %d times", err, handled)
		}
		if err := mw.Message(locks, keyOf, mw.Drop)(handle)(t.Context(), message{}); !errors.Is(err, errNoKey) || handled != 2 {
			t.Errorf("no key: %v, handled %d times", err, handled)
		}
	})
}

func TestR73OutageIsNeverBusy(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, store *storetest.Spoiled) {
		store.Set(storetest.Always(storetest.Fail(errors.New("connection refused"))))
		handle := func(context.Context, message) error { t.Error("handled without a lock"); return nil }
		for _, busy := range []mw.Busy{mw.Requeue, mw.Drop, mw.Wait} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := mw.Message(locks, keyOf, busy)(handle)(ctx, message{"k"})
			cancel()
			if !errors.Is(err, quorum.ErrNoQuorum) || errors.Is(err, mw.ErrBusy) || errors.Is(err, quorum.ErrHeld) {
				t.Errorf("busy %d: an outage is %v", busy, err)
			}
		}
		w := httptest.NewRecorder()
		mw.HTTP(locks, pathOf, http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/k", nil))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
			t.Errorf("HTTP: %d, retry after %q", w.Code, w.Header().Get("Retry-After"))
		}
		store.Set()
	})
}

func TestR73HandlersContextEndsOnLoss(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, store *storetest.Spoiled) {
		err := mw.Message(locks, keyOf, mw.Requeue)(func(ctx context.Context, _ message) error {
			if mw.Lease(ctx).Token() < 1 || quorum.Held(ctx, "k") != nil {
				t.Error("the handler's context does not carry its lease")
			}
			store.Set(storetest.Always(storetest.Fail(errors.New("connection refused"))))
			<-ctx.Done()
			if lost := (*quorum.LostError)(nil); !errors.As(context.Cause(ctx), &lost) {
				t.Errorf("the context ended by %v", context.Cause(ctx))
			}
			return nil // a handler that does not notice
		})(t.Context(), message{"k"})
		if !errors.Is(err, quorum.ErrLost) || errors.Is(err, mw.ErrBusy) {
			t.Errorf("a message whose lock was lost is %v", err)
		}
		store.Set()
	})
}

// What a handler returns is the handler's, also when it looks like contention.
func TestMessageErrorOfAHandlerIsNotBusy(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, _ *storetest.Spoiled) {
		for _, busy := range []mw.Busy{mw.Requeue, mw.Drop} {
			err := mw.Message(locks, keyOf, busy)(func(context.Context, message) error { return quorum.ErrHeld })(t.Context(), message{"k"})
			if !errors.Is(err, quorum.ErrHeld) || errors.Is(err, mw.ErrBusy) {
				t.Errorf("busy %d: %v", busy, err)
			}
		}
	})
}

func pathOf(r *http.Request) (string, error) {
	if r.URL.Path == "/none" {
		return "", errNoKey
	}
	return r.URL.Path[1:], nil
}

func TestR73HTTP(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, _ *storetest.Spoiled) {
		holder := take(t, locks, "busy")
		served := 0
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { served++; w.WriteHeader(http.StatusCreated) })
		for _, row := range []struct {
			path    string
			options []mw.HTTPOption
			status  int
			retry   string
		}{
			{"/free", nil, http.StatusCreated, ""},
			{"/", nil, http.StatusCreated, ""}, // no lock
			{"/busy", nil, http.StatusLocked, "1"},
			{"/busy", []mw.HTTPOption{mw.Conflict(), mw.RetryAfter(1500 * time.Millisecond)}, http.StatusConflict, "2"},
			{"/busy", []mw.HTTPOption{mw.Locking(quorum.Wait(time.Second))}, http.StatusLocked, "1"},
			{"/none", nil, http.StatusBadRequest, ""},
			{"/a%00b", nil, http.StatusBadRequest, ""},
		} {
			w := httptest.NewRecorder()
			mw.HTTP(locks, pathOf, handler, row.options...).ServeHTTP(w, httptest.NewRequest(http.MethodPost, row.path, nil))
			if w.Code != row.status || w.Header().Get("Retry-After") != row.retry {
				t.Errorf("%s: %d, retry after %q, want %d, %q", row.path, w.Code, w.Header().Get("Retry-After"), row.status, row.retry)
			}
		}
		if served != 2 {
			t.Errorf("served %d requests, want 2", served)
		}
		_ = holder.Release(t.Context())
	})
}

// A request that waited in vain for its turn to ask (InFlight) may come again:
// the lock did not fail.
func TestR73HTTPWaitsForItsTurnToAsk(t *testing.T) {
	bed(t, func(t *testing.T, _ *quorum.Locker, store *storetest.Spoiled) {
		locks, err := quorum.New(store, quorum.WithClock(clock.Go()), quorum.InFlight(1))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = locks.Close(context.Background()) }()
		store.Set(storetest.Always(storetest.Hang()))
		first, cancel := context.WithCancel(t.Context())
		go func() { _, _ = locks.Acquire(first, "first") }()
		synctest.Wait()
		w := httptest.NewRecorder()
		handler := mw.HTTP(locks, pathOf, http.NotFoundHandler(), mw.Locking(quorum.Wait(time.Millisecond)))
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/free", nil))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%d, retry after %q, want 503 and 1", w.Code, w.Header().Get("Retry-After"))
		}
		cancel()
		store.Set()
		store.Thaw()
	})
}

func TestR73ClientGoneReleases(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, _ *storetest.Spoiled) {
		h := mw.HTTP(locks, pathOf, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		ctx, gone := context.WithTimeout(t.Context(), time.Second)
		defer gone()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/k", nil).WithContext(ctx))
		if err := take(t, locks, "k").Release(t.Context()); err != nil {
			t.Error(err)
		}
		func() {
			defer func() { _ = recover() }()
			mw.HTTP(locks, pathOf, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })).
				ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/k", nil))
		}()
		if err := take(t, locks, "k").Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
