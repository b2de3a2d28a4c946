package quorum

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The bounds of an error's text, in bytes. It is one line of a log, and short
// where stores say the same; what to do next stands at the end of what they say.
const (
	maxErrorText = 1024
	maxReason    = 250 // of what a store says
	maxNames     = 250 // of the stores that say it
)

// saying is what stores said, and which of them.
type saying struct {
	text   string
	alike  string // text without the time left, which differs from store to store
	left   time.Duration
	stores []string
	rank   int
}

// voteText lists what the stores said, in room bytes: the same only once. Clear
// refusals come first, since they say what to do, and stores that said nothing
// last.
func voteText(votes []Vote, room int) string {
	var all []saying
	for _, v := range votes {
		s := sayingOf(v)
		i := slices.IndexFunc(all, func(o saying) bool { return o.alike == s.alike })
		if i < 0 {
			all = append(all, s)
			continue
		}
		o := &all[i]
		if o.stores = append(o.stores, v.Store); s.left > o.left {
			o.text, o.left = s.text, s.left // "at most" has to be true of them all
		}
	}
	slices.SortStableFunc(all, func(a, b saying) int { return a.rank - b.rank })
	text, rest := "", len(votes)
	for i, s := range all {
		part := nameList(s.stores) + " " + s.text
		more := fmt.Sprintf("; and %d more", rest)
		if rest -= len(s.stores); i > 0 {
			if last := i == len(all)-1; len(text)+2+len(part) > room || !last && len(text)+2+len(part)+len(more) > room {
				return text + more
			}
			text += "; "
		}
		text += part
	}
	return text
}

func sayingOf(v Vote) saying {
	s := saying{text: v.Outcome.String(), stores: []string{v.Store}, rank: 2}
	if v.Err != nil {
		s.rank = 1
		text := v.Err.Error()
		if before, rest, named := strings.Cut(" "+text, " "+v.Store+": "); named {
			text = rest // the store names itself, and so does the list
			if i := strings.LastIndex(before, ": "); i >= 0 {
				text = before[1:i+2] + rest
			}
		}
		if !strings.HasPrefix(text, s.text) {
			text = s.text + ": " + text
		}
		s.text = shorten(text, maxReason)
	}
	s.alike = s.text
	if refused := (*RefusedError)(nil); refusedAs(v.Err, &refused) {
		s.rank, s.left = 0, refused.Left
		s.alike = strings.Replace(s.text, leftText(s.left), "", 1)
	}
	return s
}

// nameList names stores, or as many as there is room for.
func nameList(names []string) string {
	text := shorten(names[0], maxNames)
	for i, name := range names[1:] {
		if len(text)+len(name) > maxNames {
			return fmt.Sprintf("%s and %d more", text, len(names)-1-i)
		}
		text += ", " + name
	}
	return text
}

// shorten cuts a text that has more bytes than most.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-2], "") + ".."
}

// leftText is the time left as errors say it.
func leftText(left time.Duration) string { return left.Round(time.Millisecond).String() }
