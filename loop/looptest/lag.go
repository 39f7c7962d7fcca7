package looptest

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Lag has caches learn of changes late, as that of a busy API server. It works for the Env of a test, by
// [Cluster.Lags], and for a manager: pass Wrap to the Wrap of its rest.Config. The zero value delays nothing.
type Lag struct {
	// Resource is the plural of the kind that is late. Empty means every kind.
	Resource string
	// Delay is how late it is. It must not change while the Lag is in use.
	Delay time.Duration

	mu sync.Mutex
	// held is closed when the watches deliver again; nil while they do.
	held chan struct{}
}

// Hold keeps back every change from now on.
func (l *Lag) Hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(chan struct{})
	}
}

// Release delivers what was kept back. An Env delivers it with its next read or pass.
func (l *Lag) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		close(l.held)
		l.held = nil
	}
}

func (l *Lag) state() (time.Duration, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Delay, l.held
}

func (l *Lag) covers(resource string) bool { return l.Resource == "" || l.Resource == resource }

// Wrap is a transport.WrapperFunc: it delays what watches deliver.
func (l *Lag) Wrap(next http.RoundTripper) http.RoundTripper {
	return transport{next, func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || r.URL.Query().Get("watch") == "" || !l.covers(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]) {
			return resp, err
		}
		late := &lateBody{lag: l, body: resp.Body, arrived: make(chan chunk, 10000), closed: make(chan struct{})}
		go late.receive()
		resp.Body = late
		return resp, nil
	}}
}

// transport is a RoundTripper before another.
type transport struct {
	next http.RoundTripper
	do   func(*http.Request) (*http.Response, error)
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.do(r) }

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// lateBody is the body of a response whose parts are read after the lag.
type lateBody struct {
	lag     *Lag
	body    io.ReadCloser
	arrived chan chunk
	left    []byte
	once    sync.Once
	closed  chan struct{}
}

type chunk struct {
	data []byte
	at   time.Time
	err  error
}

func (b *lateBody) receive() {
	for {
		data := make([]byte, 1<<16)
		n, err := b.body.Read(data)
		b.arrived <- chunk{data[:n], time.Now(), err}
		if err != nil {
			return
		}
	}
}

func (b *lateBody) Read(into []byte) (int, error) {
	if len(b.left) == 0 {
		var c chunk
		select {
		case c = <-b.arrived:
		case <-b.closed:
			return 0, io.EOF
		}
		delay, held := b.lag.state()
		if held == nil {
			held = make(chan struct{})
			close(held)
		}
		for _, until := range []<-chan struct{}{held, after(time.Until(c.at.Add(delay)))} {
			select {
			case <-until:
			case <-b.closed:
				return 0, io.EOF
			}
		}
		if b.left = c.data; c.err != nil {
			return copy(into, b.left), c.err
		}
	}
	n := copy(into, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *lateBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.body.Close()
}

func after(d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	if d <= 0 {
		close(over)
		return over
	}
	time.AfterFunc(d, func() { close(over) })
	return over
}
