package storetest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/modelstore"
)

// warp is the model with a mistake. The functions run before the model sees a
// request, and may change the request or what the store keeps.
type warp struct {
	*modelstore.Store
	at      *reference
	acquire func(at *reference, r *quorum.Request)
	extend  func(at *reference, r *quorum.Request) error
	raise   func(at *reference, o *quorum.Raise)
	raised  func(at *reference)
	inspect func(s *quorum.State)
	serve   func(at *reference, from, to *[]quorum.Fingerprint)
	restart func(at *reference) // instead of the one that a sound store makes
}

func (w *warp) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if w.acquire != nil {
		w.acquire(w.at, &r)
	}
	return w.Store.Acquire(ctx, r)
}

func (w *warp) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if w.extend != nil {
		if err := w.extend(w.at, &r); err != nil {
			return quorum.Grant{}, err
		}
	}
	return w.Store.Extend(ctx, r)
}

func (w *warp) Raise(ctx context.Context, r quorum.Request, o quorum.Raise) error {
	if w.raise != nil {
		w.raise(w.at, &o)
	}
	err := w.Store.Raise(ctx, r, o)
	if w.raised != nil {
		w.raised(w.at)
	}
	return err
}

func (w *warp) Serve(ctx context.Context, r quorum.Request, from, to []quorum.Fingerprint) error {
	if w.serve != nil {
		w.serve(w.at, &from, &to)
	}
	return w.Store.Serve(ctx, r, from, to)
}

func (w *warp) Inspect(ctx context.Context, r quorum.Request) (quorum.State, error) {
	s, err := w.Store.Inspect(ctx, r)
	if w.inspect != nil {
		w.inspect(&s)
	}
	return s, err
}

// restart forgets everything.
func (r *reference) restart() {
	life := "run at " + strconv.FormatInt(int64(r.now), 10)
	r.rec = model.Record{}
	r.rec.Restart(life)
	r.names = map[string]*model.Name{}
}

// warped returns a factory of models on a clock of their own.
func warped(spoil func(w *warp)) Factory {
	var newest *warp
	return Factory{
		New: func(*testing.T) quorum.Store {
			at, s := newReference(time.Unix(1_800_000_000, 0))
			newest = &warp{Store: s.(*modelstore.Store), at: at, restart: (*reference).restart}
			spoil(newest)
			return newest
		},
		Second:  func(_ *testing.T, first quorum.Store) quorum.Store { return first },
		Advance: func(d time.Duration) { newest.at.advance(d) },
		Restart: func(*testing.T, quorum.Store) { newest.restart(newest.at) },
	}
}

// The suite must pass the model that it compares every store with.
func TestModelKeepsTheContract(t *testing.T) {
	Run(t, warped(func(*warp) {}))
}

// warps are mistakes that only a store with readers or with quarantine can
// make, each with the check that must find it.
var warps = []struct {
	name, check string
	spoil       func(w *warp)
}{
	{"a writer gets in beside readers", "shared/writer is refused beside readers", func(w *warp) {
		w.acquire = func(_ *reference, r *quorum.Request) {
			if r.Mode == quorum.ModeExclusive && r.Kind == quorum.KindNew {
				r.Kind = quorum.KindForce
			}
		}
	}},
	{"a reader has the token of the writer before", "shared/reader's token is above the writer's before", func(w *warp) {
		w.acquire = func(at *reference, r *quorum.Request) {
			if n := at.names[r.Key]; n != nil {
				n.Writer = false
			}
		}
	}},
	{"readers share one end", "shared/each reader ends by itself", func(w *warp) {
		w.acquire = func(at *reference, r *quorum.Request) {
			if n := at.names[r.Key]; n != nil && r.Mode == quorum.ModeShared {
				for i := range n.Votes {
					n.Votes[i].Until = at.now.Add(r.TTL)
				}
			}
		}
	}},
	{"a promotion pushes readers out", "convert/promotion beside another reader is refused", func(w *warp) {
		w.acquire = func(_ *reference, r *quorum.Request) {
			if r.Kind == quorum.KindConvert && r.Mode == quorum.ModeExclusive {
				r.Kind = quorum.KindForce
			}
		}
	}},
	{"a demotion counts on", "convert/demotion keeps its token where the floor is lower", func(w *warp) {
		w.acquire = func(at *reference, r *quorum.Request) {
			if r.Kind == quorum.KindConvert && r.Mode == quorum.ModeShared {
				r.Floor = at.names[r.Key].Counter + 1
			}
		}
	}},
	{"a removed owner is not told", "force/removed owner is told who", func(w *warp) {
		w.extend = func(at *reference, r *quorum.Request) error {
			at.names[r.Key].Forced = nil
			return nil
		}
	}},
	{"quarantine is not kept", "quarantine/no kind of new vote", func(w *warp) {
		w.acquire = func(at *reference, _ *quorum.Request) { at.rec.Standing = model.Voting }
	}},
	{"quarantine is for holders too", "quarantine/extend goes on", func(w *warp) {
		w.extend = func(at *reference, _ *quorum.Request) error {
			if at.rec.Standing == model.Quarantined {
				return &quorum.RefusedError{Outcome: quorum.OutcomeQuarantined}
			}
			return nil
		}
	}},
	{"quarantine ends when somebody says so", "quarantine/no leaving before its time", func(w *warp) {
		w.raise = func(at *reference, o *quorum.Raise) {
			if o.Step > 0 {
				at.rec.End = at.now
				o.Quarantine = at.rec.Quarantine()
			}
		}
	}},
	{"a late raise counts", "leaving/raise meant for an earlier quarantine is refused", func(w *warp) {
		w.raise = func(at *reference, o *quorum.Raise) { o.Quarantine = at.rec.Quarantine() }
	}},
	{"a raise lifts only fresh names", "leaving/raised store votes above the step", func(w *warp) {
		w.raised = func(at *reference) { at.rec.Base = 0 }
	}},
	{"a restart is not noticed", "leaving/restarted store does not vote", func(w *warp) {
		w.restart = func(at *reference) {
			rec := at.rec
			at.restart()
			at.rec = rec
		}
	}},
	{"a second restart is taken for the first", "leaving/two restarts are two quarantines", func(w *warp) {
		w.restart = func(at *reference) {
			if at.rec.Standing != model.Quarantined {
				at.restart()
			}
		}
	}},
	{"a vote outlives MaxTTL", "request/TTL beyond MaxTTL is refused", func(w *warp) {
		w.acquire = func(_ *reference, r *quorum.Request) { r.MaxTTL = 24 * time.Hour }
	}},
	{"inspect shows the secret", "inspect/hides the owner", func(w *warp) {
		var last quorum.Owner
		w.acquire = func(_ *reference, r *quorum.Request) { last = r.Owner }
		w.inspect = func(s *quorum.State) {
			for i := range s.Holders {
				s.Holders[i].Owner = last.Hex()
			}
		}
	}},
	{"a move asks nobody what is served", "sets/change from another set is refused", func(w *warp) {
		w.serve = func(at *reference, from, _ *[]quorum.Fingerprint) { *from = (*from)[:0:0]; at.rec.Serving = 0 }
	}},
	{"a move keeps what is left", "sets/one that is left is a mismatch", func(w *warp) {
		w.serve = func(_ *reference, from, to *[]quorum.Fingerprint) {
			if len(*to) == 1 {
				*to = []quorum.Fingerprint{(*from)[0], (*to)[0]}
			}
		}
	}},
	{"a move is made once only", "sets/change that was made is done", func(w *warp) {
		w.serve = func(at *reference, from, to *[]quorum.Fingerprint) {
			if len(*to) == int(at.rec.Serving) && uint64((*to)[0]) == at.rec.Serves[0] {
				*to = nil
			}
		}
	}},
	{"a move ends a quarantine", "sets/quarantine outlives the change", func(w *warp) {
		w.serve = func(at *reference, _, _ *[]quorum.Fingerprint) { at.rec.Standing = model.Voting }
	}},
	{"a move forgets the votes", "sets/votes and tokens outlive the change", func(w *warp) {
		w.serve = func(at *reference, _, _ *[]quorum.Fingerprint) { clear(at.names) }
	}},
	{"an extend lets a reader's time pass", "model/random requests while votes end", func(w *warp) {
		w.extend = func(at *reference, r *quorum.Request) error {
			r.TTL /= 2
			return nil
		}
	}},
	{"a turn is a vote", "queue/a turn is not a vote", func(w *warp) {
		w.acquire = func(_ *reference, r *quorum.Request) {
			if r.Wait == quorum.WaitQueue {
				r.Wait = quorum.WaitTake
			}
		}
	}},
	{"a poller passes the queue", "queue/who does not wait passes nobody", func(w *warp) {
		w.acquire = func(at *reference, r *quorum.Request) {
			if n := at.names[r.Key]; n != nil && r.Wait == quorum.WaitNone {
				n.Queue = nil
			}
		}
	}},
	{"every store gives tickets of its own", "queue/an older waiter displaces a younger head", func(w *warp) {
		w.acquire = func(at *reference, r *quorum.Request) {
			if r.Ticket > 0 {
				at.now++
				r.Ticket = int64(at.now)
			}
		}
	}},
	{"a waiter keeps the vote of an earlier attempt", "queue/an earlier attempt's vote is given up", func(w *warp) {
		w.acquire = func(at *reference, r *quorum.Request) {
			if n := at.names[r.Key]; n != nil && r.Wait == quorum.WaitQueue && len(n.Votes) > 0 && n.Votes[0].Owner.ID == core.ID(r.Owner.ID) {
				r.Owner.Attempt = n.Votes[0].Owner.Attempt
			}
		}
	}},
	{"turns have no end", "queue/a turn that nobody takes passes on", func(w *warp) {
		w.acquire = func(at *reference, r *quorum.Request) {
			if n := at.names[r.Key]; n != nil {
				for i := range n.Queue {
					if e := &n.Queue[i]; e.Turn > 0 {
						e.Turn = at.now.Add(e.Claim)
					}
				}
			}
		}
	}},
	{"a reader passes a writer who waits", "queue/a newer reader does not pass a writer", func(w *warp) {
		w.acquire = func(at *reference, r *quorum.Request) {
			if n := at.names[r.Key]; n != nil && r.Mode == quorum.ModeShared {
				n.Queue = nil
			}
		}
	}},
	{"one request in twenty is forced", "model/random requests of writers", func(w *warp) {
		n := 0
		w.acquire = func(_ *reference, r *quorum.Request) {
			if n++; n%20 == 0 {
				r.Kind = quorum.KindForce
			}
		}
	}},
}

func TestR56WarpedModelsFail(t *testing.T) {
	for _, w := range warps {
		t.Run(w.name, func(t *testing.T) {
			f := warped(w.spoil)
			f.Seed = 1 // the same requests each time
			failures, skipped := Examine(t, f, w.check)
			if len(failures) == 0 {
				t.Fatalf("the check %q passes although %s (skipped: %q)", w.check, w.name, skipped)
			}
			if !strings.HasPrefix(failures[0], "check_") && !strings.Contains(failures[0], "Factory.Seed") {
				t.Errorf("the check fails before it begins: %s", failures[0])
			}
			t.Log(failures[0])
		})
	}
}

// TestFieldCasesAreChecked names the checks that stand for field cases. A
// store that passes the suite passes these.
func TestFieldCasesAreChecked(t *testing.T) {
	for _, f := range []struct{ name, check string }{
		{"F004ReleaseAfterExpiry", "release/after expiry leaves the next holder"},
		{"F005ExtendAfterTakeOver", "extend/expired vote is none after another owner came and went"},
		{"F017ReleaseSentAgain", "release/second time after the next holder came"},
		{"F020OwnersThatAreAlike", "request/owner of any bytes"},
		{"F035ReaderWithAShorterTTL", "shared/each reader ends by itself"},
		{"F037TwoHandlesOfOneSession", "handle/two handles exclude each other"},
		{"F038NamesWithOneChecksum", "key/alike checksums do not meet"},
		{"F136ExtendNeverShortens", "extend/never shortens"},
		{"F161WhoHoldsIt", "inspect/shows the holder"},
		{"F173NamesThatArePaths", "key/braces and slashes are only letters"},
		{"F175NamesOfEveryLength", "key/every length"},
		{"F175NameTooLong", "key/too long is refused"},
		{"F175NameEmpty", "key/empty is refused"},
		{"F176NamesThatAreAlike", "key/alike names do not meet"},
		{"F178NamesWithBraces", "key/braces and slashes are only letters"},
	} {
		t.Run(f.name, func(t *testing.T) {
			failures, skipped := Examine(t, warped(func(*warp) {}), f.check)
			if len(failures) > 0 || skipped != "" {
				t.Errorf("%q: %q %s", f.check, failures, skipped)
			}
		})
	}
}
