package nullstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/stores/nullstore"
)

func TestR78NullGrantsEverythingWithGrowingTokens(t *testing.T) {
	locks, err := nullstore.NoLock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	last := int64(0)
	for range 100 { // of one key, none of which is released
		lease, err := locks.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if lease.Token() <= last {
			t.Fatalf("token %d after %d", lease.Token(), last)
		}
		last = lease.Token()
		if err := lease.Extend(t.Context(), time.Minute); err != nil || lease.Token() != last {
			t.Fatalf("extended: %v, token %d", err, lease.Token())
		}
	}
	later, err := nullstore.New("another process").Acquire(t.Context(), quorum.Request{Key: "k", TTL: time.Second})
	if err != nil || later.Token <= last {
		t.Errorf("a new process begins at %d after %d: %v", later.Token, last, err)
	}
}

func TestR78NullChangesItsMode(t *testing.T) {
	locks, err := nullstore.NoLock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close(context.Background()) }()
	reader, err := locks.Acquire(t.Context(), "k", quorum.Shared())
	if err != nil {
		t.Fatal(err)
	}
	writer, err := reader.Promote(t.Context())
	if err != nil || writer.Token() <= reader.Token() {
		t.Fatalf("promotion: %v", err)
	}
	if err := writer.Demote(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestR78NullIsRefusedWhereOthersMustBeKeptOut(t *testing.T) {
	for name, members := range map[string][]quorum.Store{
		"beside memory":       {nullstore.New("a"), memstore.New("b"), memstore.New("c")},
		"beside others of it": {nullstore.New("a"), nullstore.New("b"), nullstore.New("c")},
	} {
		if _, err := quorum.Combine(quorum.Consensus(), members...); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := nullstore.NoLock(quorum.Cluster()); !errors.Is(err, quorum.ErrInvalidOption) {
		t.Errorf("for a cluster: %v", err)
	}
}

func TestNullHonoursAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := nullstore.New("a")
	_, acquire := s.Acquire(ctx, quorum.Request{Key: "k"})
	_, extend := s.Extend(ctx, quorum.Request{Key: "k"})
	for _, err := range []error{acquire, extend, s.Release(ctx, quorum.Request{Key: "k"})} {
		if !errors.Is(err, context.Canceled) || quorum.OutcomeOf(err) != quorum.OutcomeUndelivered {
			t.Errorf("%v", err)
		}
	}
}

func ExampleNoLock() {
	locks, err := nullstore.NoLock()
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer func() { _ = locks.Close(ctx) }()
	err = locks.Do(ctx, "report", func(context.Context, *quorum.Lease) error {
		fmt.Println("nobody is kept out")
		return nil
	})
	fmt.Println(err)
	// Output:
	// nobody is kept out
	// <nil>
}
