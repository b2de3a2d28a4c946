package core_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// TestR11Herd wakes ten clients at once, again and again, for a lock in five
// stores that is free. They move in lock step: all calls under way are carried
// out, in random order, and answered. Asked in order the first store
// arbitrates, so that hardly a round passes without a winner.
func TestR11Herd(t *testing.T) {
	const clients, stores, rounds = 10, 5, 10_000
	rng := rand.New(rand.NewPCG(11, 11))
	servers := make([]*model.Store, stores)
	for i := range servers {
		servers[i] = model.NewStore("m", "s", "r", 0)
	}
	herd := make([]*core.Quorum, clients)
	for i := range herd {
		herd[i] = newcomer(uint64(i+1), stores)
	}
	wins, dry, worst := 0, 0, 0
	for range rounds {
		for _, q := range herd {
			q.Begin(0)
		}
		winners := settle(rng, herd, servers)
		if winners > 1 {
			t.Fatalf("%d winners of one round", winners)
		}
		wins += winners
		if winners == 1 {
			dry = 0
		} else if dry++; dry > worst {
			worst = dry
		}
		for i, q := range herd {
			if q.Phase() == core.Held {
				q.Release(0)
				settle(rng, herd[i:i+1], servers)
				herd[i] = newcomer(rng.Uint64(), stores) // every Acquire has an ID of its own
			}
		}
	}
	if worst > 3 {
		t.Errorf("%d rounds in a row had no winner, want at most 3", worst)
	}
	t.Logf("%d of %d rounds had a winner; at most %d in a row had none", wins, rounds, worst)
}

func newcomer(id uint64, stores int) *core.Quorum {
	c := config(stores, 0)
	binary.BigEndian.PutUint64(c.Request.Owner.ID[:], id)
	return core.NewQuorum(c)
}

// settle carries all calls until there are none, and counts who holds.
func settle(rng *rand.Rand, herd []*core.Quorum, servers []*model.Store) (holders int) {
	type sent struct {
		q *core.Quorum
		core.Call
	}
	for {
		var mail []sent
		for _, q := range herd {
			for _, c := range q.Calls() {
				mail = append(mail, sent{q, c})
			}
		}
		if len(mail) == 0 {
			break
		}
		rng.Shuffle(len(mail), func(i, j int) { mail[i], mail[j] = mail[j], mail[i] })
		answers := make([]core.Answer, len(mail))
		for i, m := range mail {
			answers[i] = servers[m.Store].Apply(m.Req, 0)
		}
		for i, m := range mail {
			m.q.Answer(0, m.Store, m.Seq, answers[i])
		}
	}
	for _, q := range herd {
		if q.Phase() == core.Held {
			holders++
		}
	}
	return holders
}
