// Package config opens named locks from one file and the environment, so that
// where locks are kept is said in one place and not in code:
//
//	default: redis://redis-a:6379
//	invoices: ['redis://redis-a:6379?prefix=invoices', redis://redis-b:6379, redis://redis-c:6379]
//	reports:
//	  stores: [postgres://db/app, etcd://etcd:2379, 'redis://redis-a:6379?prefix=reports']
//	  ttl: 30s
//	  wait: 5s
//
// A store serves one set: resources that share one have the same list, strategy
// and max_ttl, or keep apart in it by a prefix, as redis-a's above.
//
// Nothing is read but by [Load], and everything is checked then: an error names
// the resource and the field, and never shows a password.
package config

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/knadh/koanf/parsers/json"
	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/quorumlock/quorum"
)

// Default is the resource that variables without a resource's name set, such as
// QUORUM_STORES.
const Default = "default"

// Set is the resources of a file, opened. It is safe for concurrent use.
type Set struct {
	path      string
	openers   []quorum.Opener
	resources map[string]*Resource
	unread    []string
}

// Resource is a [quorum.Locker] under a name, with the settings of its file.
// Its Acquire, TryAcquire and Do take them as they are at the call; options of
// the call come after.
type Resource struct {
	*quorum.Locker
	name string
	now  atomic.Pointer[settings]
}

// Load reads a file (.yaml, .yml, .json or .toml; none when path is empty) and
// then environ, which overrides it (give os.Environ()), checks everything and
// opens every resource. Close the Set when done.
//
// A variable is QUORUM_NAME_FIELD, with the resource's name in upper case and _
// for what is neither letter nor digit, or QUORUM_FIELD for the resource
// [Default]; a list of stores is split as [quorum.SplitDSNs] does.
func Load(ctx context.Context, path string, environ []string, openers ...quorum.Opener) (*Set, error) {
	read, unread, err := read(path, environ)
	if err != nil {
		return nil, err
	}
	if err := clash(read, openers); err != nil {
		return nil, err
	}
	s := &Set{path: path, openers: openers, resources: map[string]*Resource{}, unread: unread}
	for _, name := range names(read) {
		r, err := open(ctx, name, read[name], openers)
		if err != nil {
			return nil, errors.Join(err, s.Close(ctx))
		}
		s.resources[name] = r
	}
	return s, nil
}

// Resource returns a resource, or an error that lists those there are.
func (s *Set) Resource(name string) (*Resource, error) {
	if r := s.resources[name]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%w: no resource %q is configured; there are: %s", quorum.ErrInvalidOption, name,
		strings.Join(names(s.resources), ", "))
}

// Unread lists the variables that begin with QUORUM_ and set nothing, such as a
// misspelt field: log each once. Those that `quorum run` gives its command are
// not among them.
func (s *Set) Unread() []string { return slices.Clone(s.unread) }

// Reload reads the file again, with environ over it. What it says of TTL and
// the other settings of a lease applies to leases taken from then on; those that
// are held stay as they are. Another list of resources, stores, strategy,
// MaxTTL, ReleaseLimit or Cluster needs a restart, and is an error that changes
// nothing.
func (s *Set) Reload(environ []string) error {
	read, _, err := read(s.path, environ)
	if err != nil {
		return err
	}
	if err := clash(read, s.openers); err != nil {
		return err
	}
	if had, has := names(s.resources), names(read); !slices.Equal(had, has) {
		return fmt.Errorf("%w: the resources are now %s and were %s: restart to change them", quorum.ErrInvalidOption,
			strings.Join(has, ", "), strings.Join(had, ", "))
	}
	for name, r := range s.resources {
		if field := r.now.Load().fixed(read[name]); field != "" {
			return fmt.Errorf("%w: resource %q: another %s needs a restart", quorum.ErrInvalidOption, name, field)
		}
		if err := r.accepts(read[name]); err != nil {
			return err
		}
	}
	for name, r := range s.resources {
		r.now.Store(read[name])
	}
	return nil
}

// Close closes every resource, see [quorum.Locker.Close].
func (s *Set) Close(ctx context.Context) error {
	var errs []error
	for _, name := range names(s.resources) {
		if err := s.resources[name].Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("resource %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Name returns the name in the file.
func (r *Resource) Name() string { return r.name }

// Acquire is [quorum.Locker.Acquire] with the resource's settings.
func (r *Resource) Acquire(ctx context.Context, key string, options ...quorum.Option) (*quorum.Lease, error) {
	return r.Locker.Acquire(ctx, key, r.options(options)...)
}

// TryAcquire is [quorum.Locker.TryAcquire] with the resource's settings.
func (r *Resource) TryAcquire(ctx context.Context, key string, options ...quorum.Option) (*quorum.Lease, error) {
	return r.Locker.TryAcquire(ctx, key, r.options(options)...)
}

// Do is [quorum.Locker.Do] with the resource's settings.
func (r *Resource) Do(ctx context.Context, key string, fn func(context.Context, *quorum.Lease) error, options ...quorum.Option) error {
	return r.Locker.Do(ctx, key, fn, r.options(options)...)
}

func (r *Resource) options(more []quorum.Option) []quorum.Option {
	return append(r.now.Load().lease(), more...)
}

// accepts checks settings of leases against the resource's stores, by making a
// Locker of them that is never used.
func (r *Resource) accepts(s *settings) error {
	probe, err := quorum.New(r.stores(), append(s.locker(), s.lease()...)...)
	if err != nil {
		return fmt.Errorf("resource %q: %w", r.name, err)
	}
	_ = probe // it has asked nobody and holds nothing; Close would close the stores
	return nil
}

// stores are the resource's own.
func (r *Resource) stores() quorum.Store { return r.now.Load().set }

func open(ctx context.Context, name string, s *settings, openers []quorum.Opener) (*Resource, error) {
	if len(s.stores) == 0 {
		return nil, fmt.Errorf("%w: resource %q: stores: name at least one", quorum.ErrInvalidOption, name)
	}
	set, err := quorum.OpenWith(ctx, s.strategy, s.stores, openers...)
	if err != nil {
		return nil, fmt.Errorf("resource %q: stores: %w", name, err)
	}
	s.set = set
	locker, err := quorum.New(set, append(s.locker(), s.lease()...)...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resource %q: %w", name, err), set.Close())
	}
	r := &Resource{Locker: locker, name: name}
	r.now.Store(s)
	return r, nil
}

// parse reads the file into a table for each resource.
func parse(path string) (map[string]any, error) {
	if path == "" {
		return map[string]any{}, nil
	}
	var parser koanf.Parser
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".yaml", ".yml":
		parser = yaml.Parser()
	case ".json":
		parser = json.Parser()
	case ".toml":
		parser = toml.Parser()
	default:
		return nil, fmt.Errorf("%w: %s: settings are read from .yaml, .yml, .json and .toml, not from %q", quorum.ErrInvalidOption, path, ext)
	}
	k := koanf.New("\x00") // no name holds it, so that dots in names stay
	if err := k.Load(file.Provider(path), parser); err != nil {
		return nil, fmt.Errorf("%s: %w", path, withoutText(err))
	}
	return k.Raw(), nil
}
