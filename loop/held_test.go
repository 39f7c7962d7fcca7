package loop_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// lag delays what watches of one resource deliver.
type lag struct {
	resource string

	mu    sync.Mutex
	delay time.Duration
	// held is closed when the watches deliver again; nil while they do.
	held chan struct{}
}

// hold keeps back everything that the API server sends from now on.
func (l *lag) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(chan struct{})
	}
}

// release delivers what was kept back.
func (l *lag) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		close(l.held)
		l.held = nil
	}
}

func (l *lag) state() (time.Duration, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay, l.held
}

// wrap is a transport.WrapperFunc.
func (l *lag) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || r.URL.Query().Get("watch") == "" || !strings.HasSuffix(r.URL.Path, "/"+l.resource) {
			return resp, err
		}
		late := &lateBody{lag: l, body: resp.Body, arrived: make(chan chunk, 10000), closed: make(chan struct{})}
		go late.receive()
		resp.Body = late
		return resp, nil
	})
}

// lateBody is the body of a response whose parts are read after the lag.
type lateBody struct {
	lag     *lag
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
