package trial

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/stores/redisstore"
)

const maxTTL = 30*time.Second + 5*time.Millisecond // 5 ms, so that no key expires at the very moment of a request

// Run is a server and a model of it that get the same requests at the same
// readings of the clock.
type Run struct {
	// Client reaches the server.
	Client *redis.Client
	// Clock is the server's, which stands still between requests.
	Clock *Clock
	// Back says that the clock may go back.
	Back bool
	// Life is the server's run id.
	Life string
	// Embedded says that the server has no run id of its own: Life is given to
	// the store, and another one from time to time.
	Embedded bool

	t     *testing.T
	store *redisstore.Store
	rand  *rand.Rand
	seed  uint64

	rec    model.Record
	names  map[string]*model.Name
	keep   map[string]time.Time // until when Redis keeps the counter
	owners []quorum.Owner
	last   string // the quarantine before
	log    []string
	ends   map[string]int // how often each outcome was seen
}

// Play puts n random requests and compares the answers, who holds, and the
// record. The environment variable QUORUM_SEED replays a run.
func (r *Run) Play(t *testing.T, n int) {
	r.t, r.seed, r.ends = t, Seed(t), map[string]int{}
	r.rand = rand.New(rand.NewPCG(r.seed, 0))
	r.live(r.Life)
	r.empty()
	for range n {
		r.one()
		r.compareRecord()
	}
	wanted := []string{"granted", "contended", "not held", "quarantined", "mismatch", "undelivered", "ready"}
	for _, outcome := range wanted {
		if r.ends[outcome] == 0 {
			t.Errorf("no request was ever %s: %v", outcome, r.ends)
		}
	}
	t.Logf("outcomes: %v", r.ends)
}

// live makes a store for a life of the server.
func (r *Run) live(life string) {
	var options []redisstore.Option
	if r.Embedded {
		options = append(options, redisstore.RunID(life))
	}
	s, err := redisstore.New("a", r.Client, options...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Life, r.store = life, s
}

// empty is what FLUSHALL leaves.
func (r *Run) empty() {
	r.rec = model.Record{Run: r.Life}
	r.names, r.keep = map[string]*model.Name{}, map[string]time.Time{}
	r.strangers()
}

// strangers draws new owners. A tombstone's key keeps its end when the clock
// goes back, and so outlives the model's; nobody may ask for it again.
func (r *Run) strangers() {
	r.owners = r.owners[:0]
	for range 4 {
		var o quorum.Owner
		for i := range o.ID {
			o.ID[i] = byte(r.rand.Uint32())
		}
		r.owners = append(r.owners, o)
	}
}

func (r *Run) now() model.Time { return model.Time(r.Clock.Now.UnixMicro()) }

// one draws what happens next.
func (r *Run) one() {
	r.time()
	switch r.rand.IntN(40) {
	case 0:
		r.note("SCRIPT FLUSH")
		r.Client.ScriptFlush(r.t.Context())
	case 1:
		if r.rand.IntN(8) == 0 {
			r.note("FLUSHALL")
			r.Client.FlushAll(r.t.Context())
			r.empty()
		}
	case 2:
		if r.Embedded && r.rand.IntN(4) == 0 {
			r.live(fmt.Sprintf("life-%d", r.rand.Uint32()))
			r.note("restart as %s", r.Life)
			r.rec.Restart(r.Life)
		}
	case 3, 4, 5, 6:
		r.record()
	default:
		r.name()
	}
}

// time lets some time pass, mostly less than a vote's.
func (r *Run) time() {
	var d time.Duration
	switch r.rand.IntN(24) {
	default:
		d = time.Duration(r.rand.IntN(40)) * 10 * time.Millisecond
	case 0:
		d = time.Duration(r.rand.IntN(4000)) * 10 * time.Millisecond
	case 1:
		d = time.Duration(r.rand.IntN(800)) * time.Second
	case 2:
		if r.Back && r.rand.IntN(3) == 0 {
			d = -time.Duration(r.rand.IntN(400)) * time.Second
			r.strangers()
			r.expire()
		}
	}
	if d != 0 {
		r.Clock.Advance(d)
		r.note("%v pass", d)
	}
}

// expire makes the server drop the names that it keeps no longer: those that
// are met drop at once, the rest at some time that would differ between runs.
func (r *Run) expire() {
	for key, name := range r.names {
		if name.Known && r.Clock.Now.After(r.keep[key]) {
			*name = model.Name{Tombs: name.Tombs, Forced: name.Forced}
		}
		left := map[string]bool{}
		for _, part := range []string{"vote", "count", "read", "ends", "queue", "stay", "turn", "line"} {
			left[part] = r.Client.Exists(r.t.Context(), "{quorum}:"+part+":"+key).Val() > 0
		}
		// Of a queue, what is over in both may come back with the clock only in
		// the model.
		if !left["queue"] {
			name.Queue = nil
		}
		for i := range name.Queue {
			if !left["turn"] {
				name.Queue[i].Turn = 0
			}
		}
	}
}

func (r *Run) request() quorum.Request {
	q := quorum.Request{MaxTTL: maxTTL, Limit: 5 * time.Second, Set: 0xfeed}
	if r.rand.IntN(50) == 0 && r.rec.Serving > 0 {
		q.Set = 0xbad
	}
	return q
}

// record puts ReadStep or Raise.
func (r *Run) record() {
	q := r.request()
	read, err := r.store.ReadStep(r.t.Context(), q)
	its := model.Apply(&r.rec, nil, coreRequest(core.ReadStep, q), r.now())
	r.outcome("ReadStep", err, its)
	want := quorum.Step{
		Step: its.Step.Step, Base: its.Step.Base, Quarantine: its.Step.Quarantine, Over: its.Step.Over,
		Left: its.Left, Server: read.Server,
	}
	if err == nil && read != want {
		r.differ("ReadStep = %+v, the model has %+v", read, want)
	}
	if r.rand.IntN(2) == 0 || q.Set == 0xbad {
		return
	}
	o := quorum.Raise{Quarantine: read.Quarantine, Step: max(read.Step+int64(r.rand.IntN(3))-1, 0)}
	if r.rand.IntN(5) == 0 {
		o.Quarantine = r.last
	}
	if read.Quarantine != "" {
		r.last = read.Quarantine
	}
	switch r.rand.IntN(8) {
	case 0:
		o.Forgotten = true
	case 1, 2:
		o.Fresh = true
	case 3, 4:
		o.Alone = true
	}
	err = r.store.Raise(r.t.Context(), q, o)
	req := coreRequest(core.Raise, q)
	req.Raise = core.RaiseOrder(o)
	r.note("Raise %+v", o)
	r.outcome("Raise", err, model.Apply(&r.rec, nil, req, r.now()))
}

// name puts one of the three verbs.
func (r *Run) name() {
	q := r.request()
	q.Key = fmt.Sprintf("name-%d", r.rand.IntN(3))
	who := r.rand.IntN(len(r.owners))
	q.Owner = r.owners[who]
	q.Owner.Attempt = uint32(1 + r.rand.IntN(4))
	q.Label = fmt.Sprintf("label of %d", who)
	q.Mode = quorum.Mode(r.rand.IntN(2))
	q.TTL = time.Duration(1+r.rand.IntN(300)) * 100 * time.Millisecond
	name := r.names[q.Key]
	if name == nil {
		name = &model.Name{}
		r.names[q.Key] = name
	}
	if name.Known && r.Clock.Now.After(r.keep[q.Key]) {
		*name = model.Name{Tombs: name.Tombs, Forced: name.Forced}
	}
	name.Keep = 1 << 60 // Redis keeps a counter longer than the model: see one
	if r.rand.IntN(3) == 0 {
		q.Floor = max(name.Counter+int64(r.rand.IntN(6))-2, 0)
	}
	switch r.rand.IntN(60) {
	case 0:
		q.Floor = 1<<53 - 1
	case 1:
		q.Floor = (r.rec.Step + int64(r.rand.IntN(3))) << 26
	}
	verb := core.Acquire
	switch r.rand.IntN(8) {
	case 0, 1:
		verb = core.Extend
	case 2:
		verb = core.Release
		q.Entomb = r.rand.IntN(3) == 0
	default:
		q.Kind = []quorum.Kind{quorum.KindNew, quorum.KindNew, quorum.KindNew, quorum.KindRepair, quorum.KindConvert, quorum.KindForce}[r.rand.IntN(6)]
		if q.Kind == quorum.KindForce && r.rand.IntN(3) != 0 {
			q.Kind = quorum.KindNew
		}
		if q.Kind == quorum.KindRepair && q.Floor == 0 {
			q.Floor = max(name.Counter+int64(r.rand.IntN(4))-1, 1)
		}
	}
	if verb == core.Acquire && q.Kind == quorum.KindNew && r.rand.IntN(2) == 0 {
		r.wait(&q)
	}
	r.note("%v of %s by %d/%d, %v, %v, TTL %v, floor %d, entomb %v, set %v, wait %v, ticket %d, keep %v, claim %v",
		verb, q.Key, who, q.Owner.Attempt, q.Kind, q.Mode, q.TTL, q.Floor, q.Entomb, q.Set, q.Wait, q.Ticket, q.Keep, q.Claim)
	r.ask(verb, q, name)
}

// wait makes a request one of a waiter. Tickets are few, so that some are equal.
func (r *Run) wait(q *quorum.Request) {
	q.Wait = []quorum.WaitKind{quorum.WaitWatch, quorum.WaitTake, quorum.WaitTake, quorum.WaitQueue}[r.rand.IntN(4)]
	if q.Wait == quorum.WaitWatch {
		return
	}
	q.Ticket = int64(r.rand.IntN(5))
	q.Keep = time.Duration(1+r.rand.IntN(600)) * 100 * time.Millisecond
	q.Claim = min(time.Duration(1+r.rand.IntN(20))*100*time.Millisecond, q.TTL)
}
