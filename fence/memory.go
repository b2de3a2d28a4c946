package fence

import (
	"context"
	"sync"
)

// Memory is a guard for resources of one process. It forgets with the process,
// so what it guards must not outlive that. The zero Memory has seen nothing. It
// is safe for concurrent use.
type Memory struct {
	mu   sync.Mutex
	seen map[string]int64
}

var _ Guard = (*Memory)(nil)

// Admit admits a token, see [Guard].
func (m *Memory) Admit(ctx context.Context, name string, token int64) error {
	return m.Write(ctx, name, token, func() error { return nil })
}

// Write calls write if the token is admitted, and keeps everybody else out
// meanwhile: admission and write are one step. The token stays admitted when
// write fails. write must not use m.
func (m *Memory) Write(ctx context.Context, name string, token int64, write func() error) error {
	if err := check(name, token); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if seen := m.seen[name]; token < seen {
		return &StaleError{Name: name, Token: token, Seen: seen}
	}
	if m.seen == nil {
		m.seen = map[string]int64{}
	}
	m.seen[name] = token
	return write()
}
