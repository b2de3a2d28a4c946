package filestore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// A call that makes a name's file looks at a few others, and removes those that
// the store needs no more. It makes one and looks at more, so the directory
// does not grow with the names ever used; and no call pays for all of them. A
// call that moves the step, which waits for the disk anyway, looks at more, so
// that the files of a store with few names go as well.
//
// It starts at a shard drawn by lot: programs that make two calls and end still
// go through all of them together.
const (
	sweepMade  = 4
	sweepMoved = 64
	passedOver = 32 // shards that are missing or done, for each sweep
)

// keepLife is for how long the files of the life before are kept, to tell how
// holders ended: as long as a counter that nobody uses.
const keepLife = 10 * time.Minute

type sweeper struct {
	list  *os.File // the shard being listed, or nil
	shard string
	next  uint8
}

func (s *sweeper) close() error {
	if s.list == nil {
		return nil
	}
	err := s.list.Close()
	s.list = nil
	return err
}

// sweepFiles runs with the lock held, after the call's own work. What goes
// wrong here harms no lock and is met again in the next round: it is not
// reported.
func (d *directory) sweepFiles(r *running, most int) {
	s := &d.sweep
	for files, shards := 0, 0; files < most && shards < passedOver; {
		if s.list == nil {
			if s.shard == "" {
				s.next = uint8(rand.Uint32())
			}
			s.shard = fmt.Sprintf("%02x", s.next)
			s.next++
			var err error
			if s.list, err = d.root.Open(s.shard); err != nil {
				s.list = nil
				shards++
				continue
			}
		}
		entries, err := s.list.ReadDir(most - files)
		for _, e := range entries {
			d.sweepFile(r, s.shard, e.Name())
		}
		if files += len(entries); err != nil {
			_ = s.close()
			shards++
		}
	}
}

// sweepFile removes one file if it is not needed. The step that makes a name's
// next token larger than its last is in r and on disk by now.
func (d *directory) sweepFile(r *running, shard, base string) {
	life, ours := lifeOf(base)
	file := shard + "/" + base
	switch {
	case !ours, life == r.after.Before && r.time < r.after.Life.Add(keepLife):
		return
	case life == r.after.Life:
		n, err := d.readName(file)
		if err != nil {
			return
		}
		n.close()
		if !n.Name.Idle(&r.after.Record, r.time) {
			return
		}
	}
	_ = d.root.Remove(file)
}
