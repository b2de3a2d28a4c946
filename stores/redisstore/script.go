package redisstore

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorum"
)

// verb is one script.
type verb int

const (
	acquire verb = iota
	extend
	release
	readStep
	raise
	inspect
	serves
	serve
	batch
	verbs         // how many there are
	watch = verbs // is no script
)

func (v verb) String() string {
	return [...]string{"acquire", "extend", "release", "read step", "raise", "inspect", "serves", "serve", "batch", "watch"}[v]
}

//go:embed lua/start.lua
var startLua string

//go:embed lua/usual.lua
var usualLua string

//go:embed lua/usual_acquire.lua
var usualAcquireLua string

//go:embed lua/usual_extend.lua
var usualExtendLua string

//go:embed lua/usual_release.lua
var usualReleaseLua string

//go:embed lua/record.lua
var recordLua string

//go:embed lua/name.lua
var nameLua string

//go:embed lua/queue.lua
var queueLua string

//go:embed lua/reply.lua
var replyLua string

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/extend.lua
var extendLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/step.lua
var stepLua string

//go:embed lua/raise.lua
var raiseLua string

//go:embed lua/inspect.lua
var inspectLua string

//go:embed lua/serves.lua
var servesLua string

//go:embed lua/serve.lua
var serveLua string

//go:embed lua/batch.lua
var batchLua string

// bodies are the scripts without the literals that stand in front.
var bodies = [verbs]string{
	acquire:  startLua + alone(usualAcquireLua, "") + recordLua + nameLua + queueLua + replyLua + acquireLua,
	extend:   startLua + alone(usualExtendLua, "") + recordLua + nameLua + queueLua + replyLua + extendLua,
	release:  startLua + alone(usualReleaseLua, "call('DEL', KEYS[2]) ") + recordLua + nameLua + queueLua + replyLua + releaseLua,
	readStep: startLua + recordLua + stepLua,
	raise:    startLua + recordLua + raiseLua,
	inspect:  startLua + recordLua + nameLua + inspectLua,
	serves:   startLua + recordLua + servesLua,
	serve:    startLua + recordLua + serveLua,
	batch: startLua + usualLua + "local usual = {}\n" + function("a", usualAcquireLua) + function("e", usualExtendLua) +
		function("r", usualReleaseLua) + batchLua,
}

// alone is the usual part of a verb in front of the whole, and what it leaves to do.
func alone(part, last string) string {
	return usualLua + "if steady then\nlocal k, packed, reply = 2, ARGV[1]\n" + part + "if reply then " + last + "return reply end\nend\n"
}

// function makes the usual part of a verb a function of its letter.
func function(letter, part string) string {
	return "function usual." + letter + "(k, packed)\nlocal reply\n" + part + "return reply\nend\n"
}

// spares says which scripts run in a full memory too: those that keep or free
// what is there, and take next to nothing. An Acquire does not.
var spares = [verbs]bool{extend: true, release: true, readStep: true, raise: true, serve: true}

// family is what all clients with one set have in common.
type family struct {
	set    quorum.Fingerprint
	maxTTL time.Duration
}

// scripts are the texts for one family and one life of a server.
type scripts struct {
	family
	runID   string
	history string      // replication id when they were loaded; empty when not known
	doubted atomic.Bool // the server was a replica since
	text    [verbs]string
	sha     [verbs]any // strings; so they are put into arguments as they are
}

// write writes the scripts for one life of a server. shebang says that the
// server, from 7.0, takes flags in the first line.
func write(f family, runID string, guard, cluster, shebang bool) *scripts {
	s := &scripts{family: f, runID: runID}
	for v := range verbs {
		first := ""
		switch {
		case shebang && spares[v]:
			first = "#!lua flags=allow-oom\n"
		case shebang && (v == inspect || v == serves):
			first = "#!lua flags=no-writes\n"
		case shebang:
			first = "#!lua\n"
		}
		literals := fmt.Sprintf("local RUN, SET, MAXTTL, REST, KEEP, GUARD, CLUSTER, HEAD = '%s', '%v', %d, %d, '%d', %t, %t, '1 %s %v - '\n",
			runID, f.set, micros(f.maxTTL), rest, micros(f.maxTTL)/1000+rest, guard, cluster, runID, f.set)
		s.text[v] = first + literals + bodies[v]
		sum := sha1.Sum([]byte(s.text[v])) // Redis's name for a script, no secret
		s.sha[v] = hex.EncodeToString(sum[:])
	}
	return s
}

// rest is how long a counter is kept beyond MaxTTL, in milliseconds.
const rest = 601_000

// micros rounds up to whole microseconds: a store may give longer, never
// shorter.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
