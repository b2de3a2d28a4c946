package pgstore

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorum"
)

// setupLock is the advisory lock of one transaction that keeps two Setups apart.
const setupLock = 0x71756f72756d // "quorum"

// Setup makes the store's schema with its tables and functions, or brings the
// functions to this version. It leaves rows that are there alone and may be
// called at any time, by any number of processes. Where everything is there
// already it only looks, and so works for a user who may create nothing.
//
// It does not grant anything to other users: those need USAGE on the schema and
// SELECT, INSERT, UPDATE and DELETE on its two tables.
func (s *Store) Setup(ctx context.Context) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	c, err := s.db.conn(ctx)
	if err != nil {
		return s.setupError(quorum.Undelivered(err))
	}
	defer c.done()
	var version string
	err = c.row(ctx, s.text.versioned, nil, []any{&version})
	switch {
	case err == nil && version == s.text.version:
		return nil
	case err != nil && !missing(err):
		return s.setupError(err)
	}
	// One script is one transaction, so a Setup that fails leaves nothing.
	if err := c.script(ctx, fmt.Sprintf("select pg_advisory_xact_lock(%d);\n%s", setupLock, s.text.setup)); err != nil {
		return s.setupError(err)
	}
	return nil
}

func (s *Store) setupError(err error) error {
	switch stateOf(err) {
	case "42501":
		err = fmt.Errorf("the user may not create the schema %s or replace its functions; let its owner run Setup: %w", s.schema, err)
	default:
		err = remedied(err)
	}
	return fmt.Errorf("postgres store %s: setup: %w", s.name, err)
}
