package operator

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// health serves /livez and /readyz. Unlike controller-runtime's handler it says what is wrong,
// because that is what the reader needs to know. The reasons name kinds and permissions, never
// contents.
type health struct {
	mu    sync.Mutex
	live  map[string]healthz.Checker
	ready map[string]healthz.Checker
	// standby says what a ready process waits for; empty means that it works. It may be nil.
	standby func() string
}

func newHealth() *health {
	return &health{live: map[string]healthz.Checker{}, ready: map[string]healthz.Checker{}}
}

func (h *health) addLive(name string, check healthz.Checker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live[name] = check
}

func (h *health) addReady(name string, check healthz.Checker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready[name] = check
}

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, h.checks("livez"), nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, h.checks("readyz"), h.note) })
	return mux
}

// checks returns those of an endpoint.
func (h *health) checks(endpoint string) map[string]healthz.Checker {
	h.mu.Lock()
	defer h.mu.Unlock()
	if endpoint == "livez" {
		return maps.Clone(h.live)
	}
	return maps.Clone(h.ready)
}

// problem is why the check of a name fails.
type problem struct {
	name string
	err  error
}

// problemsOf returns why checks fail, in the order of their names.
func problemsOf(checks map[string]healthz.Checker, r *http.Request) (problems []problem) {
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if err := checks[name](r); err != nil {
			problems = append(problems, problem{name, err})
		}
	}
	return problems
}

func (h *health) answer(w http.ResponseWriter, r *http.Request, checks map[string]healthz.Checker, note func() string) {
	var problems []string
	for _, p := range problemsOf(checks, r) {
		problems = append(problems, fmt.Sprintf("%s: %v\n", p.name, p.err))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if len(problems) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(strings.Join(problems, "")))
		return
	}
	text := "ok\n"
	if note != nil {
		text += note()
	}
	_, _ = w.Write([]byte(text))
}

// note is what a ready process waits for.
func (h *health) note() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.standby == nil {
		return ""
	}
	return h.standby()
}

// sayStandby has answers include what a process that works on nothing waits for.
func (h *health) sayStandby(what func() string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.standby = what
}

// watched is a controller that knows how long its running passes have taken.
type watched interface {
	// Longest returns the object whose pass has been running for the longest time, and when
	// the pass began. The time is zero if no pass is running.
	Longest() (types.NamespacedName, time.Time)
}

// notStuck returns a check that fails while a pass of c has been running for longer than limit.
func notStuck(kind string, c watched, limit time.Duration) healthz.Checker {
	return func(*http.Request) error {
		key, since := c.Longest()
		if since.IsZero() || time.Since(since) <= limit {
			return nil
		}
		return fmt.Errorf("the pass of %s %s began %s ago and may take %s; it is stuck", kind, key, time.Since(since).Round(time.Second), limit)
	}
}
