//go:build unix

package redisstore_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum/fence"
	"github.com/quorumlock/quorum/fence/fencetest"
	"github.com/quorumlock/quorum/internal/testserver"
)

func TestR30FenceInRedis(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: testserver.Redis(t).Addr})
	t.Cleanup(func() { _ = c.Close() })
	fencetest.Run(t, func(_ *testing.T, _ string) fence.Guard {
		return &fence.Redis{Prefix: "fence:", Eval: func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
			return c.Eval(ctx, script, keys, args...).Result()
		}}
	})

	// A write in the same script.
	write := func(token int64, value string) error {
		return c.Eval(t.Context(), fence.RedisScript+"return redis.call('SET', KEYS[2], ARGV[2])", []string{"{r}fence", "{r}value"}, token, value).Err()
	}
	if err := write(8, "second"); err != nil {
		t.Fatal(err)
	}
	if err := write(8, "second, corrected"); err != nil {
		t.Errorf("the holder's own second write: %v", err)
	}
	if seen, stale := fence.RedisStale(write(7, "first, late")); !stale || seen != 8 {
		t.Errorf("a stale write: %v, %d", stale, seen)
	}
	if got := c.Get(t.Context(), "{r}value").Val(); got != "second, corrected" {
		t.Errorf("the value is %q", got)
	}
}
