package modelstore

import (
	"context"
	"sync"
	"time"
)

// Background does a store's cleaning, one round at a time. The zero value is
// ready.
type Background struct {
	mu     sync.Mutex
	cancel context.CancelFunc // of the round under way
	done   chan struct{}      // closed when it is over
	closed bool
}

// Start has a round run for limit at most, unless one is under way or the
// Background is closed.
func (b *Background) Start(limit time.Duration, round func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.cancel != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	done := make(chan struct{})
	b.cancel, b.done = cancel, done
	go func() {
		defer close(done)
		defer cancel()
		round(ctx)
		b.mu.Lock()
		b.cancel = nil
		b.mu.Unlock()
	}()
}

// Close ends the round under way, waits for it, and lets no other begin.
func (b *Background) Close() {
	b.mu.Lock()
	b.closed = true
	if b.cancel != nil {
		b.cancel()
	}
	done := b.done
	b.mu.Unlock()
	if done != nil {
		<-done
	}
}
