package quorum

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
)

// Opener makes stores from DSNs. A store's package has a function that returns
// one; there is no global list of them, so a program contains the stores that
// it names and no others.
type Opener struct {
	// Schemes are the URL schemes it takes, in lower case: "redis", "rediss".
	Schemes []string
	// Open makes a store with a client of its own. The DSN's query always
	// carries "name", the store's name, which the store must take as it is.
	// ctx bounds Open and not the store's life. A store that is an io.Closer is
	// closed by who called [Open], see there. The error may quote the DSN: its
	// secrets are taken out again.
	Open func(ctx context.Context, dsn *url.URL) (Store, error)
	// Name says how a store is named whose DSN has no "name", and may be nil
	// where scheme, host and path are enough. Two DSNs that lead to different
	// records must give two names, or clients of the one and of the other look
	// like one set and exclude nobody. It takes no secret into the name.
	Name func(dsn *url.URL) string
}

// Open makes a store from each DSN and combines them under [Consensus]; one
// DSN gives a set of one. It reads no environment and asks no server more than
// an opener does.
//
// A member's name is what "?name=" says, else its DSN's scheme, host and path
// with whatever else the opener says its record lies under: neither password
// nor user nor settings of the client are part of it, so that clients that
// differ in these agree on the set. "?domain=" says what fails together with the
// store, see [InDomain].
//
// What Open made is closed when Open fails, by [CombinedStore.Close], and so
// by [Locker.Close]. No error shows a password.
func Open(ctx context.Context, dsns []string, openers ...Opener) (*CombinedStore, error) {
	return OpenWith(ctx, Consensus(), dsns, openers...)
}

// OpenWith is [Open] under another strategy.
func OpenWith(ctx context.Context, s Strategy, dsns []string, openers ...Opener) (*CombinedStore, error) {
	if err := given(ctx); err != nil {
		return nil, &about{"open", err}
	}
	known, err := schemes(openers)
	if err != nil {
		return nil, err
	}
	var members []Store
	var made closers
	for i, text := range dsns {
		m, err := open(ctx, text, known)
		if err != nil {
			err = &about{fmt.Sprintf("open store %d of %d", i+1, len(dsns)), err}
			return nil, errors.Join(err, made.close())
		}
		members = append(members, m)
		if c, ok := As[io.Closer](m); ok {
			made = append(made, c)
		}
	}
	set, err := Combine(s, members...)
	if err != nil {
		return nil, errors.Join(err, made.close())
	}
	set.owned = made
	return set, nil
}

// Close closes what [Open] made, once however often it is called. Stores that
// were given to [Combine] belong to who made them and are left alone.
// [Locker.Close] calls it; call it yourself only when no Locker was made.
func (c *CombinedStore) Close() error {
	c.closing.Do(func() { c.closed = closers(c.owned).close() })
	return c.closed
}

type closers []io.Closer

func (all closers) close() error {
	var errs []error
	for _, c := range all {
		if err := c.Close(); err != nil {
			errs = append(errs, fmt.Errorf("quorum: close a store: %w", err))
		}
	}
	return errors.Join(errs...)
}

func schemes(openers []Opener) (map[string]Opener, error) {
	known := make(map[string]Opener)
	for i, o := range openers {
		if o.Open == nil || len(o.Schemes) == 0 {
			return nil, fmt.Errorf("%w: opener %d of %d has no schemes or no Open", ErrInvalidOption, i+1, len(openers))
		}
		for _, s := range o.Schemes {
			if _, twice := known[s]; twice {
				return nil, fmt.Errorf("%w: two openers take the scheme %q", ErrInvalidOption, s)
			}
			known[s] = o
		}
	}
	return known, nil
}

// open makes one store. Its errors carry no secret of text, and what the opener
// said with the secrets taken out.
func open(ctx context.Context, text string, known map[string]Opener) (Store, error) {
	u, err := ParseDSN(text)
	if err != nil {
		return nil, err
	}
	o, ok := known[u.Scheme]
	if !ok {
		return nil, unknownScheme(u.Scheme, known)
	}
	query := u.Query()
	if query.Get("name") == "" {
		query.Set("name", defaultName(o, u))
	}
	domain := query.Get("domain")
	query.Del("domain") // of the set, and nothing that an opener knows
	given := *u
	given.RawQuery = query.Encode()
	s, err := o.Open(ctx, &given)
	if err == nil && s == nil {
		err = errors.New("the opener returned neither a store nor an error")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query.Get("name"), withoutSecrets(err, u))
	}
	if domain != "" {
		s = InDomain(s, domain)
	}
	return s, nil
}

// packages are the import paths to name for a scheme that has no opener.
var packages = map[string]string{
	"consul":     "github.com/quorumlock/quorum/stores/consulstore",
	"consuls":    "github.com/quorumlock/quorum/stores/consulstore",
	"etcd":       "github.com/quorumlock/quorum/stores/etcdstore",
	"etcds":      "github.com/quorumlock/quorum/stores/etcdstore",
	"file":       "github.com/quorumlock/quorum/stores/filestore",
	"kube":       "github.com/quorumlock/quorum/stores/kubestore",
	"memory":     "github.com/quorumlock/quorum/stores/memstore",
	"postgres":   "github.com/quorumlock/quorum/stores/pgstore",
	"postgresql": "github.com/quorumlock/quorum/stores/pgstore",
	"redis":      "github.com/quorumlock/quorum/stores/redisstore",
	"rediss":     "github.com/quorumlock/quorum/stores/redisstore",
	"sqlite":     "github.com/quorumlock/quorum/stores/sqlitestore",

	"redis+cluster":  "github.com/quorumlock/quorum/stores/redisstore",
	"rediss+cluster": "github.com/quorumlock/quorum/stores/redisstore",
}

func unknownScheme(scheme string, known map[string]Opener) error {
	var have []string
	for s := range known {
		have = append(have, s)
	}
	slices.Sort(have)
	todo := "give Open an Opener for it"
	if path, ok := packages[scheme]; ok {
		todo = "import " + path + " and give its Opener() to Open"
	}
	return fmt.Errorf("%w: no opener takes the scheme %q (there are: %s); %s",
		ErrInvalidOption, scheme, strings.Join(have, ", "), todo)
}
