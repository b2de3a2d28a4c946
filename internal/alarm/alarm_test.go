package alarm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum/internal/alarm"
)

func TestAlarmEndsEachCallAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarm.Alarm
		base := context.WithValue(t.Context(), ctxKey{}, "v")
		first := a.Set(base, time.Second)
		if first.Value(ctxKey{}) != "v" {
			t.Error("the values of the base are lost")
		}
		if end, ok := first.Deadline(); !ok || time.Until(end) != time.Second {
			t.Errorf("deadline %v %v", end, ok)
		}
		done := first.Done()
		time.Sleep(time.Second - 1)
		if first.Err() != nil {
			t.Error("over before its limit")
		}
		time.Sleep(time.Nanosecond)
		<-done
		if err := first.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its limit: %v", err)
		}
		a.Stop()

		// The second is not ended by the first one's timer, nor the third, whose
		// limit is shorter, kept waiting by the second's.
		second := a.Set(base, time.Minute)
		_ = second.Done()
		a.Stop()
		if err := second.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
		<-second.Done()
		third := a.Set(base, time.Second)
		start := time.Now()
		<-third.Done()
		if took := time.Since(start); took != time.Second {
			t.Errorf("the third ended after %v", took)
		}
		a.Stop()
		if !errors.Is(first.Err(), context.DeadlineExceeded) {
			t.Error("the first changed its mind")
		}
	})
}

// Nobody asked for Done, so that no timer runs: Err knows all the same.
func TestAlarmWithoutATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarm.Alarm
		ctx := a.Set(t.Context(), time.Second)
		time.Sleep(time.Second)
		if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its limit: %v", err)
		}
		<-ctx.Done()
	})
}

// A context derived from a call's ends with it.
func TestAlarmEndsWhatIsDerived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarm.Alarm
		inner, cancel := context.WithTimeout(a.Set(t.Context(), time.Second), time.Hour)
		defer cancel()
		<-inner.Done()
		if err := inner.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("derived: %v", err)
		}
	})
}

type ctxKey struct{}
