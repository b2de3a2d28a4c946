package kubestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/rest"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/modelstore"
)

// Store is one namespace of a Kubernetes cluster as a member of a quorum. It is
// safe for concurrent use, and never closes connections of a client it was given.
type Store struct {
	name      string
	client    rest.Interface
	namespace string
	prefix    string
	limits    quorum.Limits
	owned     io.Closer // the client's connections, when Opener made them

	clock clock.Clock      // by which votes end
	wall  func() time.Time // what the step follows
	trial trial            // switches of tests; zero outside of them

	identity identity
	history  history
	seen     sightings
	cleaner  modelstore.Background
	lines    [lineCount]chan struct{} // each holds one: calls that lost a race for a name
}

const lineCount = 64

// Each of them is found by quorum.As.
var (
	_ quorum.Store      = (*Store)(nil)
	_ quorum.HighWater  = (*Store)(nil)
	_ quorum.Inspector  = (*Store)(nil)
	_ quorum.Membership = (*Store)(nil)
	_ quorum.Watcher    = (*Store)(nil)
	_ io.Closer         = (*Store)(nil)
)

// trial is what a test may be told of.
type trial struct {
	read func() // called between the decision and what writes it
}

// MinTTL is the shortest TTL that the store takes. A Lease's duration is shown
// in whole seconds, and a request to an API server takes tens of milliseconds.
const MinTTL = time.Second

var namespaceText = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// New returns the store that is one namespace of the cluster that client
// reaches, under the name that all clients know it by. It does no I/O.
//
// client is that of the group coordination.k8s.io/v1, such as
// clientset.CoordinationV1().RESTClient() of client-go. client-go lets a client
// make five requests a second unless its config says otherwise: set QPS to what
// your locks need, or to -1 for no bound of the client's own.
func New(name string, client rest.Interface, namespace string, options ...Option) (*Store, error) {
	s := &Store{
		name: name, client: client, namespace: namespace, prefix: defaultPrefix, clock: clock.System(), wall: time.Now,
	}
	switch {
	case name == "":
		return nil, fmt.Errorf("%w: a store needs a name", quorum.ErrInvalidOption)
	case client == nil:
		return nil, fmt.Errorf("%w: store %s: the client is nil", quorum.ErrInvalidOption, name)
	case !namespaceText.MatchString(namespace):
		return nil, fmt.Errorf("%w: store %s: %q is no name of a namespace", quorum.ErrInvalidOption, name, namespace)
	}
	s.limits = quorum.Limits{
		MinTTL:  MinTTL,
		MaxKey:  maxKey,
		Reach:   quorum.ReachCluster,
		Shares:  true,
		Watches: true,
		Forgets: true, // an etcd that was emptied, a backup that was restored
		Observe: MinTTL,
	}
	for i := range s.lines {
		s.lines[i] = make(chan struct{}, 1)
	}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
	}
	return s, nil
}

const maxKey = 512 // bytes

// Name implements [quorum.Store].
func (s *Store) Name() string { return s.name }

// Limits implements [quorum.Store].
func (s *Store) Limits() quorum.Limits { return s.limits }

// Close ends what the store does in the background, and closes the connections
// that [Opener] made for it. A client that was given to [New] is left as it is.
func (s *Store) Close() error {
	s.cleaner.Close()
	if s.owned == nil {
		return nil
	}
	return s.owned.Close()
}

// Acquire implements [quorum.Store]. There is no queue: who asks to wait in one
// is woken by [Store.Watch] like the others, and gets its ticket from a store
// that has a clock.
func (s *Store) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if r.Wait == quorum.WaitTake || r.Wait == quorum.WaitQueue {
		r.Wait = quorum.WaitWatch
	}
	table, err := s.table(ctx, acquire, &r)
	if err != nil {
		return quorum.Grant{}, err
	}
	g, err := table.Acquire(ctx, r)
	g.Ticket = 0
	if refused := (*quorum.RefusedError)(nil); err != nil && errors.As(err, &refused) {
		refused.Ticket = 0
	}
	return g, err
}

// Extend implements [quorum.Store].
func (s *Store) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	table, err := s.table(ctx, extend, &r)
	if err != nil {
		return quorum.Grant{}, err
	}
	return table.Extend(ctx, r)
}

// Release implements [quorum.Store].
func (s *Store) Release(ctx context.Context, r quorum.Request) error {
	table, err := s.table(ctx, release, &r)
	if err != nil {
		return err
	}
	return table.Release(ctx, r)
}

// Inspect implements [quorum.Inspector]. A holder's Left is how long its vote
// lasts for this client, which counts from when it first saw it; Since is by the
// clock of who holds.
func (s *Store) Inspect(ctx context.Context, r quorum.Request) (quorum.State, error) {
	table, err := s.table(ctx, inspect, &r)
	if err != nil {
		return quorum.State{}, err
	}
	return table.Inspect(ctx, r)
}

// ReadStep implements [quorum.HighWater]. A quarantine is over for a client that
// has seen it for MaxTTL.
func (s *Store) ReadStep(ctx context.Context, r quorum.Request) (quorum.Step, error) {
	table, err := s.table(ctx, record, &r)
	if err != nil {
		return quorum.Step{}, err
	}
	return table.ReadStep(ctx, r)
}

// Raise implements [quorum.HighWater].
func (s *Store) Raise(ctx context.Context, r quorum.Request, o quorum.Raise) error {
	table, err := s.table(ctx, record, &r)
	if err != nil {
		return err
	}
	return table.Raise(ctx, r, o)
}

// Serves implements [quorum.Membership].
func (s *Store) Serves(ctx context.Context, r quorum.Request) ([]quorum.Fingerprint, error) {
	table, err := s.table(ctx, record, &r)
	if err != nil {
		return nil, err
	}
	return table.Serves(ctx, r)
}

// Serve implements [quorum.Membership].
func (s *Store) Serve(ctx context.Context, r quorum.Request, from, to []quorum.Fingerprint) error {
	table, err := s.table(ctx, record, &r)
	if err != nil {
		return err
	}
	return table.Serve(ctx, r, from, to)
}

// table is the table of the protocol over one call.
func (s *Store) table(ctx context.Context, v verb, r *quorum.Request) (*modelstore.Store, error) {
	server := ""
	if v == record || takes(r.Key) { // any other is refused before anything is sent
		var err error
		if server, err = s.server(ctx, r.Limit); err != nil {
			return nil, s.unsent(v, r.Key, err)
		}
	}
	return modelstore.New(s.name, s.limits, server, &call{Store: s, verb: v, r: r}), nil
}

// takes reports whether a key is one that a store takes.
func takes(key string) bool {
	return key != "" && len(key) <= maxKey && utf8.ValidString(key) && !strings.Contains(key, "\x00")
}

// verb is what a call does.
type verb uint8

const (
	acquire verb = iota
	extend
	release
	inspect
	record
)

func (v verb) String() string {
	return [...]string{"acquire", "extend", "release", "inspect", "record of"}[v]
}
