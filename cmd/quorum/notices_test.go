package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
)

func TestF167FailedRenewalsAreToldSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		n := newNotices(&out, "")
		for range 60 {
			n.observe(quorum.Event{Kind: quorum.EventRenewFailed, Key: "job", Err: errors.New("down")})
			time.Sleep(time.Second)
		}
		if lines := strings.Count(out.String(), "\n"); lines != 6 {
			t.Errorf("a minute of failing renewals took %d lines, want 6:\n%s", lines, &out)
		}
		n.observe(quorum.Event{Kind: quorum.EventRenewed})
		n.observe(quorum.Event{Kind: quorum.EventRenewFailed, Key: "job", Err: errors.New("down again")})
		if !strings.Contains(out.String(), "down again") {
			t.Error("a failure after a success was not told")
		}
	})
}

// What the library tells as an event and again as the error of Close is one line a
// store. What else failed is told as it is.
func TestStoreThatWasNotToldTakesOneLine(t *testing.T) {
	var out bytes.Buffer
	n := newNotices(&out, "")
	down := errors.New("down")
	n.observe(quorum.Event{Kind: quorum.EventReleaseFail, Key: "job", Store: "a", Err: down})
	n.tellLeft(nil)
	n.tellLeft(errors.Join(context.DeadlineExceeded, &quorum.OpError{Op: "close", Key: "job", Need: 2, Votes: []quorum.Vote{
		{Store: "a", Outcome: quorum.OutcomeUnknown, Err: down},
		{Store: "b", Outcome: quorum.OutcomeGranted},
		{Store: "c", Outcome: quorum.OutcomeUndelivered, Err: down},
	}}))
	n.tellLeft(errors.Join(down))
	want := `quorum: "job" could not be released on store a, which frees it at the end of its TTL: down
quorum: "job" could not be released on store c, which frees it at the end of its TTL: down
quorum: down
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
