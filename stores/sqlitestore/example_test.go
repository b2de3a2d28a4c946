//go:build linux

package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/sqlitestore"
)

// One program at a time on this machine writes the report.
func Example() {
	dir, err := os.MkdirTemp("", "report")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	store, err := sqlitestore.Open(ctx, "host", filepath.Join(dir, "locks.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	locks, err := quorum.New(store)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	if err := locks.Init(ctx); err != nil { // once, for a new file
		log.Fatal(err)
	}

	lease, err := locks.Acquire(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)
	fmt.Println("writing with a token:", lease.Token() > 0)

	_, err = locks.TryAcquire(ctx, "report")
	fmt.Println("somebody else is at it:", errors.Is(err, quorum.ErrHeld))
	// Output:
	// writing with a token: true
	// somebody else is at it: true
}
