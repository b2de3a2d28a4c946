package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/filestore"
)

// One program at a time on this machine writes the report.
func Example() {
	base, err := os.MkdirTemp("", "report")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(base)

	store, err := filestore.New("host", filepath.Join(base, "locks"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for _, a := range store.Advice() {
		log.Print(a)
	}
	locks, err := quorum.New(store)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer locks.Close(ctx)

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
