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

// TestHerdByOrder wakes 64 clients at once for a lock in five stores that is
// free, one round each, and counts what each order of asking costs: with all
// stores up, and with the first, or the first two, down. The figures stand in
// docs/order.md.
func TestHerdByOrder(t *testing.T) {
	const clients, stores, herds = 64, 5, 100
	for _, c := range []struct {
		order       core.Order
		least, most int // of herds with a winner
		trips       int // round trips to the win with all up; one more for each that is down; 0 is not compared
	}{
		{core.InOrder, herds, herds, 0},
		{core.FirstThenRest, herds, herds, 2},
		{core.AllAtOnce, 0, herds / 10, 0},
	} {
		for down := range 3 {
			rng := rand.New(rand.NewPCG(64, uint64(c.order)))
			won, messages, trips := 0, 0, 0
			for range herds {
				w := watched{servers: make([]*model.Store, stores), down: core.Full(down)}
				for i := range w.servers {
					w.servers[i] = model.NewStore("m", "s", "r", 0)
				}
				herd := make([]*core.Quorum, clients)
				for i := range herd {
					herd[i] = newcomer(uint64(i+1), stores, func(cfg *core.Config) { cfg.Request.Order = c.order })
					herd[i].Begin(0)
				}
				w.settle(rng, herd)
				messages += w.messages
				if w.heldAfter > 0 {
					won, trips = won+1, trips+w.heldAfter
				}
			}
			if won < c.least || won > c.most {
				t.Errorf("asked %v, %d stores down: %d of %d herds had a winner, want %d to %d", c.order, down, won, herds, c.least, c.most)
			}
			if c.trips > 0 && trips != (c.trips+down)*won {
				t.Errorf("asked %v, %d stores down: %d round trips to %d wins, want %d each", c.order, down, trips, won, c.trips+down)
			}
			t.Logf("%v, %d stores down: %d %% won, %d messages, %.1f round trips to the win",
				c.order, down, 100*won/herds, messages/herds, float64(trips)/float64(max(won, 1)))
		}
	}
}

func newcomer(id uint64, stores int, change ...func(*core.Config)) *core.Quorum {
	c := config(stores, 0)
	for _, f := range change {
		f(&c)
	}
	binary.BigEndian.PutUint64(c.Request.Owner.ID[:], id)
	return core.NewQuorum(c)
}

// settle carries all calls until there are none, and counts who holds.
func settle(rng *rand.Rand, herd []*core.Quorum, servers []*model.Store) (holders int) {
	w := watched{servers: servers}
	return w.settle(rng, herd)
}

// watched is stores whose messages are counted.
type watched struct {
	servers   []*model.Store
	down      core.Set
	messages  int
	heldAfter int // round trips until somebody held; 0 is nobody
}

func (w *watched) settle(rng *rand.Rand, herd []*core.Quorum) (holders int) {
	type sent struct {
		q *core.Quorum
		core.Call
	}
	for trip := 1; ; trip++ {
		var mail []sent
		for _, q := range herd {
			for _, c := range q.Calls() {
				mail = append(mail, sent{q, c})
			}
		}
		if len(mail) == 0 {
			break
		}
		w.messages += len(mail)
		rng.Shuffle(len(mail), func(i, j int) { mail[i], mail[j] = mail[j], mail[i] })
		answers := make([]core.Answer, len(mail))
		for i, m := range mail {
			if w.down.Has(m.Store) {
				answers[i] = core.Answer{Outcome: core.Undelivered}
			} else {
				answers[i] = w.servers[m.Store].Apply(m.Req, 0)
			}
		}
		for i, m := range mail {
			m.q.Answer(0, m.Store, m.Seq, answers[i])
			if w.heldAfter == 0 && m.q.Phase() == core.Held {
				w.heldAfter = trip
			}
		}
	}
	for _, q := range herd {
		if q.Phase() == core.Held {
			holders++
		}
	}
	return holders
}
