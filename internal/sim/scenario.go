package sim

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Scenario is a short history written by hand: a world, what its clients do
// and when, and what goes wrong. Its text is lines of
//
//	# a comment; the first one is the title, the others the story
//	stores 5
//	clients A B
//	ttl 10s
//	at 2s for 30s partition A from a b
//	at 3s A acquires
//
// as docs/simulation.md describes.
type Scenario struct {
	Title   string
	Story   string // what the comments say
	Config  Config
	Clients []string
	Actions []Action
	Seed    uint64 // of the choices; 0 is calm ones
	Show    []string
	Breaks  []string // the checkers that see something in it: of a scenario that shows a mistake
}

// Action is what a client does at a moment of true time.
type Action struct {
	At      time.Duration
	Client  int
	Verb    string
	Request Request
	TTL     time.Duration // of an extension
}

//go:embed testdata/*.txt
var library embed.FS

// Scenarios lists the names of the scenarios that come with the simulator.
func Scenarios() []string {
	entries, err := library.ReadDir("testdata")
	if err != nil {
		panic(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}

// Source returns the text of a scenario that comes with the simulator, without
// what came of it; or nothing.
func Source(name string) []byte {
	text, err := library.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		return nil
	}
	input, _, _ := strings.Cut(string(text), "\n----\n")
	return []byte(input + "\n")
}

// Named returns a scenario that comes with the simulator.
func Named(name string) (*Scenario, error) {
	text, err := library.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		return nil, fmt.Errorf("sim: no scenario %q; there are %s", name, strings.Join(Scenarios(), ", "))
	}
	return ParseScenario(string(text))
}

// ParseScenario reads a scenario. What follows a line of four dashes is what
// somebody saw come of it, and is left out.
func ParseScenario(text string) (*Scenario, error) {
	input, _, _ := strings.Cut(text, "\n----\n")
	p := parser{s: &Scenario{Config: Config{Open: true, Keys: 1, Clients: 1, Trace: true}}}
	p.s.Config.Plan.Noise.Base = time.Millisecond
	for i, line := range strings.Split(input, "\n") {
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			p.comment(strings.TrimSpace(comment))
			continue
		}
		if line == "" {
			continue
		}
		if err := p.line(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
	}
	s := p.s
	if len(s.Clients) == 0 {
		return nil, fmt.Errorf("a line such as \"clients A B\" is missing")
	}
	if s.Config.Duration == 0 {
		return nil, fmt.Errorf("a line such as \"until 30s\" is missing")
	}
	s.Config.Clients = len(s.Clients)
	for _, a := range s.Actions {
		s.Config.Keys = max(s.Config.Keys, a.Request.Key+1)
	}
	return s, s.Config.Check()
}

type parser struct{ s *Scenario }

func (p *parser) comment(text string) {
	if p.s.Title == "" {
		p.s.Title = text
		return
	}
	p.s.Story = strings.TrimSpace(p.s.Story + "\n" + text)
}

// line reads one line that is no comment.
func (p *parser) line(w []string) error {
	if w[0] == "at" {
		return p.at(w[1:])
	}
	for n := min(2, len(w)); n > 0; n-- {
		if set, ok := settings[strings.Join(w[:n], " ")]; ok {
			return set(p.s, w[n:])
		}
	}
	return fmt.Errorf("unknown setting %q", w[0])
}

// at reads what happens at a moment.
func (p *parser) at(w []string) error {
	if len(w) < 2 {
		return fmt.Errorf("at WHEN, and then what happens")
	}
	at, err := time.ParseDuration(w[0])
	if err != nil {
		return err
	}
	if c := p.client(w[1]); c >= 0 {
		return p.action(Action{At: at, Client: c}, w[2:])
	}
	f := Fault{At: at}
	w = w[1:]
	if w[0] == "for" && len(w) > 2 {
		if f.For, err = time.ParseDuration(w[1]); err != nil {
			return err
		}
		w = w[2:]
	}
	return p.fault(f, w)
}

func (p *parser) client(name string) int {
	for i, c := range p.s.Clients {
		if c == name {
			return i
		}
	}
	return -1
}

// action reads what a client does.
func (p *parser) action(a Action, w []string) error {
	if len(w) == 0 {
		return fmt.Errorf("what does %s do?", p.s.Clients[a.Client])
	}
	a.Verb = w[0]
	a.Request.Wait = -1
	w = w[1:]
	switch a.Verb {
	case "tries":
		a.Request.Wait = 0
	case "acquires", "releases", "writes", "cancels", "closes", "extends", "promotes", "demotes":
	default:
		return fmt.Errorf("unknown action %q: acquires, tries, extends, promotes, demotes, writes, cancels, releases or closes", a.Verb)
	}
	for len(w) > 0 {
		n, err := a.refine(w)
		if err != nil {
			return err
		}
		w = w[n:]
	}
	p.s.Actions = append(p.s.Actions, a)
	return nil
}

// refine reads one refinement of an action and says how many words it has.
func (a *Action) refine(w []string) (int, error) {
	value := func() string {
		if len(w) > 1 {
			return w[1]
		}
		return ""
	}
	var err error
	switch w[0] {
	case "shared":
		a.Request.Mode = core.Shared
		return 1, nil
	case "unrenewed":
		a.Request.NoRenew = true
		return 1, nil
	case "anyway":
		a.Verb = "writes anyway"
		return 1, nil
	case "key":
		if a.Request.Key, err = strconv.Atoi(value()); err == nil && (a.Request.Key < 0 || a.Request.Key > 99) {
			err = fmt.Errorf("key %d is not between 0 and 99", a.Request.Key)
		}
	case "for":
		a.Request.TTL, err = time.ParseDuration(value())
		a.TTL = a.Request.TTL
	case "waiting":
		a.Request.Wait, err = time.ParseDuration(value())
	default:
		return 0, fmt.Errorf("unknown word %q", w[0])
	}
	return 2, err
}

// fault reads a fault, whose kind may be of several words.
func (p *parser) fault(f Fault, w []string) error {
	text := strings.Join(w, " ")
	found := false
	longest := 0
	for k := range faultKinds {
		if name := k.String(); len(name) > longest && (text == name || strings.HasPrefix(text, name+" ")) {
			f.Kind, found, longest = k, true, len(name)
		}
	}
	if !found {
		return fmt.Errorf("%q is neither a client nor a fault; faults are %s", w[0], strings.Join(faultNames[:], ", "))
	}
	rest := strings.Fields(text[longest:])
	for i := 0; i < len(rest); i++ {
		word := rest[i]
		switch c := p.client(word); {
		case word == "from" || word == "and":
		case word == "by" && i+1 < len(rest):
			i++
			if err := f.by(rest[i]); err != nil {
				return err
			}
		case c >= 0:
			f.Clients = append(f.Clients, c)
		case len(word) == 1 && word[0] >= 'a' && word[0] < 'a'+core.MaxMembers:
			f.Stores = f.Stores.With(int(word[0] - 'a'))
		default:
			return fmt.Errorf("%q is neither a client, nor a store (a, b, c ...), nor \"by\" an amount", word)
		}
	}
	p.s.Config.Plan.Faults = append(p.s.Config.Plan.Faults, f)
	return nil
}

// by reads an amount: a time or a percentage.
func (f *Fault) by(word string) (err error) {
	if percent, ok := strings.CutSuffix(word, "%"); ok {
		f.Rate, err = millionths(percent)
		return err
	}
	f.Amount, err = time.ParseDuration(word)
	return err
}

func millionths(percent string) (int64, error) {
	x, err := strconv.ParseFloat(percent, 64)
	if err != nil || x < -100 || x > 10_000 {
		return 0, fmt.Errorf("%q is no percentage between -100 and 10000", percent)
	}
	if x < 0 {
		return -int64(-x*10_000 + 0.5), nil
	}
	return int64(x*10_000 + 0.5), nil
}
