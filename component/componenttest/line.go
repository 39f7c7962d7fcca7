package componenttest

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// errCut is the error of all requests of a process that was killed.
var errCut = errors.New("the process was killed")

// cut says where the connection of a process to the API server is cut: before or after its n-th write, or
// after some time. Zero means never.
type cut struct {
	write int
	after bool
	delay time.Duration
}

// line is the connection of one process to the API server.
type line struct {
	at cut

	mu     sync.Mutex
	writes []string
	dead   bool
	// broken is closed when the line is cut, and pending counts the writes that are under way.
	broken  chan struct{}
	pending sync.WaitGroup
}

func newLine(at cut) *line { return &line{at: at, broken: make(chan struct{})} }

// through returns a configuration whose clients use the line.
func (l *line) through(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return wire{l, next} })
	return cfg
}

// wire is a transport on a line.
type wire struct {
	*line
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	turn, ok := w.begin(req)
	if !ok {
		return nil, errCut
	}
	if turn == 0 {
		return w.next.RoundTrip(req)
	}
	defer w.pending.Done()
	if turn == w.at.write && !w.at.after {
		w.sever()
		return nil, errCut
	}
	resp, err := w.next.RoundTrip(req)
	if turn == w.at.write {
		w.sever()
	}
	if w.isDead() {
		if err == nil {
			_ = resp.Body.Close() // nobody hears the answer
		}
		return nil, errCut
	}
	return resp, err
}

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (w wire) WrappedRoundTripper() http.RoundTripper { return w.next }

// begin counts a request. turn is its number among the writes, and zero for others.
func (l *line) begin(req *http.Request) (turn int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return 0, false
	}
	if !isWrite(req) {
		return 0, true
	}
	l.writes = append(l.writes, req.Method+" "+req.URL.Path)
	l.pending.Add(1)
	return len(l.writes), true
}

func (l *line) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		l.dead = true
		close(l.broken)
	}
}

func (l *line) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// sent are the writes so far.
func (l *line) sent() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

// isWrite reports whether a request changes a component or a dependent.
func isWrite(req *http.Request) bool {
	path := req.URL.Path
	return req.Method != http.MethodGet && !strings.Contains(path, "/events") && !strings.Contains(path, "/leases") &&
		!strings.HasSuffix(path, "reviews")
}
