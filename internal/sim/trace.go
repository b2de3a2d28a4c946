package sim

import (
	"strconv"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// What says what an [Event] of a trace is.
type What uint8

// The events. What each of them fills of Event stands beside it; At is always
// filled, and what does not apply is -1 or zero.
const (
	Sent       What = iota // a request leaves: Client, Lease, Store, Msg, Verb, Kind, Wait, Attempt, Floor
	Lost                   // a request (or, with Answer, its answer) is lost: Client, Store, Msg
	Carried                // a request was carried out: Store, Client, Lease, Msg, Verb, Kind, Wait, Attempt, Outcome, Token, Until
	Answered               // an answer arrives: Client, Lease, Store, Msg, Verb, Outcome, Token
	TimedOut               // a call outlived its limit: Client, Lease, Store, Msg, Verb
	Asks                   // an acquisition begins: Client, Lease, Key, Mode
	Retries                // an attempt failed, and another will follow: Client, Lease, Failure
	Fails                  // an acquisition failed: Client, Lease, Failure
	Acquires               // held from now on: Client, Lease, Key, Mode, Token, Until
	Renews                 // Client, Lease, Until
	Misses                 // a renewal found too few stores: Client, Lease
	Loses                  // the client knows that the lease is over: Client, Lease, Reason
	GivesBack              // the client gives a lease back: Client, Lease
	IsFree                 // every store has answered a release or failed once: Client, Lease
	Writes                 // a write leaves: Client, Lease, Token, Msg
	WriteDone              // the resource took it: Client, Lease, Token, Msg; Fenced says which resource
	WriteFails             // the fence refused it: Client, Lease, Token, Msg
	FaultOn                // Fault
	FaultOff               // Fault
	Refills                // a store leaves quarantine: Client, Store
	Closes                 // a locker is closed: Client
	Calms                  // all faults are over
	Breaks                 // a checker saw what must not be: Violation is its index
	Reckons                // a client's clock changes its rate, and the end of belief with it: Client, Lease, Key, Token, Until
	Promotes               // a reader's lease is a writer's from now on: Client, Lease, Key, Mode, Token, Until
	Demotes                // a writer's lease is a reader's from now on: Client, Lease, Key, Mode, Token, Until
	Stays                  // a change of mode failed: Client, Lease, Failure
	Hears                  // what a store told reaches a lease: Client, Lease, Store, Key, Wake, Token
)

var whatNames = [...]string{
	"sent", "lost", "carried out", "answered", "timed out", "asks", "retries", "fails", "acquires", "renews", "misses",
	"loses", "gives back", "is free", "writes", "write done", "write refused", "fault begins", "fault ends", "refills",
	"closes", "calm", "breaks", "reckons", "promotes", "demotes", "stays", "hears",
}

func (w What) String() string { return whatNames[w] }

// Event is one thing that happened. A message is sent, carried out (or lost)
// and answered (or lost, or timed out) under one Msg; a doubled request is
// carried out twice.
type Event struct {
	At        time.Duration // true time since the start
	What      What
	Client    int
	Store     int
	Lease     int // the acquisition, from 1 in the order of their beginning; 0 for a refill
	Msg       uint64
	Key       int
	Mode      core.Mode
	Verb      core.Verb
	Kind      core.Kind
	Attempt   uint32
	Outcome   core.Outcome
	Token     int64
	Floor     int64
	Until     time.Duration // true time of the end of a vote or of a client's belief
	Failure   core.Failure
	Reason    core.Reason
	Wake      core.WakeKind
	Wait      core.WaitKind // of Sent and Carried: how the request waits
	Answer    bool          // of Lost: the answer, not the request
	Late      bool          // of Answered: nobody waited any more
	Fenced    bool
	Fault     int
	Violation int
}

// Trace is what happened, in order.
type Trace struct {
	Config Config // as it was run, defaults filled in
	Plan   Plan
	Names  []string // of the clients; nil is "client 0" and so on
	Events []Event
}

// Who is what a client is called.
func (t *Trace) Who(client int) string {
	if client >= 0 && client < len(t.Names) {
		return t.Names[client]
	}
	return "client " + strconv.Itoa(client)
}

// emit adds to the hash, and to the trace if one is kept.
func (w *World) emit(e Event) {
	e.At = w.now
	h := w.hash
	for _, x := range [...]uint64{
		uint64(e.At), uint64(e.What) | uint64(e.Outcome)<<8 | uint64(e.Verb)<<16 | uint64(e.Kind)<<24 | uint64(uint32(e.Client))<<32,
		uint64(e.Token), uint64(uint32(e.Store)) | uint64(uint32(e.Lease))<<32, e.Msg, uint64(e.Until),
	} {
		h = (h ^ x) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	w.hash = h
	if w.watch != nil {
		w.watch(e)
	}
	if w.trace != nil {
		w.trace.Events = append(w.trace.Events, e)
	}
}
