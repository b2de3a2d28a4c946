package model_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// Five readers and three writers, who also change their mode and let their time
// run out: a store never has a writer together with anyone.
func TestR32RandomReadersAndWriters(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s, now := model.NewStore("a", "server", "run", epoch), model.Time(epoch)
	var attempts [8]uint32
	together, alone := 0, 0
	for step := range 100_000 {
		who := rng.IntN(8)
		r := core.Request{Key: "k", Set: set, TTL: 10 * time.Second, MaxTTL: maxTTL, Limit: time.Second}
		if who < 5 {
			r.Mode = core.Shared
		}
		switch rng.IntN(6) {
		case 0:
			r.Verb = core.Release
		case 1:
			r.Verb = core.Extend
		case 2:
			r.Kind, r.Mode = core.Convert, core.Mode(rng.IntN(2))
			attempts[who]++
		case 3:
			now = now.Add(time.Duration(rng.IntN(5)) * time.Second)
			attempts[who]++
		}
		r.Owner = core.Owner{ID: core.ID{byte(who + 1)}, Attempt: max(attempts[who], 1)}
		s.Apply(r, now)
		name := s.Peek("k")
		writers := 0
		votes := name.Live(&s.Record, maxTTL, now)
		for _, v := range votes {
			if v.Mode == core.Exclusive {
				writers++
			}
		}
		switch {
		case writers > 0 && len(votes) > 1:
			t.Fatalf("step %d: %d writers among %d votes", step, writers, len(votes))
		case writers > 0:
			alone++
		case len(votes) > 1:
			together++
		}
	}
	t.Logf("%d steps: a writer alone after %d, readers together after %d", 100_000, alone, together)
	if alone < 1000 || together < 1000 {
		t.Error("the steps show little")
	}
}
