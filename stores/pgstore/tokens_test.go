//go:build linux

package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/pgstore"
)

// mutate rewrites a function of a schema.
func mutate(t *testing.T, p *pgxpool.Pool, schema, function, old, replacement string) {
	t.Helper()
	text := one[string](t, p, fmt.Sprintf("select pg_get_functiondef('%s.%s'::regproc)", schema, function))
	if !strings.Contains(text, old) {
		t.Fatalf("the function %s holds no %q", function, old)
	}
	run(t, p, strings.ReplaceAll(text, old, replacement))
}

// speed is how much faster the server's clock runs: a step every 50 ms, and
// rows idle after 100 ms.
const speed = 6000

func speedUp(t *testing.T, p *pgxpool.Pool, schema string) {
	t.Helper()
	run(t, p, fmt.Sprintf(`create or replace function %[1]s.clock() returns bigint language sql volatile as $$
		select ((%[2]d + (extract(epoch from clock_timestamp()) - %[2]d) * %[3]d) * 1000000)::bigint $$`, schema, time.Now().Unix(), speed))
}

// TestR29FiftyGoroutinesWhileCountersAreDropped has names come and go while the
// step moves every 50 ms.
func TestR29FiftyGoroutinesWhileCountersAreDropped(t *testing.T) {
	schema, p := newSchema(), pool(t, shared(t).URL()+"&pool_max_conns=30")
	s := store(t, p, pgstore.Schema(schema))
	speedUp(t, p, schema)
	declareNew(t, s)
	o := newOrder()
	churn(t, s, p, schema, o)
	t.Logf("%d grants, %d rows dropped", o.grants, o.dropped)
	if o.dropped < 10 || o.grants < 100 {
		t.Error("hardly anything happened")
	}
	if len(o.wrong) > 0 {
		t.Errorf("tokens out of order: %s", strings.Join(o.wrong, "; "))
	}
}

// TestR29RowIsMadeUnderTheShareLock scripts the race that the share lock on the
// record is for: between reading the step and making the row another client
// uses the name, the step moves and the row is dropped. With the lock the step
// cannot move meanwhile. The clock goes ahead and back: else the slow one would
// see by the clock, which it reads after the row is made, that its step is old.
func TestR29RowIsMadeUnderTheShareLock(t *testing.T) {
	const gate = 4711
	for _, mutant := range []bool{false, true} {
		t.Run(fmt.Sprintf("mutant=%v", mutant), func(t *testing.T) {
			schema, p := newSchema(), pool(t, shared(t).URL())
			s := store(t, p, pgstore.Schema(schema))
			lock := "for share;"
			if mutant {
				lock = ";"
			}
			slow := brief("k", owner())
			mutate(t, p, schema, "ask", `.record for share;`, fmt.Sprintf(`.record %s
				if p_owner = '\x%s' then perform pg_advisory_xact_lock(%d); end if;`, lock, slow.Owner.Hex(), gate))
			stopClock(t, p, schema)
			declareNew(t, s)
			held, err := p.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = held.Rollback(context.Background()) }()
			if _, err := held.Exec(t.Context(), fmt.Sprintf("select pg_advisory_xact_lock(%d)", gate)); err != nil {
				t.Fatal(err)
			}
			answer := make(chan quorum.Grant, 1)
			go func() {
				g, err := s.Acquire(t.Context(), slow)
				if err != nil {
					t.Error(err)
				}
				answer <- g
			}()
			await(t, "the slow one to wait at the gate", func() bool {
				return one[int](t, p, "select count(*) from pg_locks where locktype = 'advisory' and objid = $1 and not granted", int64(gate)) == 1
			})
			quick := brief("k", owner())
			token := mustAcquire(t, s, quick).Token
			mustRelease(t, s, quick)
			run(t, p, fmt.Sprintf("update %s.time set now = now + 11 * 60 * 1000000::bigint", schema))
			// The next call moves the step and drops the row, or waits for that.
			other := brief("other", owner())
			if !mutant {
				other.Limit = 500 * time.Millisecond
			}
			_, err = s.Acquire(t.Context(), other)
			if mutant != (err == nil) {
				t.Errorf("moving the step beside the slow one: %v", err)
			}
			run(t, p, fmt.Sprintf("update %s.time set now = now - 11 * 60 * 1000000::bigint", schema))
			if err := held.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if g := <-answer; mutant != (g.Token <= token) {
				t.Errorf("token %d after %d", g.Token, token)
			}
		})
	}
}

// churn lets fifty goroutines use names, and a cleaner drop them, until enough
// was seen.
func churn(t *testing.T, s *pgstore.Store, p *pgxpool.Pool, schema string, o *order) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			for ctx.Err() == nil && !o.enough() {
				r := brief(fmt.Sprintf("name-%d", rand.IntN(60)), owner())
				before := o.highest(r.Key)
				if g, err := s.Acquire(ctx, r); err == nil {
					o.granted(r.Key, before, g.Token)
					_ = s.Release(ctx, r)
				}
			}
		})
	}
	wait.Go(func() {
		for ctx.Err() == nil && !o.enough() {
			n, err := clean(ctx, p, schema)
			if err != nil && ctx.Err() == nil {
				t.Errorf("clean: %v", err)
			}
			o.drop(n)
		}
	})
	wait.Wait()
}

// clean is what a verb does in passing, on all rows at once.
func clean(ctx context.Context, p *pgxpool.Pool, schema string) (dropped int, err error) {
	tx, err := p.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var step int64
	var before, after int
	if err = tx.QueryRow(ctx, fmt.Sprintf("select step from %s.record for update", schema)).Scan(&step); err != nil {
		return 0, err
	}
	count := fmt.Sprintf("select count(*) from %s.lock", schema)
	if err = tx.QueryRow(ctx, count).Scan(&before); err != nil {
		return 0, err
	}
	if _, err = tx.Exec(ctx, fmt.Sprintf("select %[1]s.clean('', 1000, $1, %[1]s.clock())", schema), step); err != nil {
		return 0, err
	}
	if err = tx.QueryRow(ctx, count).Scan(&after); err != nil {
		return 0, err
	}
	return max(before-after, 0), tx.Commit(ctx)
}

// order knows which tokens were given, and complains of those that were given
// twice or after a higher one.
type order struct {
	mu      sync.Mutex
	last    map[string]int64
	given   map[string]map[int64]bool
	grants  int
	dropped int
	wrong   []string
}

func newOrder() *order {
	return &order{last: map[string]int64{}, given: map[string]map[int64]bool{}}
}

func (o *order) highest(key string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last[key]
}

// granted notes a token of an acquisition that began when before was the
// highest.
func (o *order) granted(key string, before, token int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.given[key] == nil {
		o.given[key] = map[int64]bool{}
	}
	switch {
	case o.given[key][token]:
		o.wrong = append(o.wrong, fmt.Sprintf("%s: %d twice", key, token))
	case token <= before:
		o.wrong = append(o.wrong, fmt.Sprintf("%s: %d after %d", key, token, before))
	}
	o.given[key][token] = true
	o.last[key] = max(o.last[key], token)
	o.grants++
}

func (o *order) drop(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropped += n
}

func (o *order) enough() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.grants >= 2000 && o.dropped >= 100
}

// TestR58IdleNamesGoAndTokensGrow counts on the library's own cleaning.
func TestR58IdleNamesGoAndTokensGrow(t *testing.T) {
	schema, p := newSchema(), pool(t, shared(t).URL())
	s := store(t, p, pgstore.Schema(schema))
	stopClock(t, p, schema)
	declareNew(t, s)
	rows := func() int { return one[int](t, p, fmt.Sprintf("select count(*) from %s.lock", schema)) }
	pass := func(d time.Duration) {
		run(t, p, fmt.Sprintf("update %s.time set now = now + %d", schema, d.Microseconds()))
	}
	use := func(key string) int64 {
		r := brief(key, owner())
		defer mustRelease(t, s, r)
		return mustAcquire(t, s, r).Token
	}
	const names = 100
	last := int64(0)
	for i := range names {
		last = max(last, use(fmt.Sprintf("name-%d", i)))
	}
	pass(9 * time.Minute)
	use("another")
	if n := rows(); n != names+1 {
		t.Fatalf("%d rows after 9 minutes, want all %d", n, names+1)
	}
	pass(11 * time.Minute)
	if token := use("name-7"); token <= last {
		t.Errorf("token %d after %d", token, last)
	}
	if n := rows(); n > 2 {
		t.Errorf("%d rows are left after the step moved", n)
	}
	// Without a step, each new name takes a few idle ones along.
	for i := range names {
		use(fmt.Sprintf("name-%d", i))
	}
	pass(11 * time.Minute)
	run(t, p, fmt.Sprintf("update %s.record set step = step + 3, moved = (select now from %s.time)", schema, schema))
	for i := range names / 2 {
		use(fmt.Sprintf("new-%d", i))
	}
	if n := one[int](t, p, fmt.Sprintf("select count(*) from %s.lock where convert_from(name, 'UTF8') like 'name-%%'", schema)); n > names/4 {
		t.Errorf("%d of %d idle rows are left after %d new names", n, names, names/2)
	}
}

var _ quorum.Store = (*pgstore.Store)(nil)
