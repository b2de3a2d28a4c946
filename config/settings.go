package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// settings are one resource's, as read.
type settings struct {
	stores   []string
	rule     string
	strategy quorum.Strategy
	set      *quorum.CombinedStore // opened from stores

	ttl, maxTTL, renewEvery, wait, callLimit, releaseLimit, maxHold, minHold time.Duration
	given                                                                    map[string]bool
	order                                                                    quorum.Order
	failOnOutage, cluster                                                    bool
	label                                                                    string
	inFlight                                                                 int
}

// fields is the table of what can be set.
var fields = map[string]func(*settings, any) error{
	"stores": func(s *settings, v any) (err error) { s.stores, err = texts(v); return },
	"strategy": func(s *settings, v any) (err error) {
		if s.rule, err = text(v); err == nil {
			s.strategy, err = strategy(s.rule)
		}
		return
	},
	"order": func(s *settings, v any) error {
		name, err := text(v)
		for _, o := range []quorum.Order{quorum.InOrder, quorum.FirstThenRest, quorum.AllAtOnce} {
			if err == nil && name == o.String() {
				s.order = o
				return nil
			}
		}
		return errors.Join(err, errors.New(`want "in order", "first then rest" or "all at once"`))
	},
	"ttl":            func(s *settings, v any) (err error) { s.ttl, err = duration(v); return },
	"max_ttl":        func(s *settings, v any) (err error) { s.maxTTL, err = duration(v); return },
	"renew_every":    func(s *settings, v any) (err error) { s.renewEvery, err = duration(v); return },
	"wait":           func(s *settings, v any) (err error) { s.wait, err = duration(v); return },
	"call_limit":     func(s *settings, v any) (err error) { s.callLimit, err = duration(v); return },
	"release_limit":  func(s *settings, v any) (err error) { s.releaseLimit, err = duration(v); return },
	"max_hold":       func(s *settings, v any) (err error) { s.maxHold, err = duration(v); return },
	"min_hold":       func(s *settings, v any) (err error) { s.minHold, err = duration(v); return },
	"fail_on_outage": func(s *settings, v any) (err error) { s.failOnOutage, err = flag(v); return },
	"in_flight":      func(s *settings, v any) (err error) { s.inFlight, err = count(v); return },
	"cluster":        func(s *settings, v any) (err error) { s.cluster, err = flag(v); return },
	"label":          func(s *settings, v any) (err error) { s.label, err = text(v); return },
}

// notSettings are the variables that `quorum run` gives its command.
var notSettings = []string{"QUORUM_KEY", "QUORUM_TOKEN", "QUORUM_VALID_UNTIL"}

// read reads file and environment.
func read(path string, environ []string) (map[string]*settings, []string, error) {
	tables, err := parse(path)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]*settings{}
	for _, name := range names(tables) {
		s := &settings{strategy: quorum.Consensus(), given: map[string]bool{}}
		all[name] = s
		table, ok := tables[name].(map[string]any)
		if !ok { // the short form: the stores alone
			table = map[string]any{"stores": tables[name]}
		}
		for _, field := range names(table) {
			if err := s.apply(name, field, table[field]); err != nil {
				return nil, nil, err
			}
		}
	}
	unread, err := environment(all, environ)
	return all, unread, err
}

func (s *settings) apply(name, field string, v any) error {
	set, ok := fields[field]
	if !ok {
		return fmt.Errorf("%w: resource %q has no field %q; there are: %s", quorum.ErrInvalidOption, name, field, strings.Join(names(fields), ", "))
	}
	if err := set(s, v); err != nil {
		return fmt.Errorf("%w: resource %q: %s: %w", quorum.ErrInvalidOption, name, field, err)
	}
	s.given[field] = true
	return nil
}

// environment lays variables over what the file says, and returns those that
// set nothing.
func environment(all map[string]*settings, environ []string) (unread []string, err error) {
	environ = slices.Sorted(slices.Values(environ))
	for _, entry := range environ {
		variable, value, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(variable, "QUORUM_")
		if !ours || slices.Contains(notSettings, variable) {
			continue
		}
		name, field := Default, strings.ToLower(rest)
		for _, r := range names(all) { // QUORUM_DAILY_WAIT is of "daily", unless there is a "daily_wait"
			if f, ok := strings.CutPrefix(rest, variableName(r)+"_"); ok && fields[strings.ToLower(f)] != nil {
				name, field = r, strings.ToLower(f)
			}
		}
		if fields[field] == nil {
			unread = append(unread, variable)
			continue
		}
		if all[name] == nil {
			all[name] = &settings{strategy: quorum.Consensus(), given: map[string]bool{}}
		}
		if err := all[name].apply(name, field, value); err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable, err)
		}
	}
	return unread, nil
}

// variableName is a resource's name as it stands in variables.
func variableName(resource string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(resource))
}

// locker are the options for the whole Locker, lease those of each lease.
func (s *settings) locker() []quorum.Option {
	var o []quorum.Option
	if s.given["max_ttl"] {
		o = append(o, quorum.MaxTTL(s.maxTTL))
	}
	if s.given["release_limit"] {
		o = append(o, quorum.ReleaseLimit(s.releaseLimit))
	}
	if s.given["in_flight"] {
		o = append(o, quorum.InFlight(s.inFlight))
	}
	if s.cluster {
		o = append(o, quorum.Cluster())
	}
	return o
}

func (s *settings) lease() []quorum.Option {
	o := []quorum.Option{quorum.AskOrder(s.order), quorum.Label(s.label)}
	for field, option := range map[string]quorum.Option{
		"ttl": quorum.TTL(s.ttl), "renew_every": quorum.RenewEvery(s.renewEvery), "wait": quorum.Wait(s.wait),
		"call_limit": quorum.CallLimit(s.callLimit), "max_hold": quorum.MaxHold(s.maxHold), "min_hold": quorum.MinHold(s.minHold),
	} {
		if s.given[field] {
			o = append(o, option)
		}
	}
	if s.failOnOutage {
		o = append(o, quorum.FailOnOutage())
	}
	return o
}

// fixed names a field that differs and cannot change while the program runs,
// and takes over what was opened.
func (s *settings) fixed(next *settings) string {
	next.set = s.set
	switch {
	case !slices.Equal(s.stores, next.stores):
		return "list of stores"
	case s.rule != next.rule:
		return "strategy"
	case s.maxTTL != next.maxTTL:
		return "max_ttl"
	case s.releaseLimit != next.releaseLimit:
		return "release_limit"
	case s.inFlight != next.inFlight:
		return "in_flight"
	case s.cluster != next.cluster:
		return "cluster"
	}
	return ""
}

func strategy(rule string) (quorum.Strategy, error) {
	switch rule {
	case "consensus":
		return quorum.Consensus(), nil
	case "unanimous":
		return quorum.Unanimous(), nil
	}
	var k int
	if _, err := fmt.Sscanf(rule, "at least %d", &k); err == nil {
		return quorum.AtLeast(k), nil
	}
	return nil, errors.New(`want "consensus", "unanimous" or "at least N"`)
}

// What values are, in files and in variables. No error shows the value of a
// field that may hold a secret.

func text(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	return "", fmt.Errorf("want a text, not %s", kind(v))
}

func texts(v any) ([]string, error) {
	switch v := v.(type) {
	case string:
		return quorum.SplitDSNs(v), nil
	case []any:
		var out []string
		for _, e := range v {
			s, err := text(e)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		return out, nil
	}
	return nil, fmt.Errorf("want a text or a list of texts, not %s", kind(v))
}

func duration(v any) (time.Duration, error) {
	s, err := text(v)
	if err != nil {
		return 0, errors.New(`want a time with a unit, such as "30s"`)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf(`want a time with a unit, such as "30s", not %q`, s)
	}
	return d, nil
}

func count(v any) (int, error) {
	switch v := v.(type) {
	case int:
		return v, nil
	case int64: // of TOML
		return int(v), nil
	case float64: // of JSON
		if n := int(v); float64(n) == v {
			return n, nil
		}
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return n, nil
		}
	}
	return 0, errors.New("want a whole number")
}

func flag(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		if b, err := strconv.ParseBool(v); err == nil {
			return b, nil
		}
	}
	return false, errors.New("want true or false")
}

// kind says what a value is, in the words of a file and not of Go.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	case int, int64, uint64, float64:
		return "a number"
	}
	return "something else" // such as a date of YAML or TOML
}

// withoutText keeps what kind of error a parser met and where, and not the
// text around it, which may be a DSN.
func withoutText(err error) error {
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) {
		return missing
	}
	where := ""
	if line := regexp.MustCompile(`line \d+`).FindString(err.Error()); line != "" {
		where = " near " + line
	}
	if strings.HasPrefix(err.Error(), "yaml:") {
		where += "; in YAML's [ ] a DSN with a ? stands in quotes"
	}
	return fmt.Errorf("%w: the file is not well-formed%s", quorum.ErrInvalidOption, where)
}

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
