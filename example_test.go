package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
)

// The three ways in which taking a lock ends.
func ExampleLocker_Acquire() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	take := func(ctx context.Context) {
		lease, err := locks.Acquire(ctx, "report:2026-11")
		switch {
		case errors.Is(err, quorum.ErrHeld):
			fmt.Println("somebody else is at it:", errors.Is(err, context.DeadlineExceeded))
		case err != nil:
			fmt.Println("outage, bad key or cancelled: never maybe held")
		default:
			fmt.Println("held, with a token that only grows:", lease.Token() > 0)
		}
	}
	take(ctx)
	bounded, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // of the wait, never of the holding
	defer cancel()
	take(bounded)
	// Output:
	// held, with a token that only grows: true
	// somebody else is at it: true
}

func ExampleLocker_Do() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	err := locks.Do(ctx, "invoice:42", func(ctx context.Context, lease *quorum.Lease) error {
		fmt.Println("alone at", lease.Key(), quorum.Held(ctx, "invoice:42"))
		return errors.New("no paper")
	})
	_, free := locks.TryAcquire(ctx, "invoice:42")
	fmt.Println(err, free)
	// Output:
	// alone at invoice:42 <nil>
	// no paper <nil>
}

// A lease is renewed by itself; one that is not is extended by hand.
func ExampleLease_Extend() {
	ctx := context.Background()
	locks := locksInMemory(quorum.TTL(10*time.Second), quorum.NoRenew())
	defer locks.Close(ctx)

	lease, err := locks.TryAcquire(ctx, "import:catalogue")
	if err != nil {
		log.Fatal(err)
	}
	token := lease.Token()
	fmt.Println(lease.Remaining() > 10*time.Second)
	err = lease.Extend(ctx, 30*time.Second) // from now
	fmt.Println(err, lease.Remaining() > 10*time.Second, lease.Token() == token)
	// Output:
	// false
	// <nil> true true
}

// A majority of three stores.
func ExampleCombine() {
	ctx := context.Background()
	a, b, c := memstore.New("a"), memstore.New("b"), memstore.New("c")
	stores, err := quorum.Combine(quorum.Consensus(), a, b, c)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := quorum.New(stores)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	lease, err := locks.TryAcquire(ctx, "catalogue")
	fmt.Println(err, len(lease.Votes()))
	// Output: <nil> 3
}

// Log lines at levels of one's own choice. Events come from the goroutines that
// saw them, maybe after the call that they tell of has returned.
func ExampleObserve() {
	ctx := context.Background()
	level := func(e quorum.Event) slog.Level {
		switch {
		case e.Kind == quorum.EventLost:
			return slog.LevelError
		case errors.Is(e.Err, quorum.ErrHeld):
			return slog.LevelInfo
		case e.Err != nil:
			return slog.LevelWarn
		}
		return slog.LevelDebug
	}
	lines := make(chan string, 3) // in a program: slog.Default().Log(ctx, level(e), e.Kind.String(), "key", e.Key, "error", e.Err)
	locks := locksInMemory(quorum.Observe(func(e quorum.Event) { lines <- fmt.Sprint(level(e), " ", e.Kind, " ", e.Key) }))
	defer locks.Close(ctx)

	lease, err := locks.TryAcquire(ctx, "reports:nightly")
	if err != nil {
		log.Fatal(err)
	}
	_, _ = locks.TryAcquire(ctx, "reports:nightly")
	_ = lease.Release(ctx)
	for range 3 {
		fmt.Println(<-lines)
	}
	// Unordered output:
	// DEBUG acquired reports:nightly
	// INFO failed reports:nightly
	// DEBUG released reports:nightly
}
