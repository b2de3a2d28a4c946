package quorum

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Weighted is more than half of the weight, where each member has the weight
// that stands beside its name. A member that counts more than the others
// together decides alone. The names must be those of the members, all of them;
// weights are at least 1. Members are known by name rather than by position, so
// that a list in another order gives nobody another's weight.
func Weighted(weights map[string]int) Strategy { return weighted{of: maps.Clone(weights)} }

// weighted is Weighted; total and by place once it has met its members.
type weighted struct {
	of    map[string]int
	at    []int
	total int
}

// maxWeight keeps sums within an int on every machine.
const maxWeight = 1_000_000

func (w weighted) place(members []Store) (Strategy, error) {
	w.at, w.total = make([]int, len(members)), 0
	for i, m := range members {
		n, ok := w.of[m.Name()]
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: Weighted gives no weight to store %q", ErrInvalidOption, m.Name())
		case n < 1 || n > maxWeight:
			return nil, fmt.Errorf("%w: Weighted gives weight %d to store %q: it must lie between 1 and %d",
				ErrInvalidOption, n, m.Name(), maxWeight)
		}
		w.at[i] = n
		w.total += n
	}
	for _, name := range slices.Sorted(maps.Keys(w.of)) {
		if !slices.ContainsFunc(members, func(m Store) bool { return m.Name() == name }) {
			return nil, fmt.Errorf("%w: Weighted gives weight to %q, which is none of the stores", ErrInvalidOption, name)
		}
	}
	return w, nil
}

func (w weighted) Met(v Votes, _ int) bool {
	sum := 0
	for i, n := range w.at {
		if v.Has(i) {
			sum += n
		}
	}
	return sum > w.total/2
}

func (w weighted) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(w.of)) {
		parts = append(parts, fmt.Sprintf("%q=%d", name, w.of[name]))
	}
	return "weighted(" + strings.Join(parts, " ") + ")"
}
