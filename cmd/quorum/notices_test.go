package main

import (
	"bytes"
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
