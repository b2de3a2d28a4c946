package memstore_test

import (
	"errors"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
)

func TestR62OneOpenerOneMemory(t *testing.T) {
	open := func(o quorum.Opener, dsn string) *quorum.Locker {
		t.Helper()
		set, err := quorum.Open(t.Context(), []string{dsn}, o)
		if err != nil {
			t.Fatal(err)
		}
		locks, err := quorum.New(set)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close(t.Context()) })
		return locks
	}
	one := memstore.Opener()
	if _, err := open(one, "memory://a").TryAcquire(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(one, "memory://a").TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
		t.Errorf("the same memory: %v", err)
	}
	for what, locks := range map[string]*quorum.Locker{"another name": open(one, "memory://b"), "another Opener": open(memstore.Opener(), "memory://a")} {
		if _, err := locks.TryAcquire(t.Context(), "k"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := quorum.Open(t.Context(), []string{"memory://a?ttl=3s"}, one); !errors.Is(err, quorum.ErrInvalidOption) {
		t.Errorf("an unknown setting: %v", err)
	}
}
