package fence_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/fence"
	"github.com/quorumlock/quorum/fence/fencetest"
	"github.com/quorumlock/quorum/stores/memstore"
)

func TestR30Memory(t *testing.T) {
	fencetest.Run(t, func(*testing.T, string) fence.Guard { return &fence.Memory{} })
}

func TestR30MemoryWritesInOneStep(t *testing.T) {
	var g fence.Memory
	wrote := 0
	write := func() error { wrote++; return nil }
	if err := g.Write(t.Context(), "n", 2, write); err != nil || wrote != 1 {
		t.Errorf("first write: %v, %d writes", err, wrote)
	}
	stale := (*fence.StaleError)(nil)
	if err := g.Write(t.Context(), "n", 1, write); !errors.As(err, &stale) || stale.Seen != 2 || wrote != 1 {
		t.Errorf("stale write: %v, %d writes", err, wrote)
	}
	full := errors.New("disk full")
	if err := g.Write(t.Context(), "n", 3, func() error { return full }); !errors.Is(err, full) {
		t.Errorf("failing write: %v", err)
	}
	if err := g.Write(t.Context(), "n", 2, write); !errors.Is(err, fence.ErrStale) {
		t.Errorf("after a later holder's failing write: %v", err)
	}
}

func TestNewSQLRefusesWhatItWouldHaveToQuote(t *testing.T) {
	for _, table := range []string{"", "a b", "f;drop", `"f"`, "a.b.c", "1f"} {
		if g, err := fence.NewSQL(nil, fence.Postgres, table); err == nil || g != nil {
			t.Errorf("table %q: %v", table, err)
		}
	}
	if _, err := fence.NewSQL(nil, fence.Dialect(9), "fence"); err == nil {
		t.Error("an unknown dialect is taken")
	}
}

func TestR30HTTP(t *testing.T) {
	var g fence.Memory
	var got []int64
	h := fence.Require(&g, func(r *http.Request) string { return r.URL.Path },
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, fence.Token(r.Context())) }))
	for _, row := range []struct {
		field  string
		status int
	}{
		{"", http.StatusPreconditionRequired},
		{"seven", http.StatusBadRequest},
		{"0", http.StatusBadRequest},
		{"7", http.StatusOK},
		{"7", http.StatusOK}, // the holder's second write
		{"6", http.StatusPreconditionFailed},
		{"8", http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodPut, "/report", nil)
		if row.field != "" {
			r.Header.Set(fence.Header, row.field)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != row.status {
			t.Errorf("token %q: %d %s, want %d", row.field, w.Code, w.Body, row.status)
		}
	}
	if fmt.Sprint(got) != "[7 7 8]" {
		t.Errorf("the handler saw %v", got)
	}

	down := fence.Require(failing{}, func(*http.Request) string { return "n" }, http.NotFoundHandler())
	r := httptest.NewRequest(http.MethodPut, "/", nil)
	fence.SetHeader(r.Header, 7)
	w := httptest.NewRecorder()
	down.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a guard that is down: %d", w.Code)
	}
}

type failing struct{}

func (failing) Admit(context.Context, string, int64) error { return errors.New("connection refused") }

func TestRedisStale(t *testing.T) {
	if seen, stale := fence.RedisStale(errors.New("STALE 9007199254740991")); !stale || seen != 1<<53-1 {
		t.Errorf("%d %v", seen, stale)
	}
	for _, err := range []error{nil, errors.New("NOSCRIPT"), errors.New("ERR STALE")} {
		if _, stale := fence.RedisStale(err); stale {
			t.Errorf("%v is no refusal", err)
		}
	}
}

func ExampleMemory_Write() {
	ctx := context.Background()
	locks, err := quorum.New(memstore.New("memory"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = locks.Close(ctx) }()
	var guard fence.Memory
	value := ""
	write := func(token int64, v string) error {
		return guard.Write(ctx, "report", token, func() error { value = v; return nil })
	}

	first, err := locks.Acquire(ctx, "report")
	if err != nil {
		panic(err)
	}
	_ = write(first.Token(), "first")
	_ = first.Release(ctx) // stands for a loss that the first holder has not noticed

	second, err := locks.Acquire(ctx, "report")
	if err != nil {
		panic(err)
	}
	fmt.Println("second:", write(second.Token(), "second"))
	fmt.Println("second again:", write(second.Token(), "second, corrected"))
	fmt.Println("first is stale:", errors.Is(write(first.Token(), "first, late"), fence.ErrStale))
	fmt.Println(value)
	_ = second.Release(ctx)
	// Output:
	// second: <nil>
	// second again: <nil>
	// first is stale: true
	// second, corrected
}
