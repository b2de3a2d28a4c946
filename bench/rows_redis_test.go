//go:build unix

package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
	"github.com/redis/rueidis/rueidislock"
)

// redsync asks all servers at once, each by a goroutine. What it waits for in
// the tuned rows is a majority, for 500 ms a server; retries come after 20 to 60
// ms, which was best for it under contention.
var (
	redsyncPlain = row{name: "redsync", commands: redsyncCommands, open: func(s *servers) locks {
		return redsyncOver(s.pools(func(addr string) *redis.Options { return &redis.Options{Addr: addr} }))
	}}
	redsyncTuned = row{name: "redsync, tuned", commands: redsyncCommands, open: func(s *servers) locks {
		return redsyncOver(s.pools(tuned), redsyncOptions...)
	}}
	redsyncRueidis = row{name: "redsync on rueidis, tuned", commands: redsyncCommands, open: func(s *servers) locks {
		var pools []redsyncredis.Pool
		for _, addr := range s.addrs {
			c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
			if err != nil {
				s.tb.Fatal(err)
			}
			s.tb.Cleanup(c.Close)
			pools = append(pools, redsyncrueidis.NewPool(rueidiscompat.NewAdapter(c)))
		}
		return redsyncOver(pools, redsyncOptions...)
	}}

	redsyncCommands = []string{"set", "evalsha", "eval"}
	redsyncOptions  = []redsync.Option{
		redsync.WithFailFast(true),
		redsync.WithRetryDelayFunc(func(int) time.Duration { return 20*time.Millisecond + rand.N(40*time.Millisecond) }),
	}
)

func tuned(addr string) *redis.Options {
	return &redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true}
}

// client makes a go-redis client that ends with the setting.
func (s *servers) client(o *redis.Options) *redis.Client {
	c := redis.NewClient(o)
	s.tb.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *servers) pools(options func(addr string) *redis.Options) []redsyncredis.Pool {
	var pools []redsyncredis.Pool
	for _, addr := range s.addrs {
		pools = append(pools, redsyncgoredis.NewPool(s.client(options(addr))))
	}
	return pools
}

type redsyncLocks struct {
	*redsync.Redsync
	options []redsync.Option
}

func redsyncOver(pools []redsyncredis.Pool, options ...redsync.Option) locks {
	return redsyncLocks{redsync.New(pools...), append([]redsync.Option{redsync.WithExpiry(ttl)}, options...)}
}

func (r redsyncLocks) acquire(ctx context.Context, key string) (held, error) {
	m := r.NewMutex(key, r.options...)
	// It gives up after 32 tries, and says of a server that did not answer and of
	// one that refused much the same.
	err := untilHeld(ctx, func() error { return m.LockContext(ctx) }, func(error) bool { return true })
	return redsyncHeld{m}, err
}

type redsyncHeld struct{ *redsync.Mutex }

func (h redsyncHeld) Release(ctx context.Context) error {
	if ok, err := h.UnlockContext(ctx); err != nil || !ok {
		return errors.Join(errors.New("redsync: not unlocked"), err)
	}
	return nil
}

// redislock knows one server. It retries as its user says, here every 5 ms.
var redislockRow = row{name: "redislock", lone: true, commands: []string{"evalsha", "eval"}, open: func(s *servers) locks {
	return redislockLocks{redislock.New(s.client(tuned(s.addrs[0])))}
}}

type redislockLocks struct{ *redislock.Client }

func (r redislockLocks) acquire(ctx context.Context, key string) (held, error) {
	return r.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(5 * time.Millisecond)})
}

// rueidislock with one key a lock; by default it takes two of three, all of them
// in one server. Waiters are told by client-side caching.
var rueidislockRow = row{name: "rueidislock", lone: true, commands: []string{"evalsha", "eval"}, open: func(s *servers) locks {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: s.addrs[:1]}, KeyMajority: 1, KeyValidity: ttl,
	})
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(l.Close)
	return rueidisLocks{l}
}}

type rueidisLocks struct{ rueidislock.Locker }

func (r rueidisLocks) acquire(ctx context.Context, key string) (held, error) {
	_, release, err := r.WithContext(ctx, key)
	return rueidisHeld(release), err
}

type rueidisHeld context.CancelFunc

func (h rueidisHeld) Release(context.Context) error { h(); return nil }
