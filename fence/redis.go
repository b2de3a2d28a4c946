package fence

import (
	"context"
	"fmt"
)

// RedisScript admits the token ARGV[1] for the key KEYS[1], which holds the
// highest seen: it returns that when the token is stale, and otherwise goes on
// after its last line. Alone it is a guard's, by [Redis]; to guard a write in
// Redis put the write behind it, so that both are one script:
//
//	fence.RedisScript + `return redis.call('SET', KEYS[2], ARGV[2])`
//
// A reply that is an error reply beginning with STALE is a refusal. Tokens are
// below 2^53, which Redis's numbers hold exactly.
const RedisScript = `local seen = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) < seen then
  return redis.error_reply('STALE ' .. string.format('%.0f', seen))
end
redis.call('SET', KEYS[1], ARGV[1])
`

// Redis is a guard in Redis, for resources that are not: its admission and the
// write elsewhere are then two steps, so prefer a write behind [RedisScript].
// The server must keep what it acknowledged; a key that is lost admits anything.
type Redis struct {
	// Eval runs a script. With go-redis:
	//
	//	func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
	//		return client.Eval(ctx, script, keys, args...).Result()
	//	}
	Eval func(ctx context.Context, script string, keys []string, args ...any) (any, error)
	// Prefix stands before the names, "fence:" for example.
	Prefix string
}

var _ Guard = (*Redis)(nil)

// Admit admits a token, see [Guard].
func (r *Redis) Admit(ctx context.Context, name string, token int64) error {
	if err := check(name, token); err != nil {
		return err
	}
	_, err := r.Eval(ctx, RedisScript+"return 1", []string{r.Prefix + name}, token)
	if err == nil {
		return nil
	}
	if seen, ok := RedisStale(err); ok {
		return &StaleError{Name: name, Token: token, Seen: seen}
	}
	return fmt.Errorf("fence: admitting token %d for %q: %w", token, name, err)
}

// RedisStale reports whether the error of a script that begins with
// [RedisScript] says that the token was stale, and the highest seen.
func RedisStale(err error) (seen int64, stale bool) {
	if err == nil {
		return 0, false
	}
	_, scanErr := fmt.Sscanf(err.Error(), "STALE %d", &seen)
	return seen, scanErr == nil
}
