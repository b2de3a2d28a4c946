//go:build linux

package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// guarded starts three nodes that ask for a password, over TLS too, declares
// them new, and returns DSNs that lead to them by proxies.
func guarded(t *testing.T, scheme string, options ...quorum.Option) ([]string, []*testserver.Proxy) {
	t.Helper()
	var straight, dsns []string
	var proxies []*testserver.Proxy
	for i := range 3 {
		node := testserver.Redis(t, testserver.RedisTLS(), testserver.RedisConfig("requirepass horse"))
		addr, query := node.Addr, fmt.Sprintf("?name=node%d", i)
		if scheme == "rediss" {
			addr, query = node.TLSAddr, query+"&skip_verify=true"
		}
		p := testserver.NewProxy(t, addr)
		proxies = append(proxies, p)
		straight = append(straight, scheme+"://:horse@"+addr+query)
		dsns = append(dsns, scheme+"://:horse@"+p.Addr+query)
	}
	l := opened(t, straight, options...)
	acceptance.Await(t, "the set to be declared new", func() bool { return l.Init(t.Context()) == nil })
	return dsns, proxies
}

// opened makes a locker with clients that have no connection yet.
func opened(t *testing.T, dsns []string, options ...quorum.Option) *quorum.Locker {
	t.Helper()
	set, err := quorum.Open(t.Context(), dsns, redisstore.Opener())
	if err != nil {
		t.Fatal(err)
	}
	return acceptance.Locker(t, set, options...)
}

// TestF092AColdConnectionIsNeverContention: a connection takes a dial, TLS, the
// password and the scripts.
func TestF092AColdConnectionIsNeverContention(t *testing.T) {
	for _, scheme := range []string{"redis", "rediss"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			settings := []quorum.Option{quorum.TTL(20 * time.Second), quorum.MaxTTL(20 * time.Second)}
			dsns, proxies := guarded(t, scheme, settings...)
			acceptance.Cold{
				Open: func(options ...quorum.Option) *quorum.Locker { return opened(t, dsns, append(options, settings...)...) },
				Slow: func(d time.Duration) {
					for _, p := range proxies {
						p.Cold(d)
					}
				},
				Keeps: scheme == "rediss", // go-redis gives up a connection over a password that is checked too late
			}.Run(t)
		})
	}
}
