package quorum_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/quorumlock/quorum"
)

// willing is a store that grants everything and keeps nothing, so that what is
// measured is the library alone.
type willing struct{ name string }

func (w willing) Name() string                                { return w.name }
func (w willing) Limits() quorum.Limits                       { return quorum.Limits{Reach: quorum.ReachCluster} }
func (willing) Release(context.Context, quorum.Request) error { return nil }

func (willing) Acquire(_ context.Context, r quorum.Request) (quorum.Grant, error) {
	return quorum.Grant{Token: max(r.Floor, 1), TTL: r.TTL}, nil
}

func (willing) Extend(_ context.Context, r quorum.Request) (quorum.Grant, error) {
	return quorum.Grant{Token: r.Floor, TTL: r.TTL}, nil
}

// TestHeldLeaseIsSmall measures what a held lease keeps in memory.
func TestHeldLeaseIsSmall(t *testing.T) {
	set, err := quorum.Combine(quorum.Consensus(), willing{"a"}, willing{"b"}, willing{"c"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(set)
	if err != nil {
		t.Fatal(err)
	}
	const many, most = 20000, 1024
	keys := make([]string, many)
	for i := range keys {
		keys[i] = fmt.Sprint("name ", i)
	}
	before := inUse()
	leases := make([]*quorum.Lease, many)
	for i, key := range keys {
		if leases[i], err = l.Acquire(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	each := (inUse() - before) / many
	t.Logf("%d bytes a lease", each)
	if each > most {
		t.Errorf("a held lease keeps %d bytes, want at most %d", each, most)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(leases)
}

// inUse is how many bytes are reachable.
func inUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools kept
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
