package simpage

import (
	"fmt"
	"html"
	"strings"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// picture writes the diagram. Everything that belongs to an event bears its
// number, for the steps through them.
type picture struct {
	strings.Builder
	*layout
	w *words
	t *sim.Trace
}

func draw(w *words) (*layout, string) {
	p := &picture{layout: newLayout(w.trace), w: w, t: w.trace}
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" role="img" aria-label="space-time diagram">`,
		p.width()+2*margin, p.height)
	fmt.Fprintf(p, `<g transform="translate(%g 0)">`, margin)
	p.grid()
	p.faultRows()
	p.beliefBars()
	p.voteBars()
	p.messages()
	p.marks()
	fmt.Fprintf(p, `<line id="now" class="now" x1="0" x2="0" y1="0" y2="%.0f"/></g></svg>`, p.height)
	return p.layout, p.String()
}

// title is what is shown when the pointer rests on something.
func title(format string, args ...any) string {
	return "<title>" + html.EscapeString(fmt.Sprintf(format, args...)) + "</title>"
}

func (p *picture) text(class string, x, y float64, format string, args ...any) {
	fmt.Fprintf(p, `<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, html.EscapeString(fmt.Sprintf(format, args...)))
}

func (p *picture) rect(class string, x1, x2, y, height float64, about string) {
	fmt.Fprintf(p, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="3">%s</rect>`, class, x1, y, max(x2-x1, 1.5), height, about)
}

func (p *picture) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(p, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (p *picture) grid() {
	for _, at := range p.ticks() {
		x := p.place(at)
		p.line("grid", x, p.time+18, x, p.height)
		p.text("tick", x, p.time+13, "%s", seconds(at))
	}
	for _, y := range p.resources {
		p.line("lane", 0, y, p.width(), y)
	}
	for _, y := range p.clients {
		p.line("lane", 0, y, p.width(), y)
	}
	for _, y := range p.stores {
		p.line("lane", 0, y, p.width(), y)
	}
}

// faultRows draws a row a fault, and where it befalls a lane, a shade there.
func (p *picture) faultRows() {
	for i := range p.t.Plan.Faults {
		f := &p.t.Plan.Faults[i]
		x1, x2 := p.place(f.At), p.place(min(f.At+f.For, p.t.Config.Duration))
		y := p.faults + faultRow*float64(i)
		p.rect("fault", x1, x2, y, faultRow-4, title("%s", faultText(p.t, f)))
		p.line("moment", x1, y, x1, p.height)
		class, at := "faulttext", x1+5
		if x1 > p.width()*0.6 && x2-x1 < 400 {
			class, at = "faulttext end", x1-5
		}
		p.text(class, at, y+12, "%s", faultText(p.t, f))
		switch f.Kind {
		case sim.Pause, sim.Kill, sim.Doze:
			for c := range p.clients {
				if befalls(f, c) {
					p.rect("stopped", x1, x2, p.clients[c]-barHeight-3, barHeight+6, title("%s", faultText(p.t, f)))
				}
			}
		}
	}
}

func (p *picture) beliefBars() {
	held, waits := beliefs(p.t)
	for _, b := range together(held) {
		x1, x2 := p.place(b.from), p.place(b.to)
		top := p.clients[0] - clientRow + 4
		p.rect("both", x1, x2, top, p.clients[len(p.clients)-1]-top+4, title("two clients believe that they hold"))
		p.text("bothtext", x1+4, top+12, "two believe")
	}
	for c := range held {
		y := p.clients[c] - barHeight - 2
		for _, b := range waits[c] {
			p.rect(fmt.Sprintf("wait c%d", c%colours), p.place(b.from), p.place(b.to), y+6, barHeight-12, title("%s waits for k%d", p.t.Who(c), b.key))
		}
		for _, b := range held[c] {
			x1, x2 := p.place(b.from), p.place(b.to)
			about := fmt.Sprintf("%s believes that it holds k%d with token %s, from %s to %s", p.t.Who(c), b.key, p.w.token(b.token), seconds(b.from), seconds(b.to))
			p.rect(fmt.Sprintf("belief c%d", c%colours), x1, x2, y, barHeight, title("%s", about))
			p.inside(x1, x2, y+16, "holds, token "+p.w.token(b.token), p.w.token(b.token))
		}
	}
}

// inside writes the longest of the texts that fits into a bar.
func (p *picture) inside(x1, x2, y float64, texts ...string) {
	const letter = 6.6
	for _, text := range texts {
		if float64(len(text))*letter+10 <= x2-x1 {
			p.text("inside", x1+6, y, "%s", text)
			return
		}
	}
}

// voteBars draws votes, and when a store is down or does not vote.
func (p *picture) voteBars() {
	for s, all := range votes(p.t) {
		y := p.stores[s] + 5
		for _, b := range all {
			x1, x2 := p.place(b.from), p.place(b.to)
			about := fmt.Sprintf("%s's vote for %s, token %s, from %s to %s", sim.StoreName(s), p.t.Who(b.client), p.w.token(b.token), seconds(b.from), seconds(b.to))
			p.rect(fmt.Sprintf("vote c%d", b.client%colours), x1, x2, y, barHeight-4, title("%s", about))
			p.inside(x1, x2, y+14, fmt.Sprintf("%s, token %s", p.t.Who(b.client), p.w.token(b.token)), p.w.token(b.token))
		}
	}
	for i := range p.t.Plan.Faults {
		f := &p.t.Plan.Faults[i]
		for s := range p.stores {
			if f.Stores.Has(s) {
				p.storeFault(f, s)
			}
		}
	}
}

func (p *picture) storeFault(f *sim.Fault, s int) {
	y := p.stores[s] + 3
	x1, over := p.place(f.At), min(f.At+f.For, p.t.Config.Duration)
	switch {
	case f.Kind >= sim.Crash && f.Kind <= sim.RollBack:
		if f.Kind == sim.Flush {
			over = f.At
		} else {
			p.rect("down", x1, p.place(over), y, barHeight, title("%s", faultText(p.t, f)))
			p.inside(x1, p.place(over), y+15, "down")
		}
		if f.Kind == sim.Crash || p.t.Config.Mutant == sim.ForgetsUnseen {
			return
		}
		until := p.t.Config.Duration
		for _, e := range p.t.Events {
			if e.What == sim.Refills && e.Store == s && e.At > over {
				until = min(until, e.At)
			}
		}
		p.rect("quarantine", p.place(over), p.place(until), y+barHeight+1, 15,
			title("%s may have forgotten, and gives nobody a new vote", sim.StoreName(s)))
		p.text("quarantinetext", p.place(over)+4, y+barHeight+12, "in quarantine")
	case f.Kind == sim.Hang || f.Kind == sim.Full || f.Kind == sim.Deny:
		p.rect("down", x1, p.place(over), y, barHeight, title("%s", faultText(p.t, f)))
	}
}

func (p *picture) messages() {
	for _, a := range arrows(p.t) {
		e := &p.t.Events[a.event]
		x1, x2 := p.place(a.from), p.place(a.to)
		y1, y2 := p.clients[a.client], p.stores[a.store]
		class := fmt.Sprintf("msg c%d", a.client%colours)
		switch {
		case a.back:
			y1, y2 = y2, y1
			class += " back"
			if a.outcome != core.Granted && !a.lost {
				class += " no"
			}
		case a.verb == core.Release:
			class += " release"
		case a.verb == core.Extend:
			class += " extend"
		}
		if a.background() {
			class += " background"
		}
		if a.lost { // it ends on its way
			x2, y2 = x1+(x2-x1)*0.8, y1+(y2-y1)*0.8
			class += " lost"
		}
		fmt.Fprintf(p, `<g class="%s" data-e="%d">%s`, class, a.event, title("%s  %s", seconds(e.At), p.w.event(e)))
		p.line("hit", x1, y1, x2, y2)
		p.line("wire", x1, y1, x2, y2)
		p.head(x1, y1, x2, y2, a.lost)
		p.WriteString("</g>")
	}
}

// head ends an arrow: with a tip, or with a cross.
func (p *picture) head(x1, y1, x2, y2 float64, lost bool) {
	if lost {
		p.line("cross", x2-4, y2-4, x2+4, y2+4)
		p.line("cross", x2-4, y2+4, x2+4, y2-4)
		return
	}
	dx, dy := x2-x1, y2-y1
	if length := max(abs(dx), abs(dy)); length > 0 {
		dx, dy = dx/length*7, dy/length*7
	}
	fmt.Fprintf(p, `<path class="tip" d="M%.1f %.1fL%.1f %.1fL%.1f %.1fZ"/>`, x2, y2, x2-dx-dy*0.4, y2-dy+dx*0.4, x2-dx+dy*0.4, y2-dy-dx*0.4)
}

func abs(x float64) float64 { return max(x, -x) }
