package quorum_test

import (
	"hash/fnv"
	"testing"

	"github.com/quorumlock/quorum"
)

// All clients ask in one order, whatever version they run: the hash is FNV-1a.
func TestOrderIsOfFNV(t *testing.T) {
	for _, key := range []string{"", "a", "invoice:ü"} {
		h := fnv.New64a()
		_, _ = h.Write([]byte(key + "\x00node"))
		if got := quorum.HashOf(key, "node"); got != h.Sum64() {
			t.Errorf("hash of %q is %x, want %x", key, got, h.Sum64())
		}
	}
}
