package simpage

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// Whatever happens in a world can be told and drawn: each seed has another.
func TestR84EverySeedCanBeDrawn(t *testing.T) {
	for seed := range uint64(20) {
		r := sim.RunSeed(seed, sim.Config{Trace: true, Duration: 10 * time.Second})
		var text, page, again bytes.Buffer
		if err := Text(&text, r.Trace, r.Violations); err != nil {
			t.Fatal(err)
		}
		show := Show{Name: "x", Title: "<seed>", Text: "one\n\ntwo", Trace: r.Trace, Violations: r.Violations}
		if err := Page(&page, show); err != nil {
			t.Fatal(err)
		}
		if err := Page(&again, show); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(page.Bytes(), again.Bytes()) {
			t.Fatalf("seed %d: one trace gives two pages", seed)
		}
		for _, bad := range []string{"%!", "<seed>", "NaN", "Inf"} {
			if strings.Contains(text.String()+page.String(), bad) {
				t.Fatalf("seed %d: %q in what was written", seed, bad)
			}
		}
		_, svg := draw(newWords(r.Trace, r.Violations))
		if err := wellFormed(svg); err != nil {
			t.Fatalf("seed %d: the picture: %v", seed, err)
		}
	}
}

func wellFormed(svg string) error {
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestEveryFaultHasWords(t *testing.T) {
	seen := map[string]bool{}
	for k := range sim.FaultKind(sim.FaultKinds) {
		text := faultText(&sim.Trace{}, &sim.Fault{Kind: k, For: 2 * time.Second, Stores: 3, Clients: []int{1}, Amount: time.Second, Rate: 50_000})
		if text == "" || strings.Contains(text, "%!") || seen[text] {
			t.Errorf("%v is told as %q", k, text)
		}
		seen[text] = true
	}
}

// The bars of votes and beliefs follow what the trace says.
func TestBars(t *testing.T) {
	s := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	plan := sim.Plan{Faults: []sim.Fault{
		{Kind: sim.ClockStep, At: s(4), Stores: 1, Amount: s(2)},
		{Kind: sim.ClockRate, At: s(4), For: s(20), Stores: 2, Rate: 1_000_000},
	}}
	grant := func(at float64, store, lease int, until float64) sim.Event {
		return sim.Event{At: s(at), What: sim.Carried, Client: lease, Store: store, Lease: lease, Outcome: core.Granted, Token: 7, Until: s(until)}
	}
	extend, release := grant(3, 0, 1, 8), grant(6.5, 1, 2, 0)
	extend.Verb, release.Verb = core.Extend, core.Release
	trace := &sim.Trace{Config: sim.Config{Stores: 2, Clients: 3, Duration: s(20)}, Plan: plan, Events: []sim.Event{
		{At: s(1), What: sim.Asks, Client: 1, Lease: 1},
		grant(2, 0, 1, 7), grant(2, 1, 1, 6),
		{At: s(2), What: sim.Acquires, Client: 1, Lease: 1, Token: 7, Until: s(6)},
		extend,
		{At: s(3), What: sim.Renews, Client: 1, Lease: 1, Until: s(7)},
		{At: s(4), What: sim.FaultOn, Fault: 0}, {At: s(4), What: sim.FaultOn, Fault: 1},
		grant(5.5, 1, 2, 9),
		{At: s(5.5), What: sim.Acquires, Client: 2, Lease: 2, Token: 8, Until: s(9)},
		{At: s(6.5), What: sim.Loses, Client: 1, Lease: 1},
		release,
	}}
	want := [][]bar{
		{{from: s(2), to: s(6)}},                             // extended to 8, and the clock jumped by 2
		{{from: s(2), to: s(5)}, {from: s(5.5), to: s(6.5)}}, // half of the two seconds left; released
	}
	for store, bars := range votes(trace) {
		for i, b := range bars {
			if len(bars) != len(want[store]) || b.from != want[store][i].from || b.to != want[store][i].to {
				t.Errorf("store %d: vote %d lasts from %v to %v", store, i, b.from, b.to)
			}
		}
	}
	held, waits := beliefs(trace)
	if b := held[1][0]; b.from != s(2) || b.to != s(6.5) || waits[1][0].from != s(1) || waits[1][0].to != s(2) {
		t.Errorf("client 1 waits %v and believes %v", waits[1], held[1])
	}
	if both := together(held); len(both) != 1 || both[0].from != s(5.5) || both[0].to != s(6.5) {
		t.Errorf("two believe %+v", both)
	}
}

func TestAxisIsMonotone(t *testing.T) {
	trace := &sim.Trace{Config: sim.Config{Duration: 10 * time.Second}}
	for _, ms := range []int{0, 5, 5, 10, 4000, 4005, 9000} {
		trace.Events = append(trace.Events, sim.Event{At: time.Duration(ms) * time.Millisecond})
	}
	a := newAxis(trace)
	last := -1.0
	for at := time.Duration(0); at <= 10*time.Second; at += time.Millisecond {
		x := a.place(at)
		if x <= last {
			t.Fatalf("%v is drawn at %v, after %v", at, x, last)
		}
		last = x
	}
	if quiet, busy := a.place(4*time.Second)-a.place(3*time.Second), (a.place(10*time.Millisecond)-a.place(0))*100; quiet >= busy {
		t.Errorf("a quiet second takes %v pixels, a busy one %v", quiet, busy)
	}
}
