package fence

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
)

// Execer is what a guard needs of a database: a *sql.DB, a *sql.Tx or a
// *sql.Conn.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Dialect is how a database numbers the arguments of a statement.
type Dialect uint8

// The dialects.
const (
	Postgres Dialect = iota // $1
	SQLite                  // ?1, from SQLite 3.24 on
)

// SQL is a guard in a table of a database: one row a name. Ask it in the
// transaction of the write, by [SQL.In]; a write that fails then takes the
// admission back with it. A resource that is a row itself needs no guard: put
// "AND fence <= $token" into the UPDATE of that row.
type SQL struct {
	db           Execer
	setup, admit string
}

var _ Guard = (*SQL)(nil)

// tableName is an identifier, or two with a dot between.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// NewSQL returns a guard in a table, "fence" or "schema.fence" for example,
// that Setup makes. It does no I/O, and refuses a name that would have to be
// quoted.
func NewSQL(db Execer, dialect Dialect, table string) (*SQL, error) {
	if !tableName.MatchString(table) {
		return nil, fmt.Errorf("fence: table %q: use letters, digits and _, with a schema's name and a dot before it if need be", table)
	}
	mark := "$"
	switch dialect {
	case Postgres:
	case SQLite:
		mark = "?"
	default:
		return nil, fmt.Errorf("fence: dialect %d is none of Postgres and SQLite", dialect)
	}
	return &SQL{
		db:    db,
		setup: "CREATE TABLE IF NOT EXISTS " + table + " (name TEXT PRIMARY KEY, token BIGINT NOT NULL)",
		// One statement: the database locks the row, and decides on what is in it
		// then. A stale token changes no row.
		admit: "INSERT INTO " + table + " AS f (name, token) VALUES (" + mark + "1, " + mark + "2)" +
			" ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token",
	}, nil
}

// Setup makes the table unless it is there. It changes nothing that is.
func (s *SQL) Setup(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, s.setup); err != nil {
		return fmt.Errorf("fence: making the table: %w", err)
	}
	return nil
}

// In returns the same guard inside a transaction.
func (s *SQL) In(tx Execer) *SQL {
	in := *s
	in.db = tx
	return &in
}

// Admit admits a token, see [Guard]. In a transaction the name stays locked
// until its end. It does not tell which token was seen.
func (s *SQL) Admit(ctx context.Context, name string, token int64) error {
	if err := check(name, token); err != nil {
		return err
	}
	result, err := s.db.ExecContext(ctx, s.admit, name, token)
	if err != nil {
		return fmt.Errorf("fence: admitting token %d for %q: %w", token, name, err)
	}
	switch rows, err := result.RowsAffected(); {
	case err != nil:
		return fmt.Errorf("fence: admitting token %d for %q: %w", token, name, err)
	case rows == 0:
		return &StaleError{Name: name, Token: token}
	}
	return nil
}
