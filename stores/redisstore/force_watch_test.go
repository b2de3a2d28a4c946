package redisstore_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// TestR09AHolderHearsOfForce: where nobody waits, a watching holder is told that
// its vote was taken away.
func TestR09AHolderHearsOfForce(t *testing.T) {
	b := newBundles(t)
	w := watch(t, b.store, b.named("k"))
	mustAcquire(t, b.store, b.named("k"))
	force := b.named("k")
	force.Owner, force.Kind = owner(), quorum.KindForce
	mustAcquire(t, b.store, force)
	select {
	case wake := <-w.wakes:
		if wake.Kind != quorum.WakeChanged {
			t.Errorf("it was told %v", wake)
		}
	case <-time.After(20 * time.Second):
		t.Error("it was told nothing")
	}
}
