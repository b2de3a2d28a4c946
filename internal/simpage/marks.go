package simpage

import (
	"fmt"
	"html"
	"time"

	"github.com/quorumlock/quorum/internal/sim"
)

// marks draws what happens at one moment: beginnings and ends at clients,
// writes at the resources, and what a checker saw.
func (p *picture) marks() {
	left := map[uint64]time.Duration{} // when a write left
	highest := map[int]int64{}         // token that a resource without a fence took
	broken := map[sim.Checker]bool{}
	for i := range p.t.Events {
		e := &p.t.Events[i]
		switch e.What {
		case sim.Writes:
			left[e.Msg] = e.At
		case sim.WriteDone, sim.WriteFails:
			p.write(i, e, left[e.Msg], highest)
		case sim.Asks:
			p.mark(i, e, "ask", "")
		case sim.Fails:
			p.mark(i, e, "bad", failures[e.Failure])
		case sim.Loses:
			p.mark(i, e, "bad", "lost: "+sim.ReasonName(e.Reason))
		case sim.GivesBack:
			p.mark(i, e, "good", "gives back")
		case sim.Retries:
			p.mark(i, e, "retry", "")
		case sim.Misses:
			p.mark(i, e, "bad", "")
		case sim.Breaks:
			if c := p.w.violations[e.Violation].Checker; !broken[c] { // the first of its kind tells enough
				broken[c] = true
				p.broken(i, e, len(broken))
			}
		}
	}
}

// mark is a small sign over a client's line, with a word if there is one.
func (p *picture) mark(i int, e *sim.Event, class, word string) {
	x, y := p.place(e.At), p.clients[e.Client]
	fmt.Fprintf(p, `<g class="mark %s" data-e="%d">%s<circle cx="%.1f" cy="%.1f" r="4"/>`, class, i, title("%s  %s", seconds(e.At), p.w.event(e)), x, y)
	if word != "" {
		anchor := ""
		if x > p.width()-120 {
			anchor = ` text-anchor="end"`
		}
		fmt.Fprintf(p, `<text x="%.1f" y="%.1f"%s>%s</text>`, x, y-barHeight-8, anchor, html.EscapeString(word))
	}
	p.WriteString("</g>")
}

// write is an arrow up to a resource, and what became of it there.
func (p *picture) write(i int, e *sim.Event, left time.Duration, highest map[int]int64) {
	row, class, word := 1, "good", p.w.token(e.Token)
	switch {
	case e.What == sim.WriteFails:
		row, class, word = 0, "bad", "refused: token "+word
	case e.Fenced:
		row, word = 0, "token "+word
	case e.Token < highest[e.Key]:
		class, word = "bad", "overwrites newer work"
	default:
		highest[e.Key] = e.Token
		word = ""
	}
	x, y := p.place(e.At), p.resources[row]
	fmt.Fprintf(p, `<g class="write %s c%d" data-e="%d">%s`, class, e.Client%colours, i, title("%s  %s", seconds(e.At), p.w.event(e)))
	if row == 0 {
		x1, y1 := p.place(left), p.clients[e.Client]-barHeight-2
		p.line("hit", x1, y1, x, y)
		p.line("wire", x1, y1, x, y)
		p.head(x1, y1, x, y, false)
	}
	fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="4.5"/>`, x, y)
	if word != "" {
		anchor, at := "", x+8
		if x > p.width()-150 {
			anchor, at = ` text-anchor="end"`, x-8
		}
		fmt.Fprintf(p, `<text x="%.1f" y="%.1f"%s>%s</text>`, at, y-3, anchor, html.EscapeString(word))
	}
	p.WriteString("</g>")
}

// broken is what a checker saw: a line through all lanes.
func (p *picture) broken(i int, e *sim.Event, row int) {
	x := p.place(e.At)
	v := p.w.violations[e.Violation]
	fmt.Fprintf(p, `<g class="broken" data-e="%d">%s`, i, title("%s  %s", seconds(e.At), p.w.event(e)))
	p.line("hit", x, p.time+18, x, p.height)
	p.line("wire", x, p.time+18, x, p.height)
	p.text("brokentext", x+4, p.clients[len(p.clients)-1]+7+13*float64(row), "broken: %s", v.Checker)
	p.WriteString("</g>")
}
