package sim

import (
	"math/bits"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// ticker is one machine's clock: straight lines over true time.
type ticker struct {
	at    time.Duration // true time of the last bend
	read  int64         // what it showed then, in nanoseconds
	parts uint64        // millionths of a second that it counts a second
}

const million = 1_000_000

func (t *ticker) now(at time.Duration) int64 {
	return t.read + scale(int64(at-t.at), t.parts, million)
}

// when is the first moment at which the clock shows at least reading.
func (t *ticker) when(reading int64) time.Duration {
	left := reading - t.read
	switch {
	case left <= 0:
		return t.at
	case t.parts == 0 || left > int64(1)<<61:
		return never
	}
	d := scale(left, million, t.parts)
	for t.now(t.at+time.Duration(d)) < reading {
		d++
	}
	return t.at + time.Duration(d)
}

// bend lets the clock jump and go on at another rate.
func (t *ticker) bend(at, jump time.Duration, parts uint64) {
	t.read = t.now(at) + int64(jump)
	t.at, t.parts = at, parts
}

// scale is d*num/den, rounded down, for d >= 0.
func scale(d int64, num, den uint64) int64 {
	if num == den {
		return d
	}
	hi, lo := bits.Mul64(uint64(d), num)
	q, _ := bits.Div64(hi, lo, den)
	return int64(q)
}

// instant is a client's reading as the machines take it.
func (t *ticker) instant(at time.Duration) clock.Instant { return clock.Instant(t.now(at)) }

// due is the moment at which an instant of the clock is reached.
func (t *ticker) due(i clock.Instant) time.Duration {
	if i == core.Never {
		return never
	}
	return t.when(int64(i))
}
