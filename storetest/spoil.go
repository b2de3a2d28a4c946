package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorum"
)

// Spoiled is a store whose calls fail as its rules say, and which keeps a log
// of them. It is safe for concurrent use, its rules may be changed while calls
// are under way, and it works in a testing/synctest bubble. Make one with
// [Spoil].
//
// The abilities of the store beneath are found through Unwrap, as [quorum.As]
// does, and are spoiled and logged as well. A clock that runs fast or slow is
// given to the store beneath, see clock.Drift.
type Spoiled struct {
	mu      sync.Mutex
	under   quorum.Store
	limits  func(*quorum.Limits)
	rules   []Rule
	log     []*Call
	counts  map[Verb]int
	thawed  chan struct{}
	pending map[chan struct{}]bool // goroutines that apply something late
	life    context.Context        // of them
	end     context.CancelFunc
}

var _ quorum.Store = (*Spoiled)(nil)

// Spoil wraps s. Of the rules the first that matches a call spoils it; a call
// that none matches goes straight through.
func Spoil(s quorum.Store, rules ...Rule) *Spoiled {
	life, end := context.WithCancel(context.Background())
	return &Spoiled{
		under: s, rules: rules, counts: map[Verb]int{}, thawed: make(chan struct{}),
		pending: map[chan struct{}]bool{}, life: life, end: end,
	}
}

// Set replaces all rules. Calls under way go on as they began.
func (s *Spoiled) Set(rules ...Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = rules
}

// Replace puts another store beneath, as when a server came back empty. Calls
// that are under way, and have not reached the old one yet, reach the new one.
func (s *Spoiled) Replace(under quorum.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under = under
}

// Pretend changes what Limits says, such as that a client doubles requests.
// Call it before the store is combined.
func (s *Spoiled) Pretend(change func(*quorum.Limits)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = change
}

// Thaw lets every call go on that [Freeze] stopped, and that it stops later.
func (s *Spoiled) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.thawed:
	default:
		close(s.thawed)
	}
}

// Wait returns when everything that was to be applied late has been.
func (s *Spoiled) Wait() {
	for {
		s.mu.Lock()
		var next chan struct{}
		for next = range s.pending {
			break
		}
		s.mu.Unlock()
		if next == nil {
			return
		}
		<-next
	}
}

// Close drops the rules, lets frozen calls go on, gives up what was to be
// applied late, and returns when no goroutine of s is left. The store beneath
// stays open.
func (s *Spoiled) Close() {
	s.Set()
	s.end()
	s.Thaw()
	s.Wait()
}

// Name is that of the store beneath.
func (s *Spoiled) Name() string { return s.beneath().Name() }

// Limits are those of the store beneath, as [Spoiled.Pretend] changed them.
func (s *Spoiled) Limits() quorum.Limits {
	l := s.beneath().Limits()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limits != nil {
		s.limits(&l)
	}
	return l
}

// Acquire is spoiled as the rules say.
func (s *Spoiled) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	return through(ctx, s, VerbAcquire, r, func(ctx context.Context) (quorum.Grant, error) {
		return s.beneath().Acquire(ctx, r)
	})
}

// Extend is spoiled as the rules say.
func (s *Spoiled) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	return through(ctx, s, VerbExtend, r, func(ctx context.Context) (quorum.Grant, error) {
		return s.beneath().Extend(ctx, r)
	})
}

// Release is spoiled as the rules say.
func (s *Spoiled) Release(ctx context.Context, r quorum.Request) error {
	_, err := through(ctx, s, VerbRelease, r, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.beneath().Release(ctx, r)
	})
	return err
}

func (s *Spoiled) beneath() quorum.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.under
}

// through carries one call: it is logged, spoiled and passed on. T is what the
// verb answers beside its error.
func through[T any](ctx context.Context, s *Spoiled, v Verb, r quorum.Request, pass func(context.Context) (T, error)) (answer T, err error) {
	c, faults := s.begin(ctx, v, r)
	panicked := true
	defer func() {
		if panicked {
			err = fmt.Errorf("storetest: %s panicked", v)
		}
		s.finish(c, err)
	}()
	// Faults know only errors. The answer they return is that of the last
	// request that was passed on in the call itself; what is applied late has
	// nobody to tell it to.
	send := func(ctx context.Context) error {
		s.sent(c)
		var err error
		answer, err = pass(ctx)
		return err
	}
	late := func(ctx context.Context) error {
		s.sent(c)
		_, err := pass(ctx)
		return err
	}
	for _, f := range slices.Backward(faults) {
		send = f.around(s, r, send, late)
	}
	err = send(ctx)
	panicked = false
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}

// begin logs a call and finds its faults.
func (s *Spoiled) begin(ctx context.Context, v Verb, r quorum.Request) (*Call, []Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[v]++
	c := &Call{Verb: v, N: s.counts[v], Request: r, At: time.Now(), Context: ctx.Err(), Outcome: quorum.OutcomeNotAsked}
	if end, ok := ctx.Deadline(); ok {
		c.Left = time.Until(end)
	}
	s.log = append(s.log, c)
	for _, rule := range s.rules {
		if rule.Match == nil || rule.Match(*c) {
			return c, rule.Faults
		}
	}
	return c, nil
}

func (s *Spoiled) sent(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Sent++
}

func (s *Spoiled) finish(c *Call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Took, c.Err, c.Done = time.Since(c.At), err, true
	c.Outcome = quorum.OutcomeOf(err)
}
