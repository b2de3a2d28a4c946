package model

import "github.com/quorumlock/quorum/internal/core"

// sets is what the store serves.
func (r *Record) sets() core.Sets { return core.SetsOf(r.Serves[:r.Serving]...) }

// serve makes the store serve other sets, if it serves those that the order
// means. It is the word of somebody who knows the sets, so that a record that
// is missing or in doubt begins its quarantine here, as with any request.
func (r *Record) serve(req *core.Request, now Time) core.Answer {
	o, have := req.Serve, r.sets()
	switch {
	case o.To.N == 0 || req.MaxTTL <= 0:
		return invalid("a store must be told which sets to serve, and their MaxTTL")
	case have != o.From && have != o.To:
		return core.Answer{Outcome: core.Mismatch, Sets: have, Reason: "it serves " + have.String() + ", and neither what was meant to change nor what was meant to be"}
	}
	r.Serves, r.Serving = o.To.Of, o.To.N
	r.settle(req.MaxTTL, now)
	return core.Answer{Outcome: core.Granted, Sets: o.To}
}
