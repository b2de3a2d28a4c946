package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// TestUsualPartChangesNothing puts the same random calls to the whole scripts on
// one side, and on the other in batches and by themselves to those with the
// usual part: each side under a prefix of its own, on a server whose clock stands
// still. It compares every reply and all that is kept.
func TestUsualPartChangesNothing(t *testing.T) {
	n := seed(t)
	d := newDifferential(t, rand.New(rand.NewPCG(n, 0)))
	for range 600 {
		d.time()
		calls := make([]drawn, 1+d.rand.IntN(4))
		for i := range calls {
			calls[i].verb, calls[i].r = d.draw()
		}
		usual, rest := d.batch(calls)
		for _, c := range append(usual, rest...) {
			whole := d.ask(0, c)
			if c.reply == nil {
				c.reply = d.ask(1, c)
			} else {
				d.usual[c.verb]++
			}
			d.note("%s %+v: %v", c.verb, c.r, whole)
			if fmt.Sprint(whole) != fmt.Sprint(c.reply) {
				t.Fatalf("%v by the whole script, %v with the usual part: seed %d\n%s", whole, c.reply, n, d.story())
			}
		}
		d.compare(n)
	}
	t.Logf("usual: %v", d.usual)
	for _, verb := range []string{"acquire", "extend", "release"} {
		if d.usual[verb] < 20 {
			t.Errorf("only %d calls to %s were usual", d.usual[verb], verb)
		}
	}
}

// drawn is a call, and what a batch told it.
type drawn struct {
	verb  string
	r     quorum.Request
	reply any
}

// batch puts calls to the batch script, and returns those that it answered and
// the others.
func (d *differential) batch(calls []drawn) (usual, rest []drawn) {
	d.t.Helper()
	keys, letters, args := []string{"{side1}:record"}, "", []any{""}
	var in []drawn
	for _, c := range calls {
		mine, packed, letter := redisstore.Packed(d.stores[1], c.verb, c.r)
		if letter == "" {
			rest = append(rest, c)
			continue
		}
		in, keys, letters, args = append(in, c), append(keys, mine[1:]...), letters+letter, append(args, packed)
	}
	args[0] = letters
	text, err := d.client.Eval(d.t.Context(), d.scripts[1]["batch"], keys, args...).Text()
	if err != nil {
		d.t.Fatalf("batch: %v\n%s", err, d.story())
	}
	for _, c := range in {
		line, after, _ := strings.Cut(text, "\n")
		text = after
		if line == "" {
			rest = append(rest, c)
			continue
		}
		c.reply = line
		usual = append(usual, c)
	}
	return usual, rest
}

type differential struct {
	t       *testing.T
	client  *redis.Client
	clock   *serverClock
	rand    *rand.Rand
	stores  [2]*redisstore.Store
	scripts [2]map[string]string
	owners  []quorum.Owner
	tokens  map[string]int64
	holders map[string]quorum.Owner
	usual   map[string]int
	log     []string
}

func newDifferential(t *testing.T, random *rand.Rand) *differential {
	node, clock := stoppedRedis(t)
	c := client(t, node.Addr)
	d := &differential{
		t: t, client: c, clock: clock, rand: random, tokens: map[string]int64{}, holders: map[string]quorum.Owner{}, usual: map[string]int{},
	}
	id := runID(t, c)
	for i := range d.stores {
		d.stores[i] = store(t, c, redisstore.Prefix(fmt.Sprint("side", i)))
		d.scripts[i] = redisstore.Texts(ask("", quorum.Owner{}), id, i == 1)
		record := fmt.Sprintf("1 %s %016x - %d %d 0 0 0", id, 0xfeed, clock.Now.Unix()/300, clock.Now.UnixMicro())
		if err := c.Set(t.Context(), fmt.Sprintf("{side%d}:record", i), record, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		d.owners = append(d.owners, owner())
	}
	return d
}

// time lets some time pass, mostly less than a vote's. It never goes back: what
// the server dropped by then would differ from side to side.
func (d *differential) time() {
	switch d.rand.IntN(30) {
	case 0:
		d.clock.Advance(time.Duration(d.rand.IntN(400)) * time.Second)
	case 1, 2, 3, 4:
		d.clock.Advance(time.Duration(d.rand.IntN(400)) * time.Millisecond)
	default:
		d.clock.Advance(time.Duration(d.rand.IntN(1000)) * time.Microsecond)
	}
}

// draw is a request, of a kind that is usual more often than not.
func (d *differential) draw() (string, quorum.Request) {
	r := ask(fmt.Sprintf("name\n %d", d.rand.IntN(4)), d.owners[d.rand.IntN(len(d.owners))])
	r.TTL = time.Duration(1+d.rand.IntN(400)) * time.Millisecond
	r.Owner.Attempt = uint32(1 + d.rand.IntN(2))
	r.Label = "of\n a label "
	last := d.tokens[r.Key]
	switch d.rand.IntN(8) {
	case 0:
		r.Floor = last + int64(d.rand.IntN(4)) - 1
	case 1:
		if d.rand.IntN(20) > 0 {
			break
		}
		r.Floor = last + 1<<26 - int64(d.rand.IntN(100))*1000
	}
	r.Floor = max(r.Floor, 0)
	holder, held := d.holders[r.Key]
	if held && d.rand.IntN(4) > 0 {
		r.Owner = holder
	}
	switch d.rand.IntN(6) {
	case 0, 1:
		return "extend", r
	case 2, 3:
		r.Entomb = d.rand.IntN(6) == 0
		return "release", r
	}
	if d.rand.IntN(12) == 0 {
		r.Mode = quorum.ModeShared
	}
	if d.rand.IntN(10) == 0 {
		r.Kind, r.Floor = quorum.Kind(1+d.rand.IntN(3)), r.Floor+1
	}
	if d.rand.IntN(4) == 0 {
		r.Kind, r.Floor = quorum.KindRepair, max(last+int64(d.rand.IntN(4))-1, 1)
		return "acquire", r
	}
	r.Wait = []quorum.WaitKind{quorum.WaitNone, quorum.WaitNone, quorum.WaitWatch, quorum.WaitTake, quorum.WaitTake, quorum.WaitQueue}[d.rand.IntN(6)]
	if r.Wait == quorum.WaitTake || r.Wait == quorum.WaitQueue {
		r.Ticket, r.Keep, r.Claim = int64(d.rand.IntN(6)/4), 50*time.Millisecond, r.TTL/2+time.Microsecond
	}
	return "acquire", r
}

// ask calls one side's script for a request. An error's text is the answer.
func (d *differential) ask(side int, c drawn) any {
	d.t.Helper()
	keys, packed, _ := redisstore.Packed(d.stores[side], c.verb, c.r)
	reply, err := d.client.Eval(d.t.Context(), d.scripts[side][c.verb], keys, packed).Result()
	if err != nil && strings.HasPrefix(err.Error(), "INVALID") {
		return err.Error()
	}
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", c.verb, err, d.story())
	}
	if text, ok := reply.(string); ok {
		token, _, _ := strings.Cut(text, " ")
		d.tokens[c.r.Key], _ = strconv.ParseInt(token, 10, 64)
		d.holders[c.r.Key] = c.r.Owner
	}
	return reply
}

// compare looks at all that both sides keep.
func (d *differential) compare(seed uint64) {
	d.t.Helper()
	var kept [len(d.stores)]map[string]string
	for i := range kept {
		kept[i] = d.kept(fmt.Sprintf("{side%d}", i))
	}
	if !reflect.DeepEqual(kept[0], kept[1]) {
		d.t.Fatalf("kept without the usual part:\n%v\nwith it:\n%v\nseed %d\n%s", kept[0], kept[1], seed, d.story())
	}
}

// kept is each key under a prefix, what stands in it and how long it stays.
func (d *differential) kept(prefix string) map[string]string {
	d.t.Helper()
	ctx, all := d.t.Context(), map[string]string{}
	for _, key := range keysOf(d.t, d.client) {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		var what any
		switch kind, _, _ := strings.Cut(strings.TrimPrefix(name, ":"), ":"); kind {
		case "record", "vote", "count", "tomb":
			what = d.client.Get(ctx, key).Val()
		case "read", "forced", "line":
			what = d.client.HGetAll(ctx, key).Val()
		default:
			what = d.client.ZRangeWithScores(ctx, key, 0, -1).Val()
		}
		all[name] = fmt.Sprint(what, " for ", d.client.PTTL(ctx, key).Val())
	}
	return all
}

func (d *differential) note(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

func (d *differential) story() string { return strings.Join(d.log[max(0, len(d.log)-20):], "\n") }
