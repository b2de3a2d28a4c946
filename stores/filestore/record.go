package filestore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/platform"
)

// record is the file of what the store keeps of itself. It is the one file
// that is on disk (fsync) before a call returns; it changes when the step
// moves, every five minutes at most but for large floors, and around a
// quarantine. Names are not synced, and need not be:
//
//   - A killed process loses nothing that the kernel has, and a power cut is
//     the end of a boot.
//   - A boot ends all votes: the holders of a lock that a directory arbitrates
//     ran on its machine.
//   - The step bounds every counter from above (the model moves the step
//     before a counter outgrows it), and it is synced before the name is
//     written. The next life starts from the next step (model.Record.Resume).
//     So no counter goes back, whatever is left of the names' files, also if
//     it is an older state of them or half a one.
//
// The price is that tokens jump to the next step with each boot.
type record struct {
	Format         int
	platform.Epoch            // its Life is part of the names' files' names
	Before         model.Time // the same of the life before, 0 if there was none
	model.Record
}

const recordFormat = 1

// newLife returns what follows on old with the next boot, or with a record
// lost.
func (d *directory) newLife(old record) record {
	r := old
	r.Format, r.Before = recordFormat, old.Life
	r.Epoch = old.Next(d.boot, d.clock, d.wall())
	return r
}

// known is a record that this process has read or written before.
type known struct {
	text   []byte
	record record
	synced bool // it is on disk
}

// loadRecord reads the record, and brings it into this boot. before is what
// stands in the file; the lock must be held.
func (d *directory) loadRecord() (before, after record, err error) {
	f, text, err := d.read(recordName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// It may have been any life's. Whoever comes next begins a quarantine.
		after = d.newLife(record{})
		after.Member = d.store
		after.Restart(d.boot)
		return before, after, nil
	case err == nil:
		before, err = d.parseRecord(text)
		_ = f.Close()
	}
	if err != nil {
		return before, after, fmt.Errorf("the record %s cannot be used: %w; if it is beyond repair remove it: "+
			"the store then counts as one that forgot and is in quarantine for MaxTTL", filepath.Join(d.path, recordName), err)
	}
	if before.Boot == d.boot {
		return before, before, nil
	}
	after = d.newLife(before)
	after.Resume(d.boot, after.Now(d.clock))
	if d.remote {
		// The other boot may be another machine's, whose holders live. Its
		// votes cannot be timed here, so they count as forgotten.
		after.Restart(d.boot)
	}
	return before, after, nil
}

func (d *directory) parseRecord(text []byte) (r record, err error) {
	if bytes.Equal(text, d.known.text) {
		return d.known.record, nil
	}
	value, _, err := openCell(text)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return r, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if r.Format != recordFormat {
		return r, fmt.Errorf("it has format %d and this version knows %d; all processes must use one version", r.Format, recordFormat)
	}
	d.known = known{text: text, record: r}
	return r, nil
}

// keepRecord makes r the record, on disk.
func (d *directory) keepRecord(r record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text := newCell(value)
	if err := d.place(recordName, text, true); err != nil {
		return err
	}
	d.known = known{text: text, record: r, synced: true}
	return nil
}

// syncRecord sees to it that the record that was read is on disk: who wrote it
// may have been killed, or have failed, when others could see it already.
func (d *directory) syncRecord() error {
	if d.known.synced {
		return nil
	}
	f, _, err := d.open(recordName)
	if err != nil {
		return err
	}
	if err := errors.Join(d.sync(f), f.Close(), d.syncNames()); err != nil {
		return fmt.Errorf("put the record on disk: %w", err)
	}
	d.known.synced = true
	return nil
}
