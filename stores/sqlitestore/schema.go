package sqlitestore

import "context"

// A name's votes are in a column beside its counter. Whoever deletes the row by
// hand, as people do to a lock that is stuck, means the votes: the trigger
// leaves the counter, without which a token could come twice. The store itself
// gives up a counter first, see drop.
var schema = []string{
	`CREATE TABLE IF NOT EXISTS main.quorum_record (
		id     INTEGER PRIMARY KEY CHECK (id = 1),
		record TEXT NOT NULL
	) STRICT`,
	`CREATE TABLE IF NOT EXISTS main.quorum_lock (
		name    TEXT PRIMARY KEY NOT NULL,
		life    INTEGER NOT NULL, -- the machine's boot that held counts in
		version INTEGER NOT NULL, -- how often the row was written
		counter INTEGER CHECK (counter BETWEEN 0 AND 9007199254740991),
		writer  INTEGER NOT NULL CHECK (writer IN (0, 1)),
		keep    INTEGER NOT NULL,
		held    TEXT -- the rest, in JSON
	) STRICT, WITHOUT ROWID`,
	`CREATE TRIGGER IF NOT EXISTS main.quorum_lock_keeps_counter BEFORE DELETE ON quorum_lock WHEN OLD.counter IS NOT NULL
	BEGIN
		UPDATE quorum_lock SET held = NULL, version = version + 1 WHERE name = OLD.name;
		SELECT RAISE(IGNORE);
	END`,
}

// setup makes the tables that are not there, in one transaction. Where all are
// there it writes nothing, so that a program may start while another one holds
// the database.
func (f *file) setup(ctx context.Context) error {
	s, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	made := 0
	err = await(ctx, func() error {
		return s.conn.QueryRowContext(s.ctx, "SELECT count(*) FROM main.sqlite_schema WHERE name GLOB 'quorum_*' AND type IN ('table', 'trigger')").
			Scan(&made)
	})
	if err != nil || made == len(schema) {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	for _, statement := range schema {
		if err := s.exec(statement); err != nil {
			s.rollback()
			return err
		}
	}
	_, err = s.commit(ctx)
	return err
}
