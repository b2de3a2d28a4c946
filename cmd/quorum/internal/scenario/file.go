package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// File is one description. Fields that are left out have the defaults of
// [sim.Config].
type File struct {
	Title  string  `yaml:"title"`
	Text   string  `yaml:"text"`   // what happens and why, paragraphs apart by an empty line
	Breaks string  `yaml:"breaks"` // the checker that this world is meant to fail
	Seed   *uint64 `yaml:"seed"`   // of what the file leaves open; without it everything is calm

	Stores   int      `yaml:"stores"`
	Strategy string   `yaml:"strategy"`
	Order    string   `yaml:"order"`
	TTL      duration `yaml:"ttl"`
	MaxTTL   duration `yaml:"max-ttl"`
	Drift    string   `yaml:"drift"`
	Clients  int      `yaml:"clients"`
	Keys     int      `yaml:"keys"`
	Duration duration `yaml:"duration"`

	Network  network   `yaml:"network"`
	Faults   []fault   `yaml:"faults"`
	Swarm    bool      `yaml:"swarm"`
	Script   string    `yaml:"script"`
	Workload *workload `yaml:"workload"`
	Mistake  string    `yaml:"mistake"` // a rule that is left out

	config sim.Config
	steps  []step
}

type network struct {
	Latency duration `yaml:"latency"`
	Jitter  duration `yaml:"jitter"`
	Loss    percent  `yaml:"loss"`
	Doubled percent  `yaml:"doubled"`
	Late    percent  `yaml:"late"`
	LateBy  duration `yaml:"late-by"`
}

type workload struct {
	Think  duration `yaml:"think"`
	Hold   duration `yaml:"hold"`
	Wait   duration `yaml:"wait"`
	Write  duration `yaml:"write"`
	Shared percent  `yaml:"shared"`
	Try    percent  `yaml:"try"`
	Leak   percent  `yaml:"leak"`
	Cancel percent  `yaml:"cancel"`
	Extend percent  `yaml:"extend"`
}

// duration is written as 1.5s or 200ms.
type duration time.Duration

func (d *duration) UnmarshalYAML(text []byte) error {
	v, err := time.ParseDuration(scalar(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no duration such as 1.5s or 200ms", scalar(text))
	}
	*d = duration(v)
	return nil
}

// percent is written as 2.5%.
type percent uint64

func (p *percent) UnmarshalYAML(text []byte) error {
	ppm, err := parts(scalar(text))
	if err != nil || ppm < 0 || ppm > 1_000_000 {
		return fmt.Errorf("%q is no percentage such as 2.5%%", scalar(text))
	}
	*p = percent(ppm)
	return nil
}

// parts reads a percentage as millionths.
func parts(text string) (int64, error) {
	number, ok := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok {
		return 0, fmt.Errorf("%q is no percentage such as 2.5%%", text)
	}
	return int64(v * 10_000), nil
}

func scalar(text []byte) string { return strings.Trim(string(bytes.TrimSpace(text)), `"'`) }

// Parse reads a description and says what is wrong with it, by field.
func Parse(text []byte) (*File, error) {
	f := &File{}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(f); err != nil {
		return nil, errors.New(strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	if err := f.build(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) build() error {
	c := sim.Config{
		Stores: f.Stores, TTL: time.Duration(f.TTL), MaxTTL: time.Duration(f.MaxTTL), Clients: f.Clients, Keys: f.Keys,
		Duration: time.Duration(f.Duration), Swarm: f.Swarm,
	}
	for _, n := range []struct {
		field string
		p     *int
		usual int
		most  int
	}{{"stores", &c.Stores, 5, core.MaxMembers}, {"clients", &c.Clients, 2, 1000}, {"keys", &c.Keys, 1, 1000}} {
		if *n.p == 0 {
			*n.p = n.usual
		}
		if *n.p < 1 || *n.p > n.most {
			return fmt.Errorf("%s: %d is not between 1 and %d", n.field, *n.p, n.most)
		}
	}
	if c.TTL == 0 {
		c.TTL = 10 * time.Second
	}
	if c.Duration == 0 {
		c.Duration = time.Minute
	}
	c.Plan.Noise = f.Network.noise()
	for _, part := range []struct {
		field string
		read  func(*sim.Config) error
	}{
		{"strategy", f.strategy}, {"order", f.order}, {"drift", f.drift}, {"mistake", f.mistake}, {"faults", f.faults},
		{"script", f.script}, {"workload", f.workload}, {"breaks", f.breaks},
	} {
		if err := part.read(&c); err != nil {
			return fmt.Errorf("%s: %w", part.field, err)
		}
	}
	if err := c.Check(); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "sim: "))
	}
	f.config = c
	return nil
}

func (n *network) noise() sim.Noise {
	base := time.Duration(n.Latency)
	if base == 0 {
		base = time.Millisecond
	}
	return sim.Noise{
		Base: base, Spread: time.Duration(n.Jitter), Loss: uint64(n.Loss), Double: uint64(n.Doubled),
		Late: uint64(n.Late), LateBy: time.Duration(n.LateBy),
	}
}

func (f *File) strategy(c *sim.Config) error {
	switch f.Strategy {
	case "", "majority":
		c.Rule = core.Majority(c.Stores)
	case "unanimous":
		c.Rule = core.Tabulate(c.Stores, func(s core.Set) bool { return s.Len() == c.Stores })
	default:
		return fmt.Errorf("%q is neither majority nor unanimous", f.Strategy)
	}
	return nil
}

func (f *File) order(c *sim.Config) error {
	for i, name := range []string{"in-order", "first-then-rest", "all-at-once"} {
		if f.Order == name || f.Order == "" && i == 0 {
			c.Order = core.Order(i)
			return nil
		}
	}
	return fmt.Errorf("%q is none of in-order, first-then-rest, all-at-once", f.Order)
}

func (f *File) drift(c *sim.Config) (err error) {
	if f.Drift == "" {
		return nil
	}
	if c.DriftPPM, err = parts(f.Drift); err == nil && (c.DriftPPM < 1 || c.DriftPPM > 500_000) {
		err = fmt.Errorf("%s is not between 0.0001%% and 50%%", f.Drift)
	}
	return err
}

func (f *File) workload(c *sim.Config) error {
	w := f.Workload
	if w == nil {
		return nil
	}
	if f.Script != "" {
		return errors.New("there is a script too: leave one of them out")
	}
	c.Work = sim.Work{
		Think: time.Duration(w.Think), Hold: time.Duration(w.Hold), Wait: time.Duration(w.Wait), Write: time.Duration(w.Write),
		Shared: uint64(w.Shared), Try: uint64(w.Try), Leak: uint64(w.Leak), Cancel: uint64(w.Cancel), Extend: uint64(w.Extend),
	}
	return nil
}

func (f *File) breaks(*sim.Config) error {
	for c := range sim.Progress + 1 {
		if f.Breaks == c.String() || f.Breaks == "" {
			return nil
		}
	}
	return fmt.Errorf("%q is no checker", f.Breaks)
}
