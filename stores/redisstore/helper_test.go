package redisstore_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/stores/redisstore"
	"github.com/quorumlock/quorum/stores/redisstore/internal/trial"
)

// What is granted by ask outlasts a test on any machine. A vote or quarantine of
// brief is over soon, so that its end can be waited for.
const maxTTL, briefMaxTTL = time.Minute, 400 * time.Millisecond

// client returns a client as Opener makes it, closed with the test.
func client(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: time.Second, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func store(t testing.TB, c redis.UniversalClient, options ...redisstore.Option) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New("a", c, options...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask is a request of the set that all these tests are.
func ask(key string, o quorum.Owner) quorum.Request {
	return quorum.Request{
		Key: key, Owner: o, TTL: maxTTL, MaxTTL: maxTTL, Limit: 5 * time.Second, Set: 0xfeed,
		Label: "tester",
	}
}

// brief is ask with a vote and a quarantine that end soon.
func brief(key string, o quorum.Owner) quorum.Request {
	r := ask(key, o)
	r.TTL, r.MaxTTL = 300*time.Millisecond, briefMaxTTL
	return r
}

// What all stores' tests share.
var (
	owner         = acceptance.Owner
	mustAcquire   = acceptance.MustAcquire
	declareNewFor = acceptance.DeclareNew
	mustRelease   = acceptance.MustRelease
	wantOutcome   = acceptance.WantOutcome
	await         = acceptance.Await
)

// declareNew ends the quarantine that every server begins with.
func declareNew(t testing.TB, s *redisstore.Store) {
	t.Helper()
	acceptance.DeclareNew(t, s, ask("", quorum.Owner{}))
}

// runID asks a server which life of it this is.
func runID(t *testing.T, c *redis.Client) string {
	t.Helper()
	info, err := c.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "run_id:")
	id, _, _ := strings.Cut(rest, "\r")
	return id
}

// evalMicros is the server's time for one EVALSHA.
func evalMicros(t testing.TB, info map[string]map[string]string) float64 {
	t.Helper()
	_, text, _ := strings.Cut(info["Commandstats"]["cmdstat_evalsha"], "usec_per_call=")
	text, _, _ = strings.Cut(text, ",")
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("INFO commandstats: %v: %q", err, info)
	}
	return f
}

// seed is random, or the one to replay.
func seed(t *testing.T) uint64 { return trial.Seed(t) }
