package quorum

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxKey is the longest key in bytes, unless a store takes less.
const maxKey = 512

// longest is the longest MaxTTL: no store keeps a vote longer.
const longest = 24 * time.Hour

// mostInFlight is the largest InFlight.
const mostInFlight = 1 << 20

// maxLabel bounds what a user may add to a label, and maxWho the rest.
const (
	maxLabel = 200
	maxWho   = 53
)

// checkKey refuses a key that some store could not keep apart from others.
func checkKey(key string, limit int) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrInvalidKey)
	case len(key) > limit:
		return fmt.Errorf("%w: it has %d bytes, and the stores take %d", ErrInvalidKey, len(key), limit)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: it is not UTF-8", ErrInvalidKey)
	case strings.ContainsRune(key, 0):
		return fmt.Errorf("%w: it holds a NUL", ErrInvalidKey)
	}
	return nil
}

// checkTTL refuses a TTL of an Extend that no store would give.
func (l *Locker) checkTTL(ttl time.Duration) error {
	s := l.def
	s.ttl = ttl
	return s.checkTTL(l.set)
}

func (s settings) checkTTL(set *CombinedStore) error {
	switch {
	case s.ttl <= 0:
		return fmt.Errorf("%w: %v is not above zero", ErrInvalidTTL, s.ttl)
	case s.ttl > s.bound() && s.ttl <= s.maxTTL:
		return fmt.Errorf("%w: TTL %v is above %v, the shorter MaxTTL of the two sets", ErrInvalidTTL, s.ttl, s.most)
	case s.ttl > s.maxTTL:
		return fmt.Errorf("%w: TTL %v is above MaxTTL %v; set MaxTTL at all clients of these stores", ErrInvalidTTL, s.ttl, s.maxTTL)
	}
	for _, m := range set.leaves() {
		if least := m.Limits().MinTTL; s.ttl < least {
			return fmt.Errorf("%w: TTL %v is below the %v that store %q needs", ErrInvalidTTL, s.ttl, least, m.Name())
		}
	}
	if drift := s.drift(s.ttl); drift >= s.ttl {
		return fmt.Errorf("%w: of TTL %v the drift allowance takes %v and leaves nothing", ErrInvalidTTL, s.ttl, drift)
	}
	return nil
}

func (s settings) drift(ttl time.Duration) time.Duration {
	return time.Duration(float64(ttl)*s.driftRate) + s.driftFixed
}

// check refuses settings that make no sense, alone or together.
func (s settings) check(set *CombinedStore) error {
	if !(s.driftRate >= 0 && s.driftRate < 1) || s.driftFixed < 0 || s.driftFixed > longest {
		return fmt.Errorf("%w: Drift(%v, %v): the rate must lie in [0, 1) and the fixed part not below 0; 0.01 is one per cent",
			ErrInvalidOption, s.driftRate, s.driftFixed)
	}
	if s.maxTTL > longest {
		return fmt.Errorf("%w: MaxTTL %v is above %v", ErrInvalidTTL, s.maxTTL, longest)
	}
	if err := s.checkTTL(set); err != nil {
		return err
	}
	for _, rule := range [...]struct {
		bad  bool
		text func() string // so that nothing is written of what is right
	}{
		{s.renewEvery < 0 || s.renewEvery > 0 && s.renewEvery < time.Millisecond || s.renewEvery > s.ttl/2, func() string {
			return fmt.Sprintf("RenewEvery %v must be at least 1ms and at most half of TTL %v, or 0 for a third of it", s.renewEvery, s.ttl)
		}},
		{s.callLimit < 0 || s.callLimit > s.ttl, func() string {
			return fmt.Sprintf("CallLimit %v must lie between 0 and TTL %v", s.callLimit, s.ttl)
		}},
		{s.releaseLimit <= 0, func() string { return fmt.Sprintf("ReleaseLimit %v must be above 0", s.releaseLimit) }},
		{s.inFlight < 1 || s.inFlight > mostInFlight, func() string {
			return fmt.Sprintf("InFlight %d must lie between 1 and %d", s.inFlight, mostInFlight)
		}},
		{s.backoffMin < time.Millisecond || s.backoffMax < s.backoffMin, func() string {
			return fmt.Sprintf("Backoff(%v, %v) must run from at least 1ms upwards", s.backoffMin, s.backoffMax)
		}},
		{s.expiring < 0 || s.expiring >= s.ttl, func() string { return fmt.Sprintf("Expiring %v must be shorter than TTL %v", s.expiring, s.ttl) }},
		{s.maxHold < 0, func() string { return fmt.Sprintf("MaxHold %v is below 0", s.maxHold) }},
		{s.minHold < 0 || s.minHold > s.ttl, func() string {
			return fmt.Sprintf("MinHold %v must lie between 0 and TTL %v, for which the stores keep a lock by themselves", s.minHold, s.ttl)
		}},
		{s.minHold > 0 && s.maxHold > 0 && s.minHold > s.maxHold, func() string {
			return fmt.Sprintf("MinHold %v is above MaxHold %v", s.minHold, s.maxHold)
		}},
		{s.kind == KindForce && s.mode == ModeShared, func() string { return "Force takes a name for one writer: leave Shared out" }},
		{s.order > AllAtOnce, func() string { return fmt.Sprintf("AskOrder(%d) is none of the orders", s.order) }},
		{s.clock == nil, func() string { return "WithClock(nil)" }},
		{!cleanLabel(s.label), func() string { return fmt.Sprintf("Label must be at most %d bytes of printable UTF-8", maxLabel) }},
		{s.cluster && set.Limits().Reach != ReachCluster, func() string {
			return fmt.Sprintf("Cluster: the stores arbitrate only within one %s", set.Limits().Reach)
		}},
	} {
		if rule.bad {
			return fmt.Errorf("%w: %s", ErrInvalidOption, rule.text())
		}
	}
	return nil
}

func cleanLabel(text string) bool {
	return len(text) <= maxLabel && utf8.ValidString(text) && strings.IndexFunc(text, unicode.IsControl) < 0
}

// whoami is host, process and start: enough for a person to find the holder.
func whoami() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	rest := fmt.Sprintf(" pid %d since %s", os.Getpid(), time.Now().UTC().Format("2006-01-02T15:04:05Z"))
	if room := maxWho - len(rest); len(host) > room {
		host = strings.ToValidUTF8(host[:room], "")
	}
	return host + rest
}

// label begins with the user's text: where a line is cut, that is what stays.
func (l *Locker) label(text string) string {
	if text == "" {
		return l.who
	}
	return text + " (" + l.who + ")"
}
