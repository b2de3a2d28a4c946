package sim

import (
	"testing"
	"time"
)

// BenchmarkEvents tells how many events a second one core carries, and what
// each allocates.
func BenchmarkEvents(b *testing.B) {
	b.ReportAllocs()
	events, start := int64(0), time.Now()
	for seed := uint64(0); b.Loop(); seed++ {
		events += RunSeed(seed%200, Config{}).Events
	}
	b.ReportMetric(float64(events)/time.Since(start).Seconds(), "events/s")
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}

// BenchmarkThousandClients is 1,000 clients on 9 stores for 60 simulated
// seconds.
func BenchmarkThousandClients(b *testing.B) {
	b.ReportAllocs()
	cfg := Config{Stores: 9, Clients: 1000, Keys: 500, Duration: time.Minute, Open: true}
	cfg.Plan.Noise = Noise{Base: time.Millisecond, Spread: 20 * time.Millisecond}
	events := int64(0)
	for b.Loop() {
		events += Run(cfg, Seeded(1)).Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}
