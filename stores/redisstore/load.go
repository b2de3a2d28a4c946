package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// eval runs the script of one verb. NOSCRIPT means that the server restarted or
// that its scripts were flushed, and that nothing was done: the scripts are
// loaded again, for the life of the server as it is now, and the call is made
// once more. It is never made again by anybody but its caller, so no request is
// repeated once a later one of its owner may have left.
func (s *Store) eval(ctx context.Context, v verb, r *quorum.Request, p *part, c *call) error {
	if err := ctx.Err(); err != nil {
		return quorum.Undelivered(err)
	}
	c.limit = r.Limit
	var last *scripts
	for range loads {
		server, err := s.shardOf(ctx, p)
		if err != nil {
			return err
		}
		at, err := server.loaded(ctx, family{r.Set, r.MaxTTL}, p, last)
		if err != nil {
			s.moved(ctx, err)
			return err
		}
		c.at = at
		switch err := server.lanes.do(ctx, c); {
		case err == nil:
			return nil
		case !redis.HasErrorPrefix(err, "NOSCRIPT"):
			return s.failed(ctx, at, err)
		}
		last = at
	}
	return quorum.Undelivered(errFlushed)
}

var errFlushed = fmt.Errorf("the server lost its scripts %d times in one call: does something run SCRIPT FLUSH all the time?", loads)

// failed says what an error of a call means, and notes what it says of a server
// that is no primary any more.
func (s *Store) failed(ctx context.Context, at *scripts, err error) error {
	if redis.HasErrorPrefix(err, "READONLY") || redis.HasErrorPrefix(err, "MOVED") {
		at.doubted.Store(true)
	}
	s.moved(ctx, err)
	return s.explain(err)
}

// loads bounds how often one call loads the scripts.
const loads = 4

// loadLimit bounds how long scripts are loaded, whoever waits for that.
const loadLimit = 10 * time.Second

// ready returns the scripts of a family if there is nothing to wait for.
func (s *shard) ready(f family) *scripts {
	if at := s.recent.Load(); at != nil && at.family == f && !at.doubted.Load() {
		return at
	}
	return nil
}

// loaded returns the scripts of a family. It loads them when there are none, or
// only those that the server was seen to have lost. A load takes several round
// trips, and a new connection some more: it is not given up with the call that
// began it, or a limit that is long enough for a call, and not for all of that,
// would never be met.
func (s *shard) loaded(ctx context.Context, f family, p *part, lost *scripts) (*scripts, error) {
	if at := s.ready(f); at != nil && at != lost {
		return at, nil
	}
	select {
	case s.loading <- struct{}{}: // one load at a time; the others take what it brings
	case <-ctx.Done():
		return nil, quorum.Undelivered(fmt.Errorf("wait for the scripts: %w", ctx.Err()))
	}
	at := s.families[f]
	if at != nil && at != lost && !at.doubted.Load() {
		s.recent.Store(at)
		<-s.loading
		return at, nil
	}
	failed := make(chan error, 1)
	var brought *scripts
	go func() {
		defer func() { <-s.loading }()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadLimit)
		defer cancel()
		var err error
		if brought, err = s.load(limited, f, p, at); err == nil {
			s.families[f] = brought
			s.recent.Store(brought)
		}
		failed <- err
	}()
	select {
	case err := <-failed:
		return brought, err
	case <-ctx.Done():
		return nil, quorum.Undelivered(fmt.Errorf("load the scripts: %w", ctx.Err()))
	}
}

// load reads the run id and loads all scripts with it on one connection. A
// connection cannot outlive the server's process, so no text that bears an old
// run id can come into a new process, where it would hide that it forgot.
// Watch, and nothing else of a UniversalClient, gives such a connection: it
// fails rather than dial again.
//
// A server that was a replica for a while and is a primary again keeps its
// process and its scripts, and may hold an older state than it once had. Its
// replication id has changed since. This store looks when it has seen READONLY.
func (s *shard) load(ctx context.Context, f family, p *part, before *scripts) (*scripts, error) {
	var at *scripts
	err := s.client.Watch(ctx, func(tx *redis.Tx) error {
		info := about{runID: s.store.runID}
		if info.runID == "" {
			var err error
			if info, err = ask(ctx, tx, s.store.cluster != nil); err != nil {
				return err
			}
		}
		if s.store.cluster != nil {
			if err := s.store.meet(ctx, tx); err != nil {
				return err
			}
		}
		at = write(f, info.runID, s.store.guard, s.store.cluster != nil, info.major >= 7)
		at.history = info.history
		s.store.policy.Store(&info.policy)
		_, err := tx.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, text := range at.text {
				p.ScriptLoad(ctx, text)
			}
			return nil
		})
		promoted := before != nil && before.doubted.Load() && before.runID == at.runID && before.history != at.history
		if err == nil && promoted && s.store.guard {
			err = s.store.distrust(ctx, tx, at.sha[raise].(string))
		}
		return err
	}, p.tag+":record")
	if err != nil {
		err, _ = s.store.translate(err)
		return nil, quorum.Undelivered(fmt.Errorf("load the scripts: %w", err))
	}
	return at, nil
}

// distrust begins a quarantine in every record that a server keeps, on the
// connection that the scripts were loaded on.
func (s *Store) distrust(ctx context.Context, tx *redis.Tx, sha string) error {
	cmds, _ := tx.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range s.parts {
			p.EvalSha(ctx, sha, []string{s.parts[i].tag + ":record"}, "", 0, 0, "promoted")
		}
		return nil
	})
	for _, c := range cmds {
		if err := c.Err(); err != nil && !redis.HasErrorPrefix(err, "MOVED") { // another server's
			return err
		}
	}
	return nil
}

// about is what a server says of itself.
type about struct {
	runID   string
	history string // of replication; it changes when a replica is promoted
	policy  string // of eviction
	major   int    // version
}

func ask(ctx context.Context, tx *redis.Tx, cluster bool) (about, error) {
	var server, replication, memory *redis.StringCmd
	_, err := tx.Pipelined(ctx, func(p redis.Pipeliner) error {
		server, replication, memory = p.Info(ctx, "server"), p.Info(ctx, "replication"), p.Info(ctx, "memory")
		return nil
	})
	if err != nil {
		return about{}, err
	}
	a := about{
		runID:   field(server.Val(), "run_id"),
		history: field(replication.Val(), "master_replid"),
		policy:  field(memory.Val(), "maxmemory_policy"),
	}
	major, _, _ := strings.Cut(field(server.Val(), "redis_version"), ".")
	a.major, _ = strconv.Atoi(major) // 0 is an old server: no flags
	switch {
	case !cluster && field(server.Val(), "redis_mode") == "cluster":
		return a, fmt.Errorf("%w: %s", quorum.ErrUnsupported, inCluster)
	case a.runID == "" || strings.Trim(a.runID, idLetters) != "":
		return a, fmt.Errorf("%w: INFO shows no run_id, so a restart of the server could not be seen", quorum.ErrUnsupported)
	}
	return a, nil
}

// field returns one field of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
