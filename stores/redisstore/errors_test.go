package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

var contains = strings.Contains

func TestR81WrongPasswordIsNoContention(t *testing.T) {
	node := testserver.Redis(t, testserver.RedisConfig("requirepass right-horse"))
	for password, code := range map[string]string{"wrong-battery": "WRONGPASS", "": "NOAUTH"} {
		c := redis.NewClient(&redis.Options{Addr: node.Addr, Password: password, MaxRetries: -1, ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = c.Close() })
		s := store(t, c)
		r := ask("k", owner())
		_, err := s.Acquire(t.Context(), r)
		wantOutcome(t, err, quorum.OutcomeUndelivered)
		if errors.Is(err, quorum.ErrHeld) || !contains(err.Error(), code) || !contains(err.Error(), "password") {
			t.Errorf("%v, want one that names %s", err, code)
		}
		for _, secret := range []string{"right-horse", "wrong-battery", r.Owner.Hex()} {
			if contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
				t.Errorf("R63: the error shows %q", secret)
			}
		}
	}
}

func TestFullMemory(t *testing.T) {
	node := testserver.Redis(t, testserver.RedisConfig("maxmemory-policy noeviction"))
	c := client(t, node.Addr)
	s := store(t, c)
	declareNew(t, s)
	held, reader := ask("held", owner()), ask("read", owner())
	reader.Mode = quorum.ModeShared
	mustAcquire(t, s, held)
	mustAcquire(t, s, reader)
	if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Acquire(t.Context(), ask("new", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !contains(err.Error(), "OOM") || !contains(err.Error(), "maxmemory") {
		t.Errorf("acquire in a full memory: %v", err)
	}
	if _, err := s.Extend(t.Context(), held); err != nil {
		t.Errorf("extend in a full memory: %v", err)
	}
	held.Entomb = true
	mustRelease(t, s, held)
	mustRelease(t, s, reader)
	if len(s.Advice()) != 0 {
		t.Errorf("advice about noeviction: %q", s.Advice())
	}
}

func TestF166EvictionIsAdvisedAgainst(t *testing.T) {
	node := testserver.Redis(t, testserver.RedisConfig("user plain on >secret ~{quorum}:* +@all -config"))
	admin := client(t, node.Addr)
	for policy, want := range map[string]int{"allkeys-lru": 1, "volatile-ttl": 1, "noeviction": 0} {
		if err := admin.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		c := redis.NewClient(&redis.Options{
			Addr: node.Addr, Username: "plain", Password: "secret", MaxRetries: -1, ContextTimeoutEnabled: true,
		})
		t.Cleanup(func() { _ = c.Close() })
		if err := c.ConfigGet(t.Context(), "maxmemory-policy").Err(); !redis.IsPermissionError(err) {
			t.Fatalf("the user may read the configuration: %v", err)
		}
		s := store(t, c)
		if got := s.Advice(); len(got) != 0 {
			t.Errorf("advice before the first answer: %q", got)
		}
		if _, err := s.ReadStep(t.Context(), ask("", quorum.Owner{})); err != nil {
			t.Fatal(err)
		}
		got := s.Advice()
		if len(got) != want || want == 1 && !contains(got[0], policy) {
			t.Errorf("advice about %s: %q", policy, got)
		}
	}
}

func TestWhatSpreadsKeysBehindTheStoreIsRefused(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	if _, err := redisstore.New("a", ring); !errors.Is(err, quorum.ErrUnsupported) {
		t.Errorf("New with a Ring: %v", err)
	}
	node := testserver.Redis(t, testserver.RedisConfig("cluster-enabled yes"))
	_, err := store(t, client(t, node.Addr)).Acquire(t.Context(), ask("k", owner()))
	if !errors.Is(err, quorum.ErrUnsupported) {
		t.Errorf("acquire on a node of a cluster: %v", err)
	}
	wantOutcome(t, err, quorum.OutcomeUndelivered)
}

func TestBadSettingsFailAtOnce(t *testing.T) {
	c := client(t, "127.0.0.1:1")
	for _, make := range []func() (*redisstore.Store, error){
		func() (*redisstore.Store, error) { return redisstore.New("", c) },
		func() (*redisstore.Store, error) { return redisstore.New("a", nil) },
		func() (*redisstore.Store, error) { return redisstore.New("a", c, redisstore.Prefix("")) },
		func() (*redisstore.Store, error) { return redisstore.New("a", c, redisstore.Prefix("a}b")) },
		func() (*redisstore.Store, error) { return redisstore.New("a", c, redisstore.RunID("a'b")) },
	} {
		if _, err := make(); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%v, want ErrInvalidOption", err)
		}
	}
}

func TestServerAwayIsUndelivered(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = store(t, client(t, l.Addr().String())).Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
}

func TestServerThatHangsIsUnknown(t *testing.T) {
	node := testserver.Redis(t)
	s := store(t, client(t, node.Addr))
	declareNew(t, s)
	mustAcquire(t, s, ask("k", owner()))
	node.Stall()
	defer node.Resume()
	r := ask("k2", owner())
	r.Limit = 500 * time.Millisecond // enough to send it, on any machine
	_, err := s.Acquire(t.Context(), r)
	wantOutcome(t, err, quorum.OutcomeUnknown)
	if !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("%v, want a time-out", err)
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestRetryingClientIsSaidToDouble(t *testing.T) {
	node := testserver.Redis(t)
	c := redis.NewClient(&redis.Options{Addr: node.Addr})
	t.Cleanup(func() { _ = c.Close() })
	s := store(t, c)
	if !s.Limits().Doubles || len(s.Advice()) != 2 {
		t.Errorf("limits %+v, advice %q", s.Limits(), s.Advice())
	}
	declareNew(t, s)
	mustAcquire(t, s, ask("k", owner()))
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	refused := (*quorum.RefusedError)(nil)
	if !errors.As(err, &refused) || refused.Clean {
		t.Errorf("a refusal through a client that sends twice is clean: %+v", refused)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("R57: Close closed the user's client: %v", err)
	}
}

func TestR57OpenerMakesAndClosesItsClient(t *testing.T) {
	node := testserver.Redis(t, testserver.RedisConfig("requirepass horse"))
	dsn, err := url.Parse("redis://:horse@" + node.Addr + "/3?name=member&prefix=mine&max_retries=5&dial_timeout=2s")
	if err != nil {
		t.Fatal(err)
	}
	opener := redisstore.Opener()
	opened, err := opener.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*redisstore.Store)
	if s.Name() != "member" || s.Limits().Doubles || len(s.Advice()) != 0 {
		t.Errorf("name %q, limits %+v, advice %q", s.Name(), s.Limits(), s.Advice())
	}
	declareNew(t, s)
	mustAcquire(t, s, ask("k", owner()))
	c := redis.NewClient(&redis.Options{Addr: node.Addr, Password: "horse", DB: 3})
	t.Cleanup(func() { _ = c.Close() })
	if n := c.Exists(t.Context(), "{mine}:vote:k").Val(); n != 1 {
		t.Errorf("keys in database 3: %q", keysOf(t, c))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), ask("k", owner()))
	if !errors.Is(err, redis.ErrClosed) {
		t.Errorf("acquire after Close: %v", err)
	}
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	for _, bad := range []string{"redis://:horse@x/y", "redis://:horse@x?name=a&nonsense=1", "redis://:horse@x?name=a&prefix="} {
		dsn, _ := url.Parse(bad)
		if _, err := opener.Open(t.Context(), dsn); !errors.Is(err, quorum.ErrInvalidOption) || contains(err.Error(), "horse") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
