package sim

// Shrink looks for a smaller plan by which a run still fails the same checker:
// it leaves out one fault after another, and kinds of noise, as long as it
// does. run runs a configuration from the same choices each time. It returns
// the report of the smallest that it found.
func Shrink(failed *Report, run func(Config) *Report) *Report {
	best := failed
	checker := failed.Violations[0].Checker
	try := func(p Plan) bool {
		cfg := best.Config
		cfg.Swarm, cfg.Plan = false, p
		r := run(cfg)
		if len(r.Violations) == 0 || r.Violations[0].Checker != checker {
			return false
		}
		best = r
		return true
	}
	for again := true; again; {
		again = false
		for i := len(best.Plan.Faults) - 1; i >= 0; i-- {
			p := best.Plan
			p.Faults = append(append([]Fault(nil), p.Faults[:i]...), p.Faults[i+1:]...)
			again = try(p) || again
		}
		for _, quiet := range []func(*Noise){
			func(n *Noise) { n.Loss = 0 }, func(n *Noise) { n.Double = 0 }, func(n *Noise) { n.Late = 0 },
			func(n *Noise) { n.Pauses = 0 }, func(n *Noise) { n.Spread = 0 },
		} {
			p := best.Plan
			if quiet(&p.Noise); p.Noise != best.Plan.Noise {
				again = try(p) || again
			}
		}
	}
	best.Seed = failed.Seed
	return best
}
