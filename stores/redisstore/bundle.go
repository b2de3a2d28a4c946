package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// bundled is calls that share one script. It reads the clock and the record once
// and all their names in one command, and costs the server a fraction of what
// they would alone. It answers usual calls only, and leaves the others to be
// sent by themselves.
type bundled struct {
	cmd   *redis.StringCmd
	calls []*call
}

// bundleLoad is how many calls share a script at most. The server does nothing
// else meanwhile, for about half a millisecond.
const bundleLoad = 64

// letter names a verb in a batch, or is 0 for a request that is hardly ever
// usual: what touches readers, converts or forces, entombs, or comes from who
// waits.
func letter(v verb, r *quorum.Request) byte {
	switch {
	case r.Mode != quorum.ModeExclusive || v == release && r.Entomb:
	case v == acquire && r.Kind == quorum.KindRepair && r.Wait == quorum.WaitNone:
		return 'a'
	case v == acquire && r.Kind == quorum.KindNew && (!queued(r) || r.Wait == quorum.WaitTake && r.Owner.Attempt == 1):
		return 'a' // who has waited asks by a later attempt
	case v == extend:
		return 'e'
	case v == release:
		return 'r'
	}
	return 0
}

// bundle sorts calls into those that share scripts and those that go alone.
func bundle(ctx context.Context, batch []*call) (bundles []*bundled, singles []*call) {
	var at *scripts
	shared := make([]*call, 0, len(batch))
	for _, c := range batch {
		if c.letter != 0 && (at == nil || at == c.at) {
			at, shared = c.at, append(shared, c)
		} else {
			singles = append(singles, c)
		}
	}
	for calls := range slices.Chunk(shared, bundleLoad) {
		if len(calls) == 1 {
			singles = append(singles, calls[0])
		} else {
			for _, c := range calls {
				c.shares = true
			}
			bundles = append(bundles, &bundled{command(ctx, at, calls), calls})
		}
	}
	return bundles, singles
}

// command is the command for a bundle.
func command(ctx context.Context, at *scripts, calls []*call) *redis.StringCmd {
	args := make([]any, 4, 5+4*len(calls))
	words := make([]string, 0, 4*len(calls)) // pointers to them need no allocation each, and those of the calls are used again
	put := func(more ...string) {
		for _, w := range more {
			words = append(words, w)
			args = append(args, &words[len(words)-1])
		}
	}
	letters := make([]byte, 0, bundleLoad)
	for _, c := range calls {
		put(c.words[:c.n-1]...)
		letters = append(letters, c.letter)
	}
	args[0], args[1], args[2], args[3] = "evalsha", at.sha[batch], strconv.Itoa(len(args)-3), calls[0].record
	args = append(args, string(letters))
	for _, c := range calls {
		put(c.words[c.n-1])
	}
	return redis.NewStringCmd(ctx, args...)
}

// share gives each call its answer. Those that were not carried out must be sent
// again by themselves: also all of them, where the server refused the script
// because of one.
func (b *bundled) share() {
	text, err := b.cmd.Result()
	for _, c := range b.calls {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		switch {
		case err != nil && !refusesOne(err):
			c.err = err
		case line == "":
			c.again, c.err = true, errAgain
		case c.letter == 'r':
			c.row = int64(1)
		default:
			c.line = line
		}
	}
}

// refusesOne reports whether a server refused a script, before it began, for
// what not every call of it need come to: a release runs in a full memory, and
// not every name need be forbidden.
func refusesOne(err error) bool {
	return (redis.HasErrorPrefix(err, "OOM") || redis.HasErrorPrefix(err, "NOPERM")) && !strings.Contains(err.Error(), "script: ")
}

// errAgain is for a call whose owner is gone before it could be sent again.
var errAgain = quorum.Undelivered(errors.New("it could not share a script"))

func (b *bundled) proves() bool {
	return slices.ContainsFunc(b.calls, func(c *call) bool { return c.proves })
}
