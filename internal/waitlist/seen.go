package waitlist

import (
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorum/internal/model"
)

// Seen is what this client saw of queues: for each name the lines, and since
// when each has been as it is. The zero value is ready.
type Seen struct {
	mu    sync.Mutex
	names map[string]map[string]model.Time
}

// mostNames bounds the names whose queues are observed. To forget what was
// seen lets waiters that died stay longer.
const mostNames = 10_000

// See notes the text of a queue, as read just now, and returns the age of each
// line. now may be of any clock, always the same one.
func (s *Seen) See(name, text string, now model.Time) map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.names[name]
	if text == "" {
		delete(s.names, name)
		return nil
	}
	since := map[string]model.Time{}
	for line := range strings.SplitSeq(text, "\n") {
		if at, ok := old[line]; ok && at <= now {
			since[line] = at
		} else {
			since[line] = now
		}
	}
	if s.names == nil || len(s.names) >= mostNames {
		s.names = map[string]map[string]model.Time{}
	}
	s.names[name] = since
	return ages(since, now)
}

// Ages is that of each line of a queue as seen last, nil if nobody stood in it.
func (s *Seen) Ages(name string, now model.Time) map[string]time.Duration {
	s.mu.Lock()
	since := s.names[name] // never changed once it is there
	s.mu.Unlock()
	return ages(since, now)
}

// Has reports whether somebody stood in a queue as seen last.
func (s *Seen) Has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[name] != nil
}

func ages(since map[string]model.Time, now model.Time) map[string]time.Duration {
	if since == nil {
		return nil
	}
	all := make(map[string]time.Duration, len(since))
	for line, at := range since {
		all[line] = max(now.Sub(at), 0)
	}
	return all
}
