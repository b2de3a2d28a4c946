//go:build unix

package bench

import (
	"math"
	"slices"
	"strings"
	"time"
)

// setting is one column of conditions: its rows are measured round by round, in
// rotating order, so that whatever else the machine does meets them all alike.
type setting struct {
	name     string
	rows     []row
	samples  map[string][]sample // by row, one a round
	measured bool                // nothing failed
}

// enough is how long a setting may take before no further round of it begins, so
// that a run ends in time on a machine that has other things to do.
const enough = 30 * time.Second

// rounds measures every row in every round. The setting was begun at start.
func (t *setting) rounds(start time.Time, n int, measure func(r row, round int) sample) {
	t.samples = map[string][]sample{}
	for round := range n {
		if round > 0 && time.Since(start) > enough {
			return
		}
		for i := range t.rows {
			r := t.rows[(i+round)%len(t.rows)]
			t.samples[r.name] = append(t.samples[r.name], measure(r, round))
		}
	}
}

// figure is one of a row: a median over the rounds, or of what its name says,
// "± FIGURE" or "× ROW FIGURE", the spread or the ratio to another row.
func (t *setting) figure(row, name string) float64 {
	if of, ok := strings.CutPrefix(name, "± "); ok {
		return t.spread(row, of)
	}
	for _, to := range t.rows {
		if of, ok := strings.CutPrefix(name, "× "+to.name+" "); ok {
			return t.ratio(row, to.name, of)
		}
	}
	return t.median(row, name)
}

// median is a figure of a row over the rounds, or NaN where it was not measured.
func (t *setting) median(row, figure string) float64 {
	return middle(t.series(row, figure), 0.5)
}

// spread is half of the middle half of the rounds over the median, as a share.
func (t *setting) spread(row, figure string) float64 {
	all := t.series(row, figure)
	return (middle(all, 0.75) - middle(all, 0.25)) / 2 / middle(all, 0.5)
}

// ratio is the median over the rounds of a row's figure over another row's in
// the same round.
func (t *setting) ratio(row, to, figure string) float64 {
	a, b := t.series(row, figure), t.series(to, figure)
	var all []float64
	for i := range min(len(a), len(b)) {
		all = append(all, a[i]/b[i])
	}
	return middle(all, 0.5)
}

func (t *setting) series(row, figure string) []float64 {
	var all []float64
	for _, s := range t.samples[row] {
		if v, ok := s[figure]; ok {
			all = append(all, v)
		}
	}
	return all
}

// middle is a quantile, between two values where it falls between them.
func middle(all []float64, q float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	all = slices.Sorted(slices.Values(all))
	at := q * float64(len(all)-1)
	low := int(at)
	high := min(low+1, len(all)-1)
	return all[low] + (at-float64(low))*(all[high]-all[low])
}
