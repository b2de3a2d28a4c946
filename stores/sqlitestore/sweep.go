package sqlitestore

import (
	"time"

	"github.com/quorumlock/quorum/internal/model"
)

// A call that makes a name's row looks at a few others, and drops those that
// the store needs no more. It makes one and looks at more, so the table does
// not grow with the names ever used; and no call pays for all of them. A call
// that moves the step, which waits for the disk anyway, looks at more, so that
// the rows of a store with few names go as well.
//
// The first sweep of a process begins behind the name that it made: programs
// that make one call and end so begin at different ones.
const (
	sweepMade  = 4
	sweepMoved = 64
)

// keepLife is for how long the rows of earlier boots are kept, to tell how
// holders ended: as long as a counter that nobody uses.
const keepLife = 10 * time.Minute

// sweep runs in the call's transaction: the step that makes a dropped name's
// next token larger than its last is committed with it.
func (f *file) sweep(s *session, r *running, most int) error {
	if f.cursor == "" {
		f.cursor = r.key
	}
	names, err := f.idle(s, r, most)
	for _, name := range names {
		if err == nil {
			err = s.drop(name)
		}
	}
	return err
}

// idle looks at the rows behind the cursor, and moves it.
func (f *file) idle(s *session, r *running, most int) (names []string, err error) {
	rows, err := s.conn.QueryContext(s.ctx,
		"SELECT l.name, "+columns+" FROM main.quorum_lock l WHERE l.name > ?1 ORDER BY l.name LIMIT ?2", f.cursor, most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	seen, last := 0, ""
	for ; rows.Next(); seen++ {
		var of row
		if err := rows.Scan(append([]any{&last}, of.fields()...)...); err != nil {
			return nil, err
		}
		if last != r.key && of.isIdle(r) {
			names = append(names, last)
		}
	}
	if f.cursor = last; seen < most {
		f.cursor = "\x01" // before every name but those that begin so
	}
	return names, rows.Err()
}

// isIdle reports whether a row is needed no more. One that is damaged is met by
// who asks for its name.
func (r *row) isIdle(c *running) bool {
	if model.Time(r.life.Int64) != c.after.Life {
		return c.time >= c.after.Life.Add(keepLife)
	}
	n, err := r.name(&c.after, c.time)
	return err == nil && n.Idle(&c.after.Record, c.time)
}
