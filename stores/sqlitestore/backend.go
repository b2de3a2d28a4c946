package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
)

type decide = func(rec *model.Record, name *model.Name, now model.Time)

// Update implements modelstore.Backend.
func (f *file) Update(ctx context.Context, key string, decide decide) error {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return quorum.Undelivered(f.wrap(fmt.Errorf("waiting for other calls of this process: %w", context.Cause(ctx))))
	}
	s, err := f.connect(ctx)
	if err != nil {
		return quorum.Undelivered(f.wrap(err))
	}
	defer s.close()
	sure, err := f.update(ctx, s, key, decide)
	if err != nil && sure {
		return quorum.Undelivered(f.wrap(err))
	}
	if err != nil {
		return f.wrap(err)
	}
	return nil
}

// update is one transaction. An error of which sure is true changed nothing.
func (f *file) update(ctx context.Context, s *session, key string, decide decide) (sure bool, err error) {
	if err := s.begin(ctx); err != nil {
		return true, err
	}
	r, err := f.load(s, key)
	if err == nil {
		err = f.sameJournal(s)
	}
	if err != nil {
		s.rollback()
		return true, err
	}
	decide(&r.after.Record, r.model(), r.time)
	changed, err := f.keep(s, r)
	if err != nil || !changed {
		s.rollback()
		return true, err
	}
	if r.after != f.synced && !s.full {
		// The setting cannot be changed within a transaction.
		s.rollback()
		if err := s.fullSync(); err != nil {
			return true, err
		}
		return f.update(ctx, s, key, decide)
	}
	if sure, err := s.commit(ctx); err != nil {
		return sure, err
	}
	f.synced = r.after
	return true, nil
}

// View implements modelstore.Backend.
func (f *file) View(ctx context.Context, key string, decide decide) error {
	r, err := f.look(ctx, key)
	if err != nil {
		return quorum.Undelivered(f.wrap(err))
	}
	decide(&r.after.Record, r.model(), r.time)
	return nil
}

// look reads a name without a transaction: one statement sees one state.
func (f *file) look(ctx context.Context, key string) (r *running, err error) {
	s, err := f.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	err = await(ctx, func() error {
		r, err = f.load(s, key)
		return err
	})
	return r, err
}

// running is one call: what was read, to be changed and kept.
type running struct {
	before, after record
	time          model.Time
	key           string // empty where the record alone is meant
	row           row
	name          model.Name
}

func (r *running) model() *model.Name {
	if r.key == "" {
		return nil
	}
	return &r.name
}

const loadQuery = "SELECT r.record, " + columns + " FROM (SELECT 1) LEFT JOIN main.quorum_record r LEFT JOIN main.quorum_lock l ON l.name = ?1"

func (f *file) load(s *session, key string) (*running, error) {
	if err := f.current(); err != nil {
		return nil, err
	}
	r := &running{key: key}
	var text sql.NullString
	err := s.conn.QueryRowContext(s.ctx, loadQuery, key).Scan(append([]any{&text}, r.row.fields()...)...)
	if err != nil {
		return nil, err
	}
	if r.before, r.after, err = f.loadRecord(text.String); err != nil {
		return nil, err
	}
	r.time = r.after.Now(f.clock)
	if r.name, err = r.row.name(&r.after, r.time); err != nil {
		return nil, fmt.Errorf("the row of %q in quorum_lock cannot be used: %w; who holds the name cannot be told. "+
			"Once its holder is gone, at latest after MaxTTL, delete the row: its counter stays", key, err)
	}
	return r, nil
}

// keep writes what became of the record and the name.
func (f *file) keep(s *session, r *running) (changed bool, err error) {
	if changed = r.after != r.before; changed {
		if err := s.keepRecord(r.after); err != nil {
			return false, err
		}
	}
	if r.key == "" {
		return changed, nil
	}
	moved := changed
	touched, made, err := s.keepName(r.key, &r.name, r.row, &r.after)
	switch {
	case err != nil:
		return false, err
	case moved:
		err = f.sweep(s, r, sweepMoved)
	case made:
		err = f.sweep(s, r, sweepMade)
	}
	return changed || touched, err
}
