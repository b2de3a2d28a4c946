package redisstore

import (
	"context"
	"encoding/hex"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// Letters that the scripts know kinds, modes and ways to wait by.
var (
	kinds = [...]byte{quorum.KindNew: 'n', quorum.KindRepair: 'r', quorum.KindConvert: 'c', quorum.KindForce: 'f'}
	modes = [...]byte{quorum.ModeExclusive: 'w', quorum.ModeShared: 'r'}
	waits = [...]byte{quorum.WaitNone: 'n', quorum.WaitWatch: 'm', quorum.WaitTake: 't', quorum.WaitQueue: 'q'}
)

// call is what a verb of a name sends: the keys that the script reads each
// time, and one packed argument. All of it is cut from one string: a call should
// cost few allocations.
func (s *Store) call(v verb, r *quorum.Request) *call {
	var id [2 * len(r.Owner.ID)]byte
	hex.Encode(id[:], r.Owner.ID[:])
	p := s.part(r.Key)
	var room [512]byte
	b := room[:0]
	var ends [len(call{}.words)]int
	n := 0
	cut := func() { ends[n], n = len(b), n+1 }
	key := func(kind string) {
		b = append(append(append(b, p.tag...), kind...), r.Key...)
		cut()
	}
	key(":vote:")
	key(":count:")
	if v == acquire || v == release && r.Entomb {
		b = append(append(append(append(append(b, p.tag...), ":tomb:"...), id[:]...), ':'), r.Key...)
		cut()
	}
	if v != inspect {
		channel := ""
		if queued(r) {
			channel = s.hub.channelOf(p.tag + ":wake:" + r.Key)
		}
		if v == acquire {
			b = append(b, kinds[r.Kind], modes[r.Mode], waits[r.Wait])
		}
		b = pack(append(b, id[:]...), v, r, channel)
		cut()
	}
	c := spare.Get().(*call)
	c.verb, c.record, c.n = v, p.record, n
	c.proves = s.replicas > 0 && (v == acquire || v == extend)
	text, from := string(b), 0
	for i, to := range ends[:n] {
		c.words[i], from = text[from:to], to
	}
	if s.cluster == nil { // where names lie in many slots, few of them would share a script
		c.letter = letter(v, r)
	}
	return c
}

// spare calls are empty, and used again once nobody knows them: those that were begun and shared
// a script, so that nothing of them was given to the client.
var spare = sync.Pool{New: func() any { return &call{} }}

// command is the call's own: the keys, of which the record's is the first, and
// what is packed.
func (c *call) command(ctx context.Context) *redis.Cmd {
	keys := c.n
	if c.verb == inspect { // packs nothing
		keys++
	}
	c.args = [len(c.args)]any{"evalsha", c.at.sha[c.verb], counts[keys], c.record}
	for i := range c.n {
		c.args[4+i] = &c.words[i]
	}
	c.cmd = *redis.NewCmd(ctx, c.args[:4+c.n]...) // a copy, so that call and command are one allocation
	return &c.cmd
}

// counts are the numbers of keys, as they are sent.
var counts = [...]any{"0", "1", "2", "3", "4"}

// pack appends what a verb needs beside the keys and the owner's id. channel is
// where a waiter is told its turn.
func pack(b []byte, v verb, r *quorum.Request, channel string) []byte {
	number := func(n int64) { b = strconv.AppendInt(append(b, ' '), n, 10) }
	number(int64(r.Owner.Attempt))
	if v == release {
		if r.Entomb {
			number(max((micros(r.MaxTTL+r.Limit)+999)/1000, 1))
		} else {
			number(0)
		}
		return b
	}
	number(micros(r.TTL))
	number(r.Floor)
	if v == acquire {
		if queued(r) {
			number(r.Ticket)
			number(micros(r.Keep))
			number(micros(r.Claim))
			b = append(append(b, ' '), channel...)
		}
		b = append(append(b, '\n'), r.Label...)
	}
	return b
}

// queued reports whether a request stands in line.
func queued(r *quorum.Request) bool { return r.Wait == quorum.WaitTake || r.Wait == quorum.WaitQueue }
