package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strconv"
	"strings"
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
//
// A Redis Cluster is redis+cluster:// (rediss+cluster:// over TLS) and any of its
// nodes, with more of them as in redis.ParseClusterURL, to begin with when that
// one is down:
//
//	redis+cluster://user:password@10.0.0.1:6379?addr=10.0.0.2:6379&name=locks
//
// Without a name the store's is scheme and host, with the database's number and
// the prefix where they are not 0 and quorum: all that decides where its keys
// lie.
//
// go-redis writes what it thinks of a server that is down to standard error.
// The errors say it too: redis.SetLogger, which is the whole program's, ends it.
func Opener() quorum.Opener {
	schemes := []string{"redis", "rediss", "redis" + ofCluster, "rediss" + ofCluster}
	return quorum.Opener{Schemes: schemes, Open: open, Name: nameOf}
}

// nameOf leaves a database that makes no sense in the name: open refuses it.
func nameOf(dsn *url.URL) string {
	query := dsn.Query()
	db := query.Get("db") // comes before the path, as redis.ParseURL has it
	if db == "" {
		db = strings.Trim(dsn.Path, "/")
	}
	name := url.URL{Scheme: dsn.Scheme, Opaque: dsn.Opaque, Host: dsn.Host}
	if n, err := strconv.Atoi(db); db != "" && (err != nil || n != 0) {
		name.Path = "/" + strings.TrimLeft(db, "0")
	}
	if prefix := query.Get("prefix"); prefix != "" && prefix != defaultPrefix {
		name.RawQuery = url.Values{"prefix": {prefix}}.Encode()
	}
	return name.String()
}

// checkHost refuses what go-redis would take for a host: in redis:10.0.0.1 it
// sees none and goes to this machine instead.
func checkHost(dsn *url.URL) error {
	host, port := dsn.Hostname(), dsn.Port()
	if host == "" || strings.Contains(host, ":") && dsn.Host[0] != '[' {
		return fmt.Errorf("%w: a redis DSN has the form redis://host:port/db", quorum.ErrInvalidOption)
	}
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return fmt.Errorf("%w: the port of a redis DSN lies between 1 and 65535", quorum.ErrInvalidOption)
	}
	return nil
}

func open(_ context.Context, dsn *url.URL) (quorum.Store, error) {
	if err := checkHost(dsn); err != nil {
		return nil, err
	}
	query := dsn.Query()
	name, prefix := query.Get("name"), query.Get("prefix")
	for _, ours := range []string{"name", "prefix", "max_retries"} {
		query.Del(ours)
	}
	plain := *dsn
	plain.RawQuery = query.Encode()
	var client redis.UniversalClient
	var err error
	if scheme, ok := strings.CutSuffix(dsn.Scheme, ofCluster); ok {
		plain.Scheme = scheme
		client, err = clusterOf(&plain)
	} else {
		client, err = serverOf(&plain)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", quorum.ErrInvalidOption, err)
	}
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

func serverOf(dsn *url.URL) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(dsn.String())
	if err != nil {
		return nil, err
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	limits{&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.PoolSize}.once()
	return redis.NewClient(o), nil
}

// ofCluster ends the schemes of clusters.
const ofCluster = "+cluster"

func clusterOf(dsn *url.URL) (redis.UniversalClient, error) {
	if strings.Trim(dsn.Path, "/0") != "" || dsn.Query().Has("db") {
		return nil, errors.New("a Redis Cluster has one database, without a number")
	}
	o, err := redis.ParseClusterURL(dsn.String())
	if err != nil {
		return nil, err
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false // a replica's answer is not the primary's
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	limits{&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.PoolSize}.once()
	return redis.NewClusterClient(o), nil
}

// limits are what a DSN may say of a client's connections.
type limits struct {
	dial, read, write, wait *time.Duration
	connections             *int
}

// once makes a client that sends every request once fail soon, and gives it a
// connection for each call that a busy process makes at a time. What a DSN sets
// stays.
func (l limits) once() {
	defaultTo(l.dial, time.Second)
	defaultTo(l.read, 2*time.Second)
	defaultTo(l.write, 2*time.Second)
	defaultTo(l.wait, time.Second)
	if *l.connections == 0 {
		*l.connections = max(32, 8*runtime.GOMAXPROCS(0))
	}
}

func defaultTo(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}
