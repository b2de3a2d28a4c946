package pgstore

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quorumlock/quorum"
)

// refusals are the errors whose cause has a remedy.
var refusals = map[string]string{
	"25006": "the server is a standby or read-only; connect to the primary or wait for its promotion",
	"28P01": "the server refuses the user or the password",
	"28000": "the server refuses the user",
	"3D000": "the database does not exist",
	"40001": "the session's default isolation is above read committed",
	"42501": "the user lacks a permission; grant it USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on its tables",
	"53100": "the server's disk is full",
	"53300": "the server has too many connections; use a smaller pool or a pooler",
	"55P03": "the name's row was locked for the whole limit of the call",
	"57P03": "the server is starting, or shutting down",
	"QRFMT": "another version of this package made the tables; use another schema",
}

// explain says what an error of the client means. It is wrapped by
// quorum.Undelivered if the request provably had no effect: the connection was
// not made, nothing was written to it, or the server itself says that it rolled
// the statement back. A client that may have sent it twice proves nothing.
func explain(err error, schema string, doubles bool) error {
	if quorum.OutcomeOf(err) == quorum.OutcomeUndelivered {
		return remedied(err)
	}
	never := pgconn.SafeToRetry(err) || rolledBack(err)
	if missing(err) {
		err = fmt.Errorf("schema %s lacks this version's tables and functions; call Setup as a user that may create them: %w", schema, err)
	}
	err = remedied(err)
	if never && !doubles {
		return quorum.Undelivered(err)
	}
	return err
}

func remedied(err error) error {
	if todo, ok := refusals[stateOf(err)]; ok {
		return fmt.Errorf("%s: %w", todo, err)
	}
	return err
}

// rolledBack reports whether an error is the server's word that the statement
// failed. An error of the connection's end (class 08, 57P, or a FATAL) may come
// after the commit.
func rolledBack(err error) bool {
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.SeverityUnlocalized != "ERROR" && pg.SeverityUnlocalized != "" {
		return false
	}
	state := stateOf(err)
	return state != "" && state[:2] != "08" && state[:2] != "XX" && state[:3] != "57P"
}

// missing reports whether the schema, a table, or a function is not there.
func missing(err error) bool {
	switch stateOf(err) {
	case "3F000", "42P01", "42883", "42704":
		return true
	}
	return false
}

// stateOf returns the SQLSTATE of an error of any driver, or nothing.
func stateOf(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) && len(coded.SQLState()) == 5 {
		return coded.SQLState()
	}
	return ""
}
