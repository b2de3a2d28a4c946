package quorumsim_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/quorumsim"
)

// on builds an event of key k.
func on(at int, what quorumsim.What, client, lease int, more ...func(*quorumsim.Event)) quorumsim.Event {
	e := quorumsim.Event{At: time.Duration(at), What: what, Client: client, Key: "k", Lease: lease}
	for _, m := range more {
		m(&e)
	}
	return e
}

func token(n int64) func(*quorumsim.Event) { return func(e *quorumsim.Event) { e.Token = n } }
func until(n int) func(*quorumsim.Event) {
	return func(e *quorumsim.Event) { e.Until = time.Duration(n) }
}
func shared(e *quorumsim.Event)             { e.Shared = true }
func resource(e *quorumsim.Event)           { e.Resource = "r" }
func key(k string) func(e *quorumsim.Event) { return func(e *quorumsim.Event) { e.Key = k } }
func TestR80OverlapByHand(t *testing.T) {
	const (
		asks, acquires, renews, reckons = quorumsim.Asks, quorumsim.Acquires, quorumsim.Renews, quorumsim.Reckons
		loses, releases, dies, takes    = quorumsim.Loses, quorumsim.Releases, quorumsim.Dies, quorumsim.Takes
	)
	a := []quorumsim.Event{on(0, asks, 0, 1), on(1, acquires, 0, 1, token(5), until(10))}
	for _, c := range []struct {
		name string
		more []quorumsim.Event // after client 0 acquired until 10, token 5
		want []string
	}{
		{"alone", nil, nil},
		{"after the end", []quorumsim.Event{on(9, asks, 1, 2), on(10, acquires, 1, 2, token(6), until(20))}, nil},
		{"before the end", []quorumsim.Event{on(3, asks, 1, 2), on(9, acquires, 1, 2, token(6), until(20))}, []string{"exclusion"}},
		{"another key", []quorumsim.Event{on(3, asks, 1, 2, key("x")), on(4, acquires, 1, 2, key("x"), token(5), until(20))}, nil},
		{"the same client twice", []quorumsim.Event{on(9, acquires, 0, 2, token(6), until(20))}, []string{"exclusion"}},
		{"after the release", []quorumsim.Event{on(3, releases, 0, 1), on(3, acquires, 1, 2, token(6), until(20))}, nil},
		{"before the release of the same instant", []quorumsim.Event{on(3, acquires, 1, 2, token(6), until(20)), on(3, releases, 0, 1)}, []string{"exclusion"}},
		{"after the loss", []quorumsim.Event{on(3, loses, 0, 1), on(3, acquires, 1, 2, token(6))}, nil},
		{"after the death", []quorumsim.Event{on(3, dies, 0, 0), on(3, acquires, 1, 2, token(6))}, nil},
		{"after another's death", []quorumsim.Event{on(3, dies, 1, 0), on(3, acquires, 2, 2, token(6))}, []string{"exclusion"}},
		{"renewed meanwhile", []quorumsim.Event{on(9, renews, 0, 1, token(5), until(19)), on(12, acquires, 1, 2, token(6), until(20))}, []string{"exclusion"}},
		{"the clock stopped", []quorumsim.Event{on(9, reckons, 0, 1, token(5), until(30)), on(12, acquires, 1, 2, token(6), until(20))}, []string{"exclusion"}},
		{"the clock ran fast", []quorumsim.Event{on(4, reckons, 0, 1, token(5), until(6)), on(7, acquires, 1, 2, token(6), until(20))}, nil},
		{"no end known", []quorumsim.Event{on(3, releases, 0, 1), on(4, acquires, 1, 2, token(6)), on(99, acquires, 0, 3, token(7))}, []string{"exclusion"}},
		{"renewed after its end", []quorumsim.Event{on(11, renews, 0, 1, token(5), until(20))}, []string{"revival"}},
		{"renewed after its end, beside another", []quorumsim.Event{on(10, acquires, 1, 2, token(6), until(20)), on(11, renews, 0, 1, token(5), until(20))},
			[]string{"revival", "exclusion"}},
		{"renewed after its loss, beside another", []quorumsim.Event{on(3, loses, 0, 1), on(4, acquires, 1, 2, token(6), until(20)),
			on(5, renews, 0, 1, token(5), until(9))}, []string{"revival", "exclusion"}},
		{"no token known", []quorumsim.Event{on(3, releases, 0, 1), on(4, asks, 1, 2), on(5, acquires, 1, 2, until(7)),
			on(8, asks, 1, 3), on(9, acquires, 1, 3)}, nil},
		{"two that renew are told once", []quorumsim.Event{on(3, acquires, 1, 2, token(6), until(20)), on(4, renews, 0, 1, token(5), until(20)),
			on(5, renews, 1, 2, token(6), until(30))}, []string{"exclusion"}},
		{"a reader beside a writer", []quorumsim.Event{on(3, acquires, 1, 2, shared, token(6), until(20))}, []string{"sharing"}},
		{"readers", []quorumsim.Event{on(3, releases, 0, 1), on(4, asks, 1, 2), on(4, asks, 2, 3),
			on(5, acquires, 1, 2, shared, token(6), until(20)), on(5, acquires, 2, 3, shared, token(6), until(20))}, nil},
		{"a writer beside readers", []quorumsim.Event{on(3, releases, 0, 1), on(5, acquires, 1, 2, shared, token(6), until(20)),
			on(6, acquires, 2, 3, token(7), until(20))}, []string{"sharing"}},
		{"a reader not above the writer before", []quorumsim.Event{on(3, releases, 0, 1), on(4, asks, 1, 2, shared), on(5, acquires, 1, 2, shared, token(5))},
			[]string{"order"}},
		{"a lower token", []quorumsim.Event{on(3, releases, 0, 1), on(4, asks, 1, 2), on(5, acquires, 1, 2, token(4))}, []string{"order"}},
		{"a lower token, asked for before", []quorumsim.Event{on(3, releases, 0, 1), on(5, acquires, 1, 2, token(4))}, nil},
		{"the same token", []quorumsim.Event{on(3, releases, 0, 1), on(5, acquires, 1, 2, token(5))}, []string{"unique"}},
		{"a write in order", []quorumsim.Event{on(3, takes, 0, 0, resource, token(5)), on(4, takes, 0, 0, resource, token(5))}, nil},
		{"a stale write", []quorumsim.Event{on(10, acquires, 1, 2, token(6), until(20)), on(11, takes, 1, 0, resource, token(6)),
			on(12, takes, 0, 0, resource, token(5))}, []string{"stale"}},
		{"a write under another's token", []quorumsim.Event{on(3, takes, 1, 0, resource, token(5))}, []string{"forged"}},
		{"time goes back", []quorumsim.Event{on(0, releases, 0, 1)}, []string{"history"}},
		{"acquired twice", []quorumsim.Event{on(2, releases, 0, 1), on(11, acquires, 0, 1, token(6))}, []string{"history"}},
		{"renewed and never acquired", []quorumsim.Event{on(3, renews, 1, 7, token(5))}, []string{"history"}},
		{"another token", []quorumsim.Event{on(3, renews, 0, 1, token(6), until(11))}, []string{"history"}},
		{"asked twice", []quorumsim.Event{on(3, asks, 0, 1)}, []string{"history"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := quorumsim.Overlap(append(append(quorumsim.History{}, a...), c.more...))
			if len(found) != len(c.want) {
				t.Fatalf("found %v, want %q", found, c.want)
			}
			for i, v := range found {
				if v.Check != c.want[i] || v.Key != "k" && v.Key != "r" || v.Text == "" {
					t.Errorf("found %+v, want %s", v, c.want[i])
				}
			}
		})
	}
}
