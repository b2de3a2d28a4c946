package redisstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// TestUsualPartChangesNothing puts the same random calls to the scripts with and
// without their usual part, each under a prefix of its own on a server whose
// clock stands still, and compares every reply and all that is kept.
func TestUsualPartChangesNothing(t *testing.T) {
	n := seed(t)
	d := newDifferential(t, rand.New(rand.NewPCG(n, 0)))
	for range 1500 {
		d.time()
		verb, r := d.draw()
		whole := d.ask(0, verb, r)
		usual := d.ask(1, verb, r)
		d.note("%s %+v: %v", verb, r, whole)
		if !reflect.DeepEqual(whole, usual) {
			t.Fatalf("%v without the usual part, %v with it: seed %d\n%s", whole, usual, n, d.story())
		}
		d.compare(n)
	}
	for verb, seen := range d.usual {
		if seen < 30 {
			t.Errorf("only %d calls to %s were usual", seen, verb)
		}
	}
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
	usual   map[string]int
	log     []string
}

func newDifferential(t *testing.T, random *rand.Rand) *differential {
	node, clock := stoppedRedis(t)
	c := client(t, node.Addr)
	d := &differential{
		t: t, client: c, clock: clock, rand: random, tokens: map[string]int64{}, usual: map[string]int{},
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

// time lets some time pass, mostly less than a vote's.
func (d *differential) time() {
	switch d.rand.IntN(30) {
	case 0:
		d.clock.Advance(time.Duration(d.rand.IntN(400)) * time.Second)
	case 1:
		d.clock.Advance(-time.Duration(d.rand.IntN(100)) * time.Second)
	case 2, 3, 4:
		d.clock.Advance(time.Duration(d.rand.IntN(400)) * time.Millisecond)
	default:
		d.clock.Advance(time.Duration(d.rand.IntN(1000)) * time.Microsecond)
	}
}

// draw is a request, of a kind that is usual more often than not.
func (d *differential) draw() (string, quorum.Request) {
	r := ask(fmt.Sprintf("name\n %d", d.rand.IntN(3)), d.owners[d.rand.IntN(len(d.owners))])
	r.TTL = time.Duration(1+d.rand.IntN(400)) * time.Millisecond
	r.Owner.Attempt = uint32(1 + d.rand.IntN(2))
	r.Label = "of\n a label "
	switch last := d.tokens[r.Key]; d.rand.IntN(8) {
	case 0:
		r.Floor = last + int64(d.rand.IntN(4)) - 1
	case 1:
		r.Floor = last + 1<<26 - int64(d.rand.IntN(100))*1000
	}
	r.Floor = max(r.Floor, 0)
	switch d.rand.IntN(5) {
	case 0, 1:
		return "extend", r
	case 2:
		r.Entomb = d.rand.IntN(6) == 0
		return "release", r
	}
	if d.rand.IntN(12) == 0 {
		r.Mode = quorum.ModeShared
	}
	if d.rand.IntN(10) == 0 {
		r.Kind, r.Floor = quorum.Kind(1+d.rand.IntN(3)), r.Floor+1
	}
	r.Wait = quorum.WaitKind(d.rand.IntN(4))
	if r.Wait == quorum.WaitQueue && d.rand.IntN(4) > 0 {
		r.Wait = quorum.WaitTake
	}
	if r.Wait == quorum.WaitTake || r.Wait == quorum.WaitQueue {
		r.Ticket, r.Keep, r.Claim = int64(d.rand.IntN(3)), time.Second, r.TTL/2+time.Microsecond
	}
	return "acquire", r
}

// ask calls one side's script for a request. An error's text is the answer.
func (d *differential) ask(side int, verb string, r quorum.Request) any {
	d.t.Helper()
	keys, packed := redisstore.Packed(d.stores[side], verb, r)
	reply, err := d.client.Eval(d.t.Context(), d.scripts[side][verb], keys, packed).Result()
	if err != nil && !strings.HasPrefix(err.Error(), "INVALID") {
		d.t.Fatalf("%s: %v\n%s", verb, err, d.story())
	}
	if errors.Is(err, redis.Nil) || err != nil {
		return err.Error()
	}
	if text, ok := reply.(string); ok && side == 1 {
		var token int64
		if _, err := fmt.Sscan(text, &token); err == nil {
			d.tokens[r.Key] = token
		}
		d.usual[verb]++
	}
	if reply == int64(1) && side == 1 {
		d.usual[verb]++
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
