package pgstore

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/quorumlock/quorum"
)

// Option is a setting of a [Store].
type Option func(*Store) error

const defaultSchema = "quorum"

// Schema sets the schema that holds the store's tables and functions, "quorum"
// by default: 1 to 48 lower-case letters, digits and underscores, not beginning
// with a digit or pg_. A key in one schema never meets the same key in another;
// two schemas of one server are still one server, and one vote.
func Schema(name string) Option {
	return func(s *Store) error {
		bad := func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }
		if name == "" || len(name) > 48 || strings.ContainsFunc(name, bad) || name[0] <= '9' || strings.HasPrefix(name, "pg_") {
			return fmt.Errorf("%w: Schema(%q): it must be 1 to 48 lower-case letters, digits and underscores, not beginning "+
				"with a digit or pg_", quorum.ErrInvalidOption, name)
		}
		s.schema = name
		return nil
	}
}

// ListenOn sets where [Store.Watch] connects to, when the store's own database
// handle goes through a pooler in transaction mode, or is a *sql.DB of another
// driver than pgx's. It must reach the same database.
func ListenOn(config *pgx.ConnConfig) Option {
	return func(s *Store) error {
		if config == nil {
			return fmt.Errorf("%w: ListenOn(nil)", quorum.ErrInvalidOption)
		}
		s.direct = config.Copy()
		return nil
	}
}
