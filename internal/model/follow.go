package model

import (
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// FollowMost is how many step periods the clock of one client moves a step at once.
const FollowMost = 1 << 14

const followLast = 1 << 26 // half of all tokens; a clock beyond it reads the year 2600

// Follow is the instant to decide at in a store without a clock that all clients
// share: the client's clock, wall, but not below the record's step and, if the
// record is known, at most [FollowMost] periods above it. The step follows,
// upward only, unless the caller does not move it. Follow reports false, and
// changes nothing, if the clock cannot be right.
func (r *Record) Follow(wall Time, known, moves bool) (Time, bool) {
	const period = Time(core.StepPeriod / time.Microsecond)
	now := wall
	if known {
		least := Time(r.Step) * period
		now = min(max(now, least), least+FollowMost*period)
	}
	if now/period >= followLast {
		return 0, false
	}
	if moves {
		r.Step = max(r.Step, int64(now/period))
	}
	return now, true
}
