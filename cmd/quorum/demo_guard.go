package main

import "sync"

// guard stands for the resource that the lock protects. It knows nothing of
// the lock but what a worker brings: that it believes to hold, and its token.
type guard struct {
	mu     sync.Mutex
	holder int // 0 is nobody
	token  int64
	seen   guardReport
}

// guardReport counts what a guard saw.
type guardReport struct {
	held     int // entries
	overlaps int // entries while somebody else was in
	disorder int // entries with a token not above all earlier ones
	lost     int
	outages  int
}

func (g *guard) enter(worker int, token int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen.held++
	if g.holder != 0 {
		g.seen.overlaps++
	}
	if token <= g.token {
		g.seen.disorder++
	}
	g.holder, g.token = worker, max(g.token, token)
}

// leave ends a worker's stay, unless somebody who came too early is in now.
func (g *guard) leave(worker int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holder == worker {
		g.holder = 0
	}
}

func (g *guard) lost()   { g.count(func(r *guardReport) { r.lost++ }) }
func (g *guard) outage() { g.count(func(r *guardReport) { r.outages++ }) }

func (g *guard) count(add func(*guardReport)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	add(&g.seen)
}

func (g *guard) report() guardReport {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}
