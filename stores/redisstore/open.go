package redisstore

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/quorum"
)

// Opener returns the [quorum.Opener] of DSNs such as
//
//	redis://user:password@10.0.0.1:6379/0?prefix=quorum
//
// and rediss:// over TLS. Beside name and [Prefix] it takes the settings of
// redis.ParseURL, but for those of retries: the client it makes sends every
// request once. The store closes that client.
func Opener() quorum.Opener {
	return quorum.Opener{Schemes: []string{"redis", "rediss"}, Open: open}
}

func open(_ context.Context, dsn *url.URL) (quorum.Store, error) {
	query := dsn.Query()
	name, prefix := query.Get("name"), query.Get("prefix")
	for _, ours := range []string{"name", "prefix", "max_retries"} {
		query.Del(ours)
	}
	plain := *dsn
	plain.RawQuery = query.Encode()
	o, err := redis.ParseURL(plain.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", quorum.ErrInvalidOption, err)
	}
	once(o)
	client := redis.NewClient(o)
	var options []Option
	if dsn.Query().Has("prefix") {
		options = append(options, Prefix(prefix))
	}
	s, err := New(name, client, options...)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	s.owned = client
	return s, nil
}

// once makes a client that sends every request once, fails soon, and has a
// connection for each call that a busy process makes at a time. What a DSN sets
// stays.
func once(o *redis.Options) {
	o.MaxRetries, o.DialerRetries = -1, 1
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	defaultTo(&o.DialTimeout, time.Second)
	defaultTo(&o.ReadTimeout, 2*time.Second)
	defaultTo(&o.WriteTimeout, 2*time.Second)
	defaultTo(&o.PoolTimeout, time.Second)
	if o.PoolSize == 0 {
		o.PoolSize = max(32, 8*runtime.GOMAXPROCS(0))
	}
}

func defaultTo(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}
