package sqlitestore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
)

// row is what the database has of a name; version is not valid where there is
// none.
type row struct {
	life, version, counter, writer, keep sql.NullInt64
	held                                 sql.NullString
}

const columns = "l.life, l.version, l.counter, l.writer, l.keep, l.held"

func (r *row) fields() []any {
	return []any{&r.life, &r.version, &r.counter, &r.writer, &r.keep, &r.held}
}

// name reads a row, as of the record's boot.
func (r *row) name(rec *record, now model.Time) (n model.Name, err error) {
	if r.held.Valid {
		if err := json.Unmarshal([]byte(r.held.String), &n); err != nil {
			return n, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	n.Known, n.Counter = r.counter.Valid, r.counter.Int64
	n.Writer, n.Keep = r.writer.Int64 == 1, model.Time(r.keep.Int64)
	if err := sound(&n); err != nil {
		return n, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if r.version.Valid && model.Time(r.life.Int64) != rec.Life {
		n.Void(&rec.Record, now)
	}
	return n, nil
}

// sound refuses what the store never writes: SQLite has no checksums.
func sound(n *model.Name) error {
	for i, v := range n.Votes {
		switch {
		case !n.Known || v.Token < 1 || v.Token > n.Counter:
			return fmt.Errorf("a vote's token is %d and the counter %d", v.Token, n.Counter)
		case i > 0 && n.Votes[i-1].Owner.ID.Compare(v.Owner.ID) >= 0:
			return errors.New("its votes are not in order")
		case quorum.Mode(v.Mode) > quorum.ModeShared, len(n.Votes) > 1 && quorum.Mode(v.Mode) == quorum.ModeExclusive:
			return fmt.Errorf("a vote of %d has mode %d", len(n.Votes), v.Mode)
		}
	}
	if quorum.Previous(n.Last) > quorum.PreviousExpired {
		return fmt.Errorf("its last holder ended by %d", n.Last)
	}
	return nil
}

// keepName writes what became of a name, and reports whether it made a row.
func (s *session) keepName(key string, n *model.Name, was row, rec *record) (changed, made bool, err error) {
	now, err := rowOf(n, rec)
	now.version = was.version
	switch {
	case err != nil:
		return false, false, err
	case nothing(n) && !was.version.Valid, now == was:
		return false, false, nil
	case nothing(n):
		return true, false, s.drop(key)
	}
	return true, !was.version.Valid, s.exec(
		"INSERT INTO main.quorum_lock (name, life, version, counter, writer, keep, held) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) "+
			"ON CONFLICT (name) DO UPDATE SET life = excluded.life, version = excluded.version, counter = excluded.counter, "+
			"writer = excluded.writer, keep = excluded.keep, held = excluded.held",
		key, now.life, was.version.Int64+1, now.counter, now.writer, now.keep, now.held)
}

func rowOf(n *model.Name, rec *record) (row, error) {
	whole := func(v int64) sql.NullInt64 { return sql.NullInt64{Int64: v, Valid: true} }
	r := row{life: whole(int64(rec.Life)), keep: whole(int64(n.Keep)), writer: whole(0)}
	if n.Writer {
		r.writer.Int64 = 1
	}
	if n.Known {
		r.counter = whole(n.Counter)
	}
	rest := *n
	rest.Known, rest.Writer, rest.Counter, rest.Keep = false, false, 0, 0
	if nothing(&rest) {
		return r, nil
	}
	text, err := json.Marshal(rest)
	r.held = sql.NullString{String: string(text), Valid: true}
	return r, err
}

func nothing(n *model.Name) bool {
	return !n.Known && n.Last == 0 && len(n.Votes)+len(n.Tombs)+len(n.Forced)+len(n.Queue) == 0
}

// drop deletes a row with its counter, see schema.
func (s *session) drop(key string) error {
	if err := s.exec("UPDATE main.quorum_lock SET counter = NULL WHERE name = ?1", key); err != nil {
		return err
	}
	return s.exec("DELETE FROM main.quorum_lock WHERE name = ?1", key)
}
