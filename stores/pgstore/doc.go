// Package pgstore is a [quorum.Store] in a PostgreSQL database, 14 or newer,
// through a pgx pool or any *sql.DB.
//
//	pool, err := pgxpool.New(ctx, "postgres://app@10.0.0.1/locks")
//	…
//	store, err := pgstore.New("a", pool)
//	…
//	err = store.Setup(ctx) // once for each database; needs the right to create a schema
//
// Every verb is one statement that calls a function on the server, by the
// server's clock, which it reads once it has the name's row. Nothing lives in a
// session: no advisory lock, no prepared statement, no open transaction. So a
// pooler in transaction mode may stand between, and a connection that breaks
// loses no lock.
//
// # What it keeps
//
// [Store.Setup] makes a schema, "quorum" by default, with two tables and their
// functions:
//
//	quorum.lock      a row for each name: its counter, its votes, its queue
//	quorum.record    one row: what the server says of itself
//
// To free a name that is stuck: DELETE FROM quorum.lock WHERE name = 'NAME'. A
// trigger keeps the name's counter, so that tokens go on growing, and its queue,
// and tells whoever watches or is first in line. Rows of names that nobody used for ten minutes and a TTL are
// deleted in passing, a few by each call that makes a row.
//
// # Fail-over
//
// PostgreSQL writes to disk before it answers, so a restart forgets nothing. A
// standby that is promoted may not have had all, and shows another timeline; a
// backup that is started in the server's place shows an earlier position in
// its log than a client has seen. The store then stays in quarantine for
// MaxTTL, see [quorum.HighWater], and so it does at each restart of a server
// with fsync off. A standby refuses every verb, and nothing is ever read from
// one.
//
// # Waiting
//
// A waiter stands in the queue of its name, in the name's row, and is told its
// turn by LISTEN and NOTIFY, on one connection for all watches of a store. A pooler in transaction mode lets LISTEN succeed and
// delivers nothing; [Store.Watch] notices and says so. Give it a way around the
// pooler with [ListenOn].
package pgstore
