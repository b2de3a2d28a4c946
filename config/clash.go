package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// clash refuses resources that no two Lockers could serve: a store's record
// serves one set of stores, strategy and MaxTTL, so of two resources that share
// it in different sets the one that comes second is refused by the store, at its
// first lock.
func clash(all map[string]*settings, openers []quorum.Opener) error {
	first := map[string]string{} // a record: the first resource in it
	for _, name := range names(all) {
		for _, dsn := range all[name].stores {
			record, _ := place(dsn, openers)
			other, taken := first[record]
			if record == "" || !taken {
				first[record] = name
				continue
			}
			if what := differs(all[other], all[name], openers); what != "" {
				return fmt.Errorf("%w: resources %q and %q share the store %s and differ in %s, but a store serves one set: "+
					"give both the same, or keep them apart by %s", quorum.ErrInvalidOption, other, name, quorum.MaskDSN(dsn), what, apart(dsn))
			}
		}
	}
	return nil
}

// place says where a DSN's store keeps its record, and its name in the set. Of
// what is no DSN of an opener it says nothing: opening it tells why.
func place(dsn string, openers []quorum.Opener) (record, name string) {
	u, err := quorum.ParseDSN(dsn)
	if err != nil {
		return "", ""
	}
	i := slices.IndexFunc(openers, func(o quorum.Opener) bool { return slices.Contains(o.Schemes, u.Scheme) })
	if i < 0 {
		return "", ""
	}
	if openers[i].Name != nil {
		record = openers[i].Name(u)
	} else { // as package quorum names it
		record = (&url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}).String()
	}
	if name = u.Query().Get("name"); name == "" {
		name = record
	}
	return record, name
}

// differs names what makes two resources two sets, or is empty.
func differs(a, b *settings, openers []quorum.Opener) string {
	switch {
	case !slices.Equal(a.members(openers), b.members(openers)):
		return "their lists of stores"
	case a.strategy.String() != b.strategy.String():
		return "strategy"
	case a.longest() != b.longest():
		return "max_ttl"
	}
	return ""
}

// members are the names of the stores. Their order is none of the set's: every
// strategy of a file counts.
func (s *settings) members(openers []quorum.Opener) []string {
	var all []string
	for _, dsn := range s.stores {
		_, name := place(dsn, openers)
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// longest is the longest TTL of any client.
func (s *settings) longest() time.Duration {
	if s.given["max_ttl"] {
		return s.maxTTL
	}
	return time.Minute // the default of quorum.MaxTTL
}

// apart is how two sets keep out of each other's way on one server.
func apart(dsn string) string {
	scheme, _, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "redis", "rediss", "redis+cluster", "rediss+cluster", "etcd", "etcds", "consul", "consuls", "kube":
		return "another ?prefix= in the DSN of one"
	case "postgres", "postgresql":
		return "another ?schema= in the DSN of one"
	case "file":
		return "a directory for each"
	case "sqlite":
		return "a file for each"
	}
	return "a store for each"
}
