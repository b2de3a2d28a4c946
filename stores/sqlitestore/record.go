package sqlitestore

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/platform"
)

// record is what the store keeps of itself. Commits after which it is not
// known to be on disk wait for the disk, whatever PRAGMA synchronous says; in
// WAL mode the others need not:
//
//   - A killed process loses nothing that the kernel has, and a power cut is the
//     end of a boot.
//   - A boot ends all votes: the holders of a lock that a file arbitrates ran on
//     its machine.
//   - The step bounds every counter from above (the model moves the step before
//     a counter outgrows it), and it is on disk before a counter in it is
//     answered. The next boot starts from the next step (model.Record.Resume).
//     So no token goes back, though SQLite may come up with an older state.
type record struct {
	Format int
	platform.Epoch
	File string // identity: a copy of the file is another store
	model.Record
}

const recordFormat = 1

var errDamaged = errors.New("damaged")

// parsed is the record that was read last.
type parsed struct {
	text   string
	record record
}

// loadRecord brings the record into this boot. before is what stands in the
// file, and text is empty where there is none.
func (f *file) loadRecord(text string) (before, after record, err error) {
	if text == "" {
		// It may have been any boot's. Whoever comes next begins a quarantine.
		after = f.next(record{})
		after.Member = f.store
		after.Restart(f.boot)
		return before, after, nil
	}
	if before, err = f.parseRecord(text); err != nil {
		return before, after, fmt.Errorf("the row of quorum_record cannot be used: %w; if it is beyond repair delete it: "+
			"the store then counts as one that forgot and is in quarantine for MaxTTL", err)
	}
	after = before
	if before.Boot != f.boot {
		after = f.next(before)
		after.Resume(f.boot, after.Now(f.clock))
	}
	// Of a network's file the other boot may be another machine's, whose holders
	// live. And what a copy says was true when it was made.
	if before.Boot != f.boot && f.remote || before.File != f.server {
		after.File = f.server
		after.Restart(f.boot)
	}
	return before, after, nil
}

// next returns what follows on old with the next boot, or with a record lost.
func (f *file) next(old record) record {
	r := old
	r.Format, r.File = recordFormat, f.server
	r.Epoch = old.Next(f.boot, f.clock, f.wall())
	return r
}

func (f *file) parseRecord(text string) (r record, err error) {
	if p := f.parsed.Load(); p != nil && p.text == text {
		return p.record, nil
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if r.Format != recordFormat {
		return r, fmt.Errorf("it has format %d and this version knows %d; all processes must use one version", r.Format, recordFormat)
	}
	f.parsed.Store(&parsed{text, r})
	return r, nil
}

// keepRecord makes r the record.
func (s *session) keepRecord(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.exec("INSERT INTO main.quorum_record (id, record) VALUES (1, ?1) "+
		"ON CONFLICT (id) DO UPDATE SET record = excluded.record", string(text))
}
