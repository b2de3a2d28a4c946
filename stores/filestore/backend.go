package filestore

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
)

type decide = func(rec *model.Record, name *model.Name, now model.Time)

// Update implements modelstore.Backend.
func (d *directory) Update(ctx context.Context, key string, f decide) error {
	release, err := d.hold(ctx, exclusive)
	if err != nil {
		return quorum.Undelivered(d.wrap(err))
	}
	defer release()
	r, err := d.begin(key)
	if err != nil {
		return quorum.Undelivered(d.wrap(err))
	}
	defer r.close()
	f(&r.after.Record, r.model(), r.time)
	if touched, err := d.commit(r); err != nil {
		if !touched {
			err = quorum.Undelivered(err)
		}
		return d.wrap(err)
	}
	return nil
}

// View implements modelstore.Backend.
func (d *directory) View(ctx context.Context, key string, f decide) error {
	release, err := d.hold(ctx, shared)
	if err != nil {
		return quorum.Undelivered(d.wrap(err))
	}
	defer release()
	r, err := d.begin(key)
	if err != nil {
		return quorum.Undelivered(d.wrap(err))
	}
	defer r.close()
	f(&r.after.Record, r.model(), r.time)
	return nil
}

// running is one call: what was read, to be changed and kept.
type running struct {
	before, after record
	time          model.Time
	name          *named // nil where the record alone is meant
}

func (r *running) model() *model.Name {
	if r.name == nil {
		return nil
	}
	return &r.name.Name
}

func (r *running) close() {
	if r.name != nil {
		r.name.close()
	}
}

func (d *directory) begin(key string) (*running, error) {
	r := &running{}
	var err error
	if r.before, r.after, err = d.loadRecord(); err != nil {
		return nil, err
	}
	r.time = r.after.Now(d.clock)
	if key != "" {
		r.name, err = d.loadName(key, &r.after, r.time)
	}
	return r, err
}

// commit keeps what became of the record first: its step bounds the counters
// of the names, and must be on disk before one of them can be seen. touched is
// false as long as nothing has changed for sure.
func (d *directory) commit(r *running) (touched bool, err error) {
	moved := r.after != r.before
	if moved {
		err = d.keepRecord(r.after)
	} else {
		err = d.syncRecord()
	}
	if err != nil || r.name == nil {
		return moved, err
	}
	made := r.name.file == nil
	touched, err = d.keepName(r.name)
	switch {
	case err != nil:
	case moved:
		d.sweepFiles(r, sweepMoved)
	case made && touched:
		d.sweepFiles(r, sweepMade)
	}
	return moved || touched, err
}

func (d *directory) wrap(err error) error {
	return fmt.Errorf("file store %s in %s: %w", d.store, d.path, err)
}
