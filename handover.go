package quorum

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quorumlock/quorum/clock"
)

// handover is a lease on its way to another process.
type handover struct {
	Version int
	Key     string
	Owner   string
	Attempt uint32
	Token   int64
	Mode    Mode
	TTL     time.Duration
	Set     Fingerprint
}

const handoverVersion = 1

// Marshal ends the lease here without telling the stores, and returns what
// another process needs to go on with it by [Locker.Resume]: the lock stays
// taken, for at most its TTL. Release of this lease then does nothing. The bytes
// are a secret, because whoever has them can release the lock; they are text
// without line breaks. Of stores that are bound to this process it returns
// [ErrUnsupported], and the lease stays held.
func (l *Lease) Marshal() ([]byte, error) {
	if l.d.set.Limits().Reach <= ReachProcess {
		return nil, l.fails("marshal", fmt.Errorf("%w: the stores are bound to this process", ErrUnsupported))
	}
	var h handover
	var err error
	l.d.wake() // an end that has passed unnoticed comes first
	l.d.do(func(now clock.Instant) {
		switch {
		case l.cause != nil:
			err = l.cause
			return
		case l.release != nil:
			err = ErrReleased
			return
		case l.m.Changing():
			err = l.fails("marshal", fmt.Errorf("%w: a change of its mode is under way", ErrUnsupported))
			return
		}
		q := l.m.Quorum()
		h = handover{
			Version: handoverVersion, Key: l.Key(), Owner: l.owner().Hex(), Attempt: q.Attempt(), Token: l.token,
			Mode: l.mode, TTL: q.TTL(), Set: l.locker.print,
		}
		l.m.Leave(now)
		l.cause = ErrReleased
		l.answerRelease(nil)
	})
	if err != nil {
		return nil, err
	}
	l.end(ErrReleased)
	return json.Marshal(h)
}

// Resume goes on with a lease that [Lease.Marshal] ended, here or in another
// process: same token, same mode. It asks the stores, and returns a lease only
// if a quorum of them confirms that this owner holds; what the other process
// believed does not count. When too many say otherwise it returns [ErrNotHeld],
// when too few answer [ErrNoQuorum], and it may then be tried again until the
// TTL is over. Options are those of Acquire but for its TTL and Shared, which
// come with the lease; a MinHold does not come along. Nothing keeps two
// processes from resuming the same bytes, and then both hold: hand them to one.
func (l *Locker) Resume(ctx context.Context, data []byte, options ...Option) (*Lease, error) {
	s, err := l.def.with(options, true)
	s.op, s.minHold = "resume", 0
	var h handover
	var id [16]byte
	fails := func(err error) error {
		return &OpError{Op: s.op, Key: h.Key, Need: l.set.rule.Need(), reasons: []error{err}}
	}
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err == nil && (h.Version != handoverVersion || len(h.Owner) != 32 || h.Token < 1 || h.Attempt < 1 || h.Mode > ModeShared) {
		err = fmt.Errorf("version %d, or its contents", h.Version)
	}
	if err == nil {
		_, err = hex.Decode(id[:], []byte(h.Owner))
	}
	switch {
	case err != nil:
		return nil, fails(fmt.Errorf("%w: not what Marshal returned: %v", ErrInvalidOption, err))
	case l.set.Limits().Reach <= ReachProcess:
		return nil, fails(fmt.Errorf("%w: the stores are bound to this process", ErrUnsupported))
	case h.Set != l.print:
		return nil, fails(fmt.Errorf("%w: the lease is of %s and this Locker of %s", ErrMismatch, h.Set, l.print))
	}
	s.mode, s.ttl = h.Mode, h.TTL
	if err = s.check(l.set); err == nil {
		err = checkKey(h.Key, l.set.Limits().MaxKey)
	}
	if err == nil {
		err = alive(ctx)
	}
	if err != nil {
		return nil, fails(err)
	}
	lease, err := l.lease(ctx, h.Key, &s, Owner{ID: id}, false)
	if err != nil {
		return nil, err
	}
	lease.mode = h.Mode
	lease.d.do(func(now clock.Instant) { lease.m.Resume(now, h.Attempt, h.Token) })
	if won, failure := lease.await(ctx); !won {
		return nil, failure
	}
	return lease, nil
}
