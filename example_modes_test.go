package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
)

const quorumTTL = 15 * time.Second

// locksInMemory is a Locker for examples; a program would combine servers.
func locksInMemory(options ...quorum.Option) *quorum.Locker {
	locks, err := quorum.New(memstore.New("memory"), options...)
	if err != nil {
		log.Fatal(err)
	}
	return locks
}

func ExampleShared() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	one, _ := locks.Acquire(ctx, "catalogue", quorum.Shared())
	two, _ := locks.Acquire(ctx, "catalogue", quorum.Shared())
	_, err := locks.TryAcquire(ctx, "catalogue")
	fmt.Println(one.Mode(), two.Mode(), errors.Is(err, quorum.ErrHeld))
	// Output: shared shared true
}

func ExampleLease_Promote() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	reader, _ := locks.Acquire(ctx, "catalogue", quorum.Shared())
	writer, err := reader.Promote(ctx) // ErrHeld beside other readers; reader then stays held
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(writer.Mode(), writer.Token() > reader.Token(), reader.Err())
	if err := writer.Demote(ctx); err != nil { // the writing is done, the reading goes on
		log.Fatal(err)
	}
	fmt.Println(writer.Mode())
	// Output:
	// exclusive true quorum: lease released
	// shared
}

func ExampleLocker_Force() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	stuck, _ := locks.Acquire(ctx, "report")
	lease, err := locks.Force(ctx, "report", quorum.Label("called by the operator"))
	if err != nil {
		log.Fatal(err)
	}
	lost := (*quorum.LostError)(nil)
	errors.As(stuck.Extend(ctx, quorumTTL), &lost)
	fmt.Println(lease.Token() > stuck.Token(), lost.Reason)
	// Output: true forced
}

func ExampleLease_Previous() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	first, _ := locks.Acquire(ctx, "report")
	_ = first.Release(ctx)
	second, _ := locks.Acquire(ctx, "report")
	if second.Previous() == quorum.PreviousExpired {
		fmt.Println("the last holder crashed: look at what it left")
	}
	fmt.Println(second.Previous())
	// Output: released
}

func ExampleMinHold() {
	ctx := context.Background()
	locks := locksInMemory(quorum.MinHold(quorumTTL / 2))
	tick, _ := locks.TryAcquire(ctx, "nightly")
	_ = tick.Release(ctx) // the job took no time
	_, err := locks.TryAcquire(ctx, "nightly")
	fmt.Println(errors.Is(err, quorum.ErrHeld)) // a scheduler whose clock is behind
	// Output: true
}

func ExampleLocker_AcquireAll() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	both, err := locks.AcquireAll(ctx, []string{"account:7", "account:3"})
	if err != nil {
		log.Fatal(err)
	}
	defer both.Release(ctx)
	fmt.Println(both.Leases()[0].Key(), quorum.Held(both.Context(), "account:7"))
	// Output: account:3 <nil>
}

func ExampleLocker_Slots() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	slots, err := locks.Slots("encoder", 2)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		slot, err := slots.TryAcquire(ctx)
		if err != nil {
			fmt.Println("busy:", errors.Is(err, quorum.ErrHeld))
			continue
		}
		fmt.Println("in")
		defer slot.Release(ctx)
	}
	// Output:
	// in
	// in
	// busy: true
}

func ExampleLocker_Elect() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	err := locks.Elect(ctx, "leader", func(ctx context.Context, lease *quorum.Lease) error {
		fmt.Println("leading")
		return nil // resign
	})
	fmt.Println(err)
	// Output:
	// leading
	// <nil>
}

func ExampleLease_Marshal() {
	ctx := context.Background()
	locks := locksInMemory()
	defer locks.Close(ctx)

	// With stores that other processes reach, another process goes on with
	// locks.Resume(ctx, data). A store in memory is bound to this one.
	lease, _ := locks.Acquire(ctx, "report")
	_, err := lease.Marshal()
	fmt.Println(errors.Is(err, quorum.ErrUnsupported), lease.Err())
	// Output: true <nil>
}
