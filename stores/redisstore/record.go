package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// answer is what one record's script replied.
type answer struct {
	table
	at *scripts
}

// onRecords runs a script on the records of some parts. args are those of each
// part, and the answers come in the same order. In a cluster the parts of a
// server share a round trip, and an error may come after some of them.
func (s *Store) onRecords(ctx context.Context, v verb, r *quorum.Request, ps []*part, args func(i int) []any) ([]answer, error) {
	if r.MaxTTL <= 0 {
		return nil, s.unsent(fmt.Errorf("%w: MaxTTL %v is not positive", quorum.ErrInvalidTTL, r.MaxTTL))
	}
	answers := make([]answer, len(ps))
	todo := make([]int, len(ps)) // parts that have no answer yet
	for i := range todo {
		todo[i] = i
	}
	var err error
	for range loads {
		if todo, err = s.onRecordsOnce(ctx, v, r, ps, args, todo, answers); err != nil {
			return nil, fmt.Errorf("redis store %s: %v: %w", s.name, v, err)
		}
		if len(todo) == 0 {
			return answers, nil
		}
	}
	return nil, s.unsent(errFlushed)
}

// onRecordsOnce asks each server once, and returns the parts whose server had
// lost its scripts.
func (s *Store) onRecordsOnce(
	ctx context.Context, v verb, r *quorum.Request, ps []*part, args func(i int) []any, todo []int, answers []answer,
) (lost []int, err error) {
	of := map[*shard][]int{}
	var servers []*shard
	for _, i := range todo {
		server, err := s.shardOf(ctx, ps[i])
		if err != nil {
			return nil, err
		}
		if of[server] == nil {
			servers = append(servers, server)
		}
		of[server] = append(of[server], i)
	}
	for _, server := range servers {
		mine := of[server]
		at, err := server.loaded(ctx, family{r.Set, r.MaxTTL}, ps[mine[0]], answers[mine[0]].at)
		if err != nil {
			s.moved(ctx, err)
			return nil, err
		}
		batch := make([]*redis.Cmd, len(mine))
		for k, i := range mine {
			batch[k] = redis.NewCmd(ctx, append([]any{"evalsha", at.sha[v], "1", ps[i].record}, args(i)...)...)
		}
		server.lanes.straight(ctx, r.Limit, batch)
		for k, i := range mine {
			err := batch[k].Err()
			switch {
			case redis.HasErrorPrefix(err, "NOSCRIPT"):
				lost = append(lost, i)
			case err != nil:
				return nil, s.failed(ctx, at, err)
			}
			answers[i] = answer{table{row: batch[k].Val()}, at}
		}
	}
	return lost, nil
}

func (s *Store) every() []*part {
	all := make([]*part, len(s.parts))
	for i := range all {
		all[i] = &s.parts[i]
	}
	return all
}

// refusal is the first answer that is no 1, as an error.
func (s *Store) refusal(r *quorum.Request, answers []answer) error {
	for _, a := range answers {
		if done, ok := a.row.(int64); !ok || done != 1 {
			return s.refused(a.table, r, a.at)
		}
	}
	return nil
}
