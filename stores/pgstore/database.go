package pgstore

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// database is what a store needs of a client, be it a pgx pool or a *sql.DB.
// Each call takes a connection first: what fails before there is one was
// provably not sent, and a limit counts from then.
type database interface {
	conn(ctx context.Context) (conn, error)
	// listener returns a connection of its own, and what ends it.
	listener(ctx context.Context) (*pgx.Conn, func(), error)
}

type conn interface {
	// row runs one statement and scans its one row.
	row(ctx context.Context, query string, args, into []any) error
	// script runs statements without arguments, in one transaction.
	script(ctx context.Context, text string) error
	done()
}

// pooled is a pgx pool. Every statement names its mode, whatever the pool's
// default is: Exec prepares nothing, so it is safe behind a pooler in
// transaction mode, and takes one round trip. The mode describe_exec, which is
// not safe there, is therefore never used.
type pooled struct{ pool *pgxpool.Pool }

func (p pooled) conn(ctx context.Context) (conn, error) {
	c, err := p.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return pooledConn{c}, nil
}

func (p pooled) listener(ctx context.Context) (*pgx.Conn, func(), error) {
	return dial(ctx, p.pool.Config().ConnConfig)
}

// dial opens a connection that belongs to the store alone.
func dial(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, func(), error) {
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	return c, func() { closeSoon(c) }, nil
}

type pooledConn struct{ *pgxpool.Conn }

func (c pooledConn) row(ctx context.Context, query string, args, into []any) error {
	return c.QueryRow(ctx, query, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(into...)
}

func (c pooledConn) script(ctx context.Context, text string) error {
	_, err := c.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
	return err
}

func (c pooledConn) done() { c.Release() }

// standard is a *sql.DB. Of pgx's driver it asks the same modes as of a pool.
type standard struct {
	db  *sql.DB
	pgx bool
}

func (d standard) conn(ctx context.Context) (conn, error) {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return standardConn{c, d.pgx}, nil
}

// listener takes a connection out of the user's pool for as long as it listens.
func (d standard) listener(ctx context.Context) (*pgx.Conn, func(), error) {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	var listening *pgx.Conn
	err = c.Raw(func(raw any) error {
		listening = raw.(*stdlib.Conn).Conn()
		return nil
	})
	return listening, func() {
		// It listens for ever, so nobody else may have it.
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
		_ = c.Close()
	}, err
}

type standardConn struct {
	*sql.Conn
	pgx bool
}

func (c standardConn) row(ctx context.Context, query string, args, into []any) error {
	if c.pgx {
		args = append([]any{pgx.QueryExecModeExec}, args...)
	}
	return c.QueryRowContext(ctx, query, args...).Scan(into...)
}

func (c standardConn) script(ctx context.Context, text string) error {
	var args []any
	if c.pgx {
		args = []any{pgx.QueryExecModeSimpleProtocol}
	}
	_, err := c.ExecContext(ctx, text, args...)
	return err
}

func (c standardConn) done() { _ = c.Close() }
