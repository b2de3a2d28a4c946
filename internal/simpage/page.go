package simpage

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

//go:embed page.html
var source string

var page = template.Must(template.New("page").Parse(source))

// Show is a run to draw, with what to say about it.
type Show struct {
	Name       string
	Title      string
	Text       string // paragraphs, apart by empty lines
	Trace      *sim.Trace
	Violations []sim.Violation
}

type content struct {
	Show
	Paragraphs []string
	World      string
	Lanes      []Lane
	Height     float64
	Picture    template.HTML // made by draw, which escapes every text
	Steps      []step
}

// step is an event that the keys step through.
type step struct {
	Event int
	X     float64
	Time  string
	Text  string
	Big   bool // no message
	Class string
}

// Page writes a web page that needs nothing but itself.
func Page(out io.Writer, s Show) error {
	w := newWords(s.Trace, s.Violations)
	l, svg := draw(w)
	c := content{Show: s, World: world(s.Trace), Lanes: l.lanes, Height: l.height, Picture: template.HTML(svg)}
	for p := range strings.SplitSeq(strings.TrimSpace(s.Text), "\n\n") {
		c.Paragraphs = append(c.Paragraphs, strings.ReplaceAll(p, "\n", " "))
	}
	for i := range s.Trace.Events {
		e := &s.Trace.Events[i]
		if background(e) {
			continue
		}
		big := e.What > sim.TimedOut
		class := ""
		switch e.What {
		case sim.FaultOn, sim.Breaks, sim.WriteFails, sim.Loses, sim.Fails:
			class = "bad"
		case sim.Acquires:
			class = "good"
		}
		c.Steps = append(c.Steps, step{Event: i, X: l.place(e.At), Time: fmt.Sprintf("%.3f", e.At.Seconds()), Text: w.event(e), Big: big, Class: class})
	}
	return page.Execute(out, c)
}

// background reports whether an event is of a message that belongs to no lock.
func background(e *sim.Event) bool {
	return e.What <= sim.TimedOut && (e.Lease == 0 || e.Verb == core.ReadStep || e.Verb == core.Raise)
}

// world says in a line what the run is made of.
func world(t *sim.Trace) string {
	c := &t.Config
	return fmt.Sprintf("%d stores of which %d must agree, asked %s; %d clients; TTL %v, renewed every %v; a message takes %v.",
		c.Stores, c.Rule.Need(), c.Order, c.Clients, c.TTL, c.RenewEvery.Round(1e6), t.Plan.Noise.Base)
}
