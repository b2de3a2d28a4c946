// Package waitlist keeps the queue of a name as one text, for servers that have
// no clock. The model decides on it; nothing of it is decided here.
//
// The text has no times, since the clocks of clients differ. Instead each client
// counts from when it first saw a line as it is. A waiter that asks again
// changes its line; one whose line stays the same for as long as its turn, or
// its entry, lasts is over. Where two clients see that at different times
// nothing worse happens than that the waiter comes back to its place.
package waitlist

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// version begins the text, so that another one is not misread.
const version = "1"

// Waiter is a line of the queue.
type Waiter struct {
	Owner  core.Owner
	Mode   core.Mode
	Ticket int64
	Keep   time.Duration
	Claim  time.Duration
	Beat   int64  // grows with each request of the waiter
	Turn   string // None, or the counter when its turn came, after Answered if an answer told it
	Client string // where the waiter is told, for a server that cannot tell all
	text   string
}

// What Turn may begin with.
const (
	None     = "-"
	Answered = "="
)

// List is a queue, in order.
type List []Waiter

// String is the text of a queue, empty if nobody waits: a version, and for each
// waiter a line of owner, attempt, mode, ticket, keep and claim in µs, beat,
// turn and, if it has one, client.
func (l List) String() string {
	if len(l) == 0 {
		return ""
	}
	lines := []string{version}
	for _, w := range l {
		line := fmt.Sprintf("%x %d %d %d %d %d %d %s %s", w.Owner.ID[:], w.Owner.Attempt, w.Mode, w.Ticket,
			w.Keep.Microseconds(), w.Claim.Microseconds(), w.Beat, w.Turn, w.Client)
		lines = append(lines, strings.TrimSuffix(line, " "))
	}
	return strings.Join(lines, "\n")
}

// Parse reads what String wrote. Its errors show nothing of it.
func Parse(text string) (l List, err error) {
	if text == "" {
		return nil, nil
	}
	first, rest, _ := strings.Cut(text, "\n")
	if first != version {
		return nil, fmt.Errorf("the format of a queue is not %q", version)
	}
	for line := range strings.SplitSeq(rest, "\n") {
		w, ok := parse(line)
		if !ok {
			return nil, fmt.Errorf("line %d of a queue is none of a waiter", len(l)+1)
		}
		l = append(l, w)
	}
	return l, nil
}

func parse(line string) (w Waiter, ok bool) {
	f := strings.Split(line, " ")
	if len(f) < 8 || len(f) > 9 || len(f[0]) != 2*len(w.Owner.ID) {
		return w, false
	}
	var n [6]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(f[i+1], 10, 64); err != nil || n[i] < 0 {
			return w, false
		}
	}
	_, err := hex.Decode(w.Owner.ID[:], []byte(f[0]))
	w.Owner.Attempt, w.Mode, w.Ticket = uint32(n[0]), core.Mode(n[1]), n[2]
	w.Keep, w.Claim = time.Duration(n[3])*time.Microsecond, time.Duration(n[4])*time.Microsecond
	w.Beat, w.Turn, w.text = n[5], f[7], line
	if len(f) == 9 {
		w.Client = f[8]
	}
	return w, err == nil
}

// Entries is the queue for the model, with ends that lie as far ahead of now as
// ages, of the lines, leave.
func (l List) Entries(now model.Time, ages map[string]time.Duration) (all []model.Entry) {
	for _, w := range l {
		at := now.Add(-ages[w.text])
		e := model.Entry{Owner: w.Owner, Mode: w.Mode, Ticket: w.Ticket, Until: at.Add(w.Keep), Claim: w.Claim}
		if w.Turn != None {
			e.Turn = at.Add(w.Claim)
		}
		all = append(all, e)
	}
	return all
}

// Has reports whether id waits.
func (l List) Has(id core.ID) bool {
	return slices.ContainsFunc(l, func(w Waiter) bool { return w.Owner.ID == id })
}

// Without is the list but for those that are gone.
func (l List) Without(gone func([16]byte) bool) (all List) {
	for _, w := range l {
		if !gone(w.Owner.ID) {
			all = append(all, w)
		}
	}
	return all
}

// Last is the ticket of the last in line, 0 if nobody waits, or if id does. A
// newcomer's is to be above it, so that tickets are given in the order of
// asking, whatever the clocks.
func (l List) Last(id core.ID) int64 {
	if len(l) == 0 || l.Has(id) {
		return 0
	}
	return l[len(l)-1].Ticket
}

// Ask is the request of a waiter.
type Ask struct {
	Owner  core.Owner
	Keep   time.Duration
	Client string
}

// After is the list once the model has decided on a name, by a request that is
// ask, or no waiter's.
func (l List) After(rec *model.Record, name *model.Name, ask *Ask) (all List) {
	counter := name.Counter
	if !name.Known {
		counter = rec.Step << core.StepBits
	}
	for _, e := range name.Queue {
		w := Waiter{Turn: None}
		if i := slices.IndexFunc(l, func(w Waiter) bool { return w.Owner.ID == e.Owner.ID }); i >= 0 {
			w = l[i]
		}
		asks := ask != nil && ask.Owner == e.Owner
		if asks {
			w.Keep, w.Client = ask.Keep, ask.Client
			w.Beat++
		}
		switch {
		case e.Turn == 0:
			w.Turn = None
		case asks:
			w.Turn = Answered + strconv.FormatInt(counter, 10)
		case w.Turn == None:
			w.Turn = strconv.FormatInt(counter, 10)
		}
		w.Owner, w.Mode, w.Ticket, w.Claim = e.Owner, e.Mode, e.Ticket, e.Claim
		all = append(all, w)
	}
	return all
}

// Told reports whether the waiter's turn has come, and is to be told, with the
// counter then.
func (w *Waiter) Told() (counter int64, ok bool) {
	counter, err := strconv.ParseInt(w.Turn, 10, 64)
	return counter, err == nil
}
