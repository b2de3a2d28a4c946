package pgstore

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorumlock/quorum"
)

// Opener returns the [quorum.Opener] of DSNs such as
//
//	postgres://user:password@10.0.0.1:5432/locks?schema=quorum&sslmode=verify-full
//
// and postgresql://. Beside name, schema ([Schema]) and listen=host:port (another
// address for [ListenOn]) it takes what libpq's URLs do. The store makes its
// tables at the first call that misses them, and closes its pool.
//
// Without a name the store's is scheme, host and database, with the schema
// where it is not quorum: all that decides where its rows lie.
func Opener() quorum.Opener {
	return quorum.Opener{Schemes: []string{"postgres", "postgresql"}, Open: open, Name: nameOf}
}

func nameOf(dsn *url.URL) string {
	name := url.URL{Scheme: "postgres", Host: dsn.Host, Path: strings.TrimRight(dsn.Path, "/")}
	if schema := dsn.Query().Get("schema"); schema != "" && schema != defaultSchema {
		name.RawQuery = url.Values{"schema": {schema}}.Encode()
	}
	return name.String()
}

func open(_ context.Context, dsn *url.URL) (quorum.Store, error) {
	if dsn.Host == "" || strings.Trim(dsn.Path, "/") == "" {
		return nil, fmt.Errorf("%w: a postgres DSN has the form postgres://user@host:port/database", quorum.ErrInvalidOption)
	}
	query := dsn.Query()
	var options []Option
	if query.Has("schema") {
		options = append(options, Schema(query.Get("schema")))
	}
	name, listen := query.Get("name"), query.Get("listen")
	for _, ours := range []string{"name", "schema", "listen"} {
		query.Del(ours)
	}
	plain := *dsn
	plain.RawQuery = query.Encode()
	config, err := pgxpool.ParseConfig(plain.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", quorum.ErrInvalidOption, err)
	}
	if listen != "" {
		plain.Host = listen
		direct, err := pgx.ParseConfig(plain.String())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", quorum.ErrInvalidOption, err)
		}
		options = append(options, ListenOn(direct))
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = time.Second
	}
	if !query.Has("pool_max_conns") {
		config.MaxConns = int32(max(16, 4*runtime.GOMAXPROCS(0)))
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config) // it dials when first used
	if err != nil {
		return nil, fmt.Errorf("%w: %w", quorum.ErrInvalidOption, err)
	}
	s, err := New(name, pool, options...)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.owned, s.eager = pool, true
	return s, nil
}
