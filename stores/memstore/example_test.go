package memstore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
)

// One store in memory locks between the goroutines of a process.
func Example() {
	ctx := context.Background()
	locks, err := quorum.New(memstore.New("local"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	lease, err := locks.Acquire(ctx, "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locks.TryAcquire(ctx, "report")
	fmt.Println("somebody else:", errors.Is(err, quorum.ErrHeld))
	fmt.Println("released:", lease.Release(ctx))
	// Output:
	// somebody else: true
	// released: <nil>
}
