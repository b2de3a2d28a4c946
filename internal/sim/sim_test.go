package sim

import (
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	total := &Report{}
	start := time.Now()
	bad := 0
	for seed := range uint64(1000) {
		r := RunSeed(seed, Config{})
		total.Add(r)
		if len(r.Violations) > 0 {
			bad++
			if bad < 6 {
				t.Logf("seed %d: %v\nstores %d clients %d ttl %v max %v order %v\n%v", seed, r.Violations[0], r.Config.Stores, r.Config.Clients, r.Config.TTL, r.Config.MaxTTL, r.Config.Order, r.Plan)
			}
		}
	}
	total.Violations = nil
	t.Log(bad, "bad", time.Since(start), total)
}
