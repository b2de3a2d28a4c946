package simpage

import (
	"slices"
	"time"

	"github.com/quorumlock/quorum/internal/sim"
)

// axis gives every moment a place from left to right. Stretches in which
// nothing happens are drawn narrower, so that a message's way, some
// milliseconds, can be seen beside a lease of seconds.
type axis struct {
	at []time.Duration // the moments at which something happens, ascending
	x  []float64       // their places
}

// A second takes at most so many pixels where things happen, and fewer, down to
// a limit, where the whole would not fit a screen. Of a quiet stretch the first
// quietAfter are drawn like that, and the rest narrower.
const (
	pixels      = 340.0
	pixelsLeast = 170.0
	screen      = 1280.0
	quietAfter  = 150 * time.Millisecond
	quietPart   = 0.3
)

func newAxis(t *sim.Trace) *axis {
	a := &axis{at: []time.Duration{0}, x: []float64{0}}
	add := func(at time.Duration) {
		last := len(a.at) - 1
		gap := at - a.at[last]
		if gap <= 0 {
			return
		}
		width := min(gap, quietAfter).Seconds() + quietPart*max(gap-quietAfter, 0).Seconds()
		a.at, a.x = append(a.at, at), append(a.x, a.x[last]+width)
	}
	for i := range t.Events {
		add(t.Events[i].At)
	}
	add(t.Config.Duration)
	scale := max(min(pixels, screen/a.width()), pixelsLeast)
	for i := range a.x {
		a.x[i] *= scale
	}
	return a
}

// place is where a moment is drawn.
func (a *axis) place(at time.Duration) float64 {
	last := len(a.at) - 1
	if at >= a.at[last] {
		return a.x[last]
	}
	i, found := slices.BinarySearch(a.at, at)
	if !found {
		i--
	}
	part := float64(at-a.at[i]) / float64(a.at[i+1]-a.at[i])
	return a.x[i] + part*(a.x[i+1]-a.x[i])
}

func (a *axis) width() float64 { return a.x[len(a.x)-1] }

// ticks are the moments to name: half seconds, without those that would stand
// too close to the one before.
func (a *axis) ticks() []time.Duration {
	var out []time.Duration
	const room = 52
	for at := time.Duration(0); at <= a.at[len(a.at)-1]; at += time.Second / 2 {
		if n := len(out); n == 0 || a.place(at)-a.place(out[n-1]) >= room {
			out = append(out, at)
		}
	}
	return out
}
