//go:build linux

package pgstore_test

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/pgstore"
)

// TestF092AColdConnectionIsNeverContention: a connection takes a dial, an answer
// about TLS, and a log-in.
func TestF092AColdConnectionIsNeverContention(t *testing.T) {
	dsn := shared(t).URL() + "&name=a&schema=" + newSchema()
	addr := shared(t).Addr
	p := testserver.NewProxy(t, addr)
	open := func(dsn string, options ...quorum.Option) *quorum.Locker {
		set, err := quorum.Open(t.Context(), []string{dsn}, pgstore.Opener())
		if err != nil {
			t.Fatal(err)
		}
		return acceptance.Locker(t, set, options...)
	}
	if err := open(dsn).Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	acceptance.Cold{
		Open: func(options ...quorum.Option) *quorum.Locker {
			return open(strings.Replace(dsn, addr, p.Addr, 1), options...)
		},
		Slow:  p.Cold,
		Keeps: true,
	}.Run(t)
}
