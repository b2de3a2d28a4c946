package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// eval runs the script of one verb. NOSCRIPT means that the server restarted or
// that its scripts were flushed, and that nothing was done: the scripts are
// loaded again, for the life of the server as it is now, and the call is made
// once more.
func (s *Store) eval(ctx context.Context, v verb, r *quorum.Request, keys []string, args ...any) (any, *scripts, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, quorum.Undelivered(err)
	}
	var last *scripts
	for range loads {
		at, err := s.loaded(ctx, family{r.Set, r.MaxTTL}, last)
		if err != nil {
			return nil, nil, err
		}
		reply, err := s.send(ctx, at.sha[v], r, keys, args)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			last = at
			continue
		}
		if redis.HasErrorPrefix(err, "READONLY") {
			at.doubted.Store(true)
		}
		if err != nil {
			return nil, nil, s.explain(err)
		}
		return reply, at, nil
	}
	return nil, nil, quorum.Undelivered(fmt.Errorf(
		"the server lost its scripts %d times in one call: does something run SCRIPT FLUSH all the time?", loads))
}

// loads bounds how often one call loads the scripts.
const loads = 4

// send makes one call, bounded by the request's limit.
func (s *Store) send(ctx context.Context, sha string, r *quorum.Request, keys []string, args []any) (any, error) {
	if r.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Limit)
		defer cancel()
	}
	return s.client.EvalSha(ctx, sha, keys, args...).Result()
}

// loaded returns the scripts of a family. It loads them when there are none, or
// only those that the server was seen to have lost.
func (s *Store) loaded(ctx context.Context, f family, lost *scripts) (*scripts, error) {
	if at := s.recent.Load(); at != nil && at != lost && at.family == f && !at.doubted.Load() {
		return at, nil
	}
	select {
	case s.loading <- struct{}{}: // one load at a time; the others take what it brings
		defer func() { <-s.loading }()
	case <-ctx.Done():
		return nil, quorum.Undelivered(ctx.Err())
	}
	at := s.families[f]
	if at == nil || at == lost || at.doubted.Load() {
		var err error
		if at, err = s.load(ctx, f, at); err != nil {
			return nil, err
		}
		s.families[f] = at
	}
	s.recent.Store(at)
	return at, nil
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
func (s *Store) load(ctx context.Context, f family, before *scripts) (*scripts, error) {
	var at *scripts
	err := s.client.Watch(ctx, func(tx *redis.Tx) error {
		info := about{runID: s.runID}
		if s.runID == "" {
			var err error
			if info, err = ask(ctx, tx); err != nil {
				return err
			}
		}
		at = write(f, info.runID, s.guard, info.major >= 7)
		at.history = info.history
		s.policy.Store(&info.policy)
		_, err := tx.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, text := range at.text {
				p.ScriptLoad(ctx, text)
			}
			return nil
		})
		promoted := before != nil && before.doubted.Load() && before.runID == at.runID && before.history != at.history
		if err == nil && promoted && s.guard {
			err = tx.EvalSha(ctx, at.sha[raise], []string{s.tag + ":record"}, "", 0, 0, "promoted").Err()
		}
		return err
	}, s.tag+":record")
	if err != nil {
		err, _ = translate(err)
		return nil, quorum.Undelivered(fmt.Errorf("load the scripts: %w", err))
	}
	return at, nil
}

// about is what a server says of itself.
type about struct {
	runID   string
	history string // of replication; it changes when a replica is promoted
	policy  string // of eviction
	major   int    // version
}

func ask(ctx context.Context, tx *redis.Tx) (about, error) {
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
	case field(server.Val(), "redis_mode") == "cluster":
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
