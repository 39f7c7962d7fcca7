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
	if !isWrite(req) {
		if w.isDead() {
			return nil, errCut
		}
		return w.next.RoundTrip(req)
	}
	var resp *http.Response
	err := w.write(req.Method+" "+req.URL.Path, func() (err error) {
		resp, err = w.next.RoundTrip(req) //nolint:bodyclose // the caller does, or the line below
		return err
	})
	if err != nil && resp != nil {
		_ = resp.Body.Close() // nobody hears the answer
		resp = nil
	}
	return resp, err
}

// write makes a call that changes something, unless the line is cut before that. If it is cut after that, there
// is no answer.
func (l *line) write(what string, call func() error) error {
	turn, ok := l.begin(what)
	if !ok {
		return errCut
	}
	defer l.pending.Done()
	if turn == l.at.write && !l.at.after {
		l.sever()
		return errCut
	}
	err := call()
	if turn == l.at.write {
		l.sever()
	}
	if l.isDead() {
		return errCut
	}
	return err
}

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (w wire) WrappedRoundTripper() http.RoundTripper { return w.next }

// begin counts a write. turn is its number.
func (l *line) begin(what string) (turn int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return 0, false
	}
	l.writes = append(l.writes, what)
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

// Process is one process of the operator of a [Sweep], which may be killed.
type Process struct {
	// Namespace is that of the run.
	Namespace string

	line *line
}

// Call makes a call of an external API that changes something. It counts as a write, before and after which the
// process can be killed; what names it. A process that was killed calls nobody.
func (p *Process) Call(what string, f func() error) error { return p.line.write(what, f) }

// isWrite reports whether a request changes a component or a dependent.
func isWrite(req *http.Request) bool {
	path := req.URL.Path
	return req.Method != http.MethodGet && !strings.Contains(path, "/events") && !strings.Contains(path, "/leases") &&
		!strings.HasSuffix(path, "reviews")
}
