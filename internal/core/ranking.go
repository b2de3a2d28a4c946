package core

// Ranking is an order of members: who is n-th stands in its n-th four bits from
// below.
type Ranking uint64

// RankingOf returns the order given.
func RankingOf(order ...int) Ranking {
	var r Ranking
	for n, i := range order {
		r |= Ranking(i) << (4 * n)
	}
	return r
}

// At returns who is n-th, from 0.
func (r Ranking) At(n int) int { return int(r >> (4 * n) & 15) }
