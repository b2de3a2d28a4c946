// Package platform is what stores on this machine's disk need of it: which boot
// this is, time that all its processes share and nobody sets, and whether a
// file system may be another machine's too.
package platform

import (
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/model"
)

// Epoch is a store's time during one boot of the machine, as the store keeps
// it: the machine's own clock counts from another origin after the next.
type Epoch struct {
	Boot   string
	Anchor int64      // the store's clock minus the machine's, in microseconds
	Life   model.Time // when the epoch began; later than that of any before
}

// Now reads the store's clock. It shows Unix time as it was when the epoch
// began and goes on with the machine's own clock, which nobody can set: a turn
// of the wall clock, or another zone, neither ends a lease nor keeps one.
func (e Epoch) Now(c clock.Clock) model.Time {
	return model.Time(e.Anchor + int64(time.Duration(c.Now())/time.Microsecond))
}

// Next returns the epoch of another boot, or the one that begins where the
// record of e was lost.
func (e Epoch) Next(boot string, c clock.Clock, wall time.Time) Epoch {
	next := Epoch{Boot: boot}
	next.Anchor = wall.UnixMicro() - int64(next.Now(c))
	next.Life = max(next.Now(c), e.Life+1)
	return next
}
