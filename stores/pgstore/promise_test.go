//go:build linux

package pgstore_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/pgstore"
)

// countedConn counts what is sent: each write is followed by a wait for an answer.
type countedConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// counted returns a store in a schema that is declared new, through one
// connection, and what counts its round trips.
func counted(t *testing.T, schema string) (*pgstore.Store, func(call func()) int32) {
	t.Helper()
	var writes atomic.Int32
	config, err := pgxpool.ParseConfig(shared(t).URL() + "&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return countedConn{c, &writes}, err
	}
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s := store(t, p, pgstore.Schema(schema))
	mustAcquire(t, s, ask("warm", owner()))
	return s, func(call func()) int32 {
		before := writes.Load()
		call()
		return writes.Load() - before
	}
}

// roundTrips counts those of each verb, for a new name and for one that was used
// before.
func roundTrips(t *testing.T) (acquire, refused, extend, release int32) {
	t.Helper()
	_, schema, _ := fresh(t)
	s, count := counted(t, schema)
	for range 2 {
		r, rival := ask("k", owner()), ask("k", owner())
		acquire = max(acquire, count(func() { mustAcquire(t, s, r) }))
		refused = max(refused, count(func() { _, _ = s.Acquire(t.Context(), rival) }))
		extend = max(extend, count(func() { _, _ = s.Extend(t.Context(), r) }))
		release = max(release, count(func() { _ = s.Release(t.Context(), r) }))
		_ = s.Release(t.Context(), rival)
	}
	return acquire, refused, extend, release
}

// TestR12HandOverIsOneWakeAndOneRoundTrip: whoever waits is told of the release,
// and then asks once.
func TestR12HandOverIsOneWakeAndOneRoundTrip(t *testing.T) {
	holder, schema, _ := fresh(t)
	s, count := counted(t, schema)
	told, _ := watch(t, holder, "k") // one more listener; the waiter's pool has one connection
	r, w := ask("k", owner()), ask("k", owner())
	w.Wait = quorum.WaitWatch
	mustAcquire(t, holder, r)
	_, err := s.Acquire(t.Context(), w)
	wantOutcome(t, err, quorum.OutcomeContended)
	mustRelease(t, holder, r)
	wantChanged(t, told, "the release")
	if n := count(func() { mustAcquire(t, s, w) }); n != 1 {
		t.Errorf("the waiter needed %d round trips after it was told, want 1", n)
	}
}

// TestR83DocumentedRow holds the store's row in docs/stores.md to what it does.
func TestR83DocumentedRow(t *testing.T) {
	text, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	var cells []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| PostgreSQL |") {
			for cell := range strings.SplitSeq(strings.Trim(line, "|\n"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
		}
	}
	if len(cells) != 9 {
		t.Fatalf("the row of PostgreSQL has %d cells, want 9: %q", len(cells), cells)
	}
	s, _, _ := fresh(t)
	l := s.Limits()
	yes := map[bool]string{true: "yes", false: "no"}
	acquire, refused, extend, release := roundTrips(t)
	for i, want := range map[int]string{
		1: fmt.Sprintf("%v, %v", l.MinTTL, l.Grain),
		3: yes[l.Shares],
		4: yes[l.Watches],
		7: fmt.Sprintf("%d, %d, %d, %d", acquire, refused, extend, release),
	} {
		if cells[i] != want {
			t.Errorf("cell %d of the row says %q, and the store does %q", i+1, cells[i], want)
		}
	}
	if l.Reach != quorum.ReachCluster || l.MaxKey != 512 || !l.Forgets || l.Doubles || !l.Queues {
		t.Errorf("limits %+v", l)
	}
}
