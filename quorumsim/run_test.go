package quorumsim

import (
	"testing"
	"time"
)

// worker takes locks, works under them and looks at them, as most programs do.
func worker(j *Job) {
	for {
		j.Sleep(time.Duration(j.Intn(3000)) * time.Millisecond)
		key := [...]string{"red", "blue"}[j.Intn(2)]
		lease, err := j.Acquire(key, Ask{Wait: 20 * time.Second, Shared: j.Intn(5) == 4, Try: j.Intn(6) == 5})
		if err != nil {
			j.Log("%v", err)
			continue
		}
		for range 1 + j.Intn(4) {
			if lease.Sleep(time.Duration(j.Intn(4000))*time.Millisecond) != nil {
				break
			}
			if err := j.Write("store of "+key, lease.Token()); err != nil {
				j.Log("%v", err)
			}
		}
		if err := lease.Release(); err != nil {
			j.Log("%v", err)
		}
	}
}

// crowd contends for one key.
func crowd(j *Job) {
	for {
		j.Sleep(time.Duration(j.Intn(300)) * time.Millisecond)
		lease, err := j.Acquire("key", Ask{Wait: time.Duration(1+j.Intn(4000)) * time.Millisecond, NoRenew: j.Intn(3) == 2})
		if err != nil {
			continue
		}
		if lease.Sleep(time.Duration(j.Intn(400))*time.Millisecond) == nil {
			_ = j.Write("resource", lease.Token())
		}
		_ = lease.Release()
	}
}

func mustRun(t testing.TB, cfg Config, seed uint64) *Report {
	t.Helper()
	r, err := Run(cfg, seed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Same seed, same bytes; and another seed is another run. All of them are
// clean, by the world's word and by that of the history.
func TestR80SameSeedSameBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   Config
		seeds uint64
		least int // acquired, or the seeds show nothing
	}{
		{"worker", Config{Job: worker, TTL: 4 * time.Second, Duration: 30 * time.Second, Swarm: true}, 60, 300},
		{"crowd", Config{Job: crowd, TTL: time.Second, Duration: 10 * time.Second, Swarm: true, Stores: 3, Clients: 4, Order: AllAtOnce}, 30, 300},
	} {
		cfg := c.cfg
		t.Run(c.name, func(t *testing.T) {
			seen := map[uint64]uint64{}
			var acquired, lost int
			for seed := range c.seeds {
				first, second := mustRun(t, cfg, seed), mustRun(t, cfg, seed)
				if a, b := first.String()+first.History.String(), second.String()+second.History.String(); a != b {
					t.Fatalf("seed %d differs from itself:\n%s\n---\n%s", seed, a, b)
				}
				if first.Digest != second.Digest {
					t.Fatalf("seed %d: digests %x and %x", seed, first.Digest, second.Digest)
				}
				if other, ok := seen[first.Digest]; ok {
					t.Errorf("seeds %d and %d are one run", other, seed)
				}
				seen[first.Digest] = seed
				for _, v := range append(first.Violations, Overlap(first.History)...) {
					t.Errorf("seed %d: %v", seed, v)
				}
				acquired, lost = acquired+first.Acquired, lost+first.Lost
			}
			if acquired < c.least || lost < 5 {
				t.Errorf("%d acquired and %d lost in %d seeds: this shows nothing", acquired, lost, c.seeds)
			}
		})
	}
}

// Each fault alone breaks nothing that the lock promises.
func TestR80EachFaultIsWithstood(t *testing.T) {
	one := []int{1}
	for _, f := range []Fault{
		{Kind: Partition, Stores: []int{0, 1, 2}, Clients: one}, {Kind: PartitionAsk}, {Kind: PartitionReply, Stores: []int{0, 1, 2}},
		{Kind: Clog, Clients: one}, {Kind: Lossy, PPM: 300_000}, {Kind: Slow, By: 800 * time.Millisecond}, {Kind: Hang, Stores: []int{0, 1, 2}},
		{Kind: Full}, {Kind: Deny, Stores: []int{2, 3, 4}}, {Kind: Crash}, {Kind: Restart, Stores: []int{0, 1}}, {Kind: Forget, Stores: []int{0, 1}},
		{Kind: Echo, By: 5 * time.Second}, {Kind: Flush, Stores: []int{0, 1}},
		{Kind: RollBack, Stores: []int{0, 1}, By: time.Second}, {Kind: ClockStep, By: -time.Minute}, {Kind: ClockRate, PPM: -9_000},
		{Kind: Pause, Clients: one}, {Kind: Kill, Clients: one}, {Kind: Drift, PPM: 9_000, Clients: one},
	} {
		f.From, f.To = 10*time.Second, 25*time.Second
		t.Run(string(f.Kind), func(t *testing.T) {
			for seed := range uint64(5) {
				r := mustRun(t, Config{Job: worker, TTL: 4 * time.Second, Duration: 40 * time.Second, Faults: []Fault{f}}, seed)
				for _, v := range append(r.Violations, Overlap(r.History)...) {
					t.Errorf("seed %d: %v\n%v", seed, v, r)
				}
				if len(r.Faults) != 1 || r.Acquired < 5 {
					t.Errorf("seed %d: %d acquired, faults %q", seed, r.Acquired, r.Faults)
				}
			}
		})
	}
}
