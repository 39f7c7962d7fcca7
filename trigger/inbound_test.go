package trigger

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/poll"
)

// note is an event for one object.
type note struct{ Name string }

// receiving is an Inbound whose server runs in a process that does not lead yet.
type receiving struct {
	*Inbound[*corev1.ConfigMap, *note]
	queue queue
	// lead has the process lead.
	lead func()
	// server is not started yet.
	server *manager.Server
}

func newReceiving(t *testing.T, change func(*Inbound[*corev1.ConfigMap, *note])) *receiving {
	t.Helper()
	d := newDesk(t)
	d.cache = &informertest.FakeInformers{Scheme: d.scheme}
	r := &receiving{
		Inbound: &Inbound[*corev1.ConfigMap, *note]{
			Server: &Server{Address: "127.0.0.1:0"}, Path: "/notes", Authenticate: BearerToken(func() (string, error) { return "hush", nil }),
			Wakes: func(n *note) []types.NamespacedName {
				if n.Name == "panic" {
					panic(n.Name)
				}
				return []types.NamespacedName{key(n.Name)}
			},
		},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
	}
	change(r.Inbound)
	var sources []source.Source
	if err := r.Attach(d.target(&sources)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.queue.ShutDown)
	r.lead = func() {
		if err := sources[0].Start(t.Context(), r.queue); err != nil {
			t.Error(err)
		}
		if err := d.runs[0].Start(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, run := range d.runs {
		if s, is := run.(*manager.Server); is {
			r.server = s
		}
	}
	return r
}

// serve starts the server.
func (r *receiving) serve(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = r.server.Start(ctx) })
	t.Cleanup(func() { stop(); done.Wait() })
}

// post posts a body and returns the status and Retry-After of the answer.
func (r *receiving) post(t *testing.T, body string) (status int, again string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.Server.Addr()+r.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer hush")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Header.Get("Retry-After")
}

// stall posts all but the end of a body.
func (r *receiving) stall(t *testing.T, header string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.Server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: 1000\r\n\r\n{", r.Path, header); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestInboundAnswers: an event is answered with 202 if it is kept and its object is woken, and otherwise not.
func TestInboundAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		why, body string
		only      bool
		standby   bool
		status    int
		woken     map[string]int
	}{
		"an event":           {why: "its object is in the queue before the answer", body: `{"Name":"a"}`, status: 202, woken: map[string]int{"a": 1}},
		"null":               {why: "it is no event", body: " null\n", status: 400, woken: map[string]int{}},
		"a panic":            {why: "nobody can read it", body: `{"Name":"panic"}`, status: 500, woken: map[string]int{"a": 1, "b": 1}},
		"standing by":        {why: "it is kept for when the process leads", body: `{"Name":"a"}`, standby: true, status: 202, woken: map[string]int{"a": 1}},
		"a leader only":      {why: "it leads", body: `{"Name":"a"}`, only: true, status: 202, woken: map[string]int{"a": 1}},
		"standing by, never": {why: "the process may end before it leads", body: `{"Name":"a"}`, only: true, standby: true, status: 503, woken: map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiving(t, func(i *Inbound[*corev1.ConfigMap, *note]) { i.LeaderOnly = tt.only })
			r.serve(t)
			if !tt.standby {
				r.lead()
			}
			status, again := r.post(t, tt.body)
			if status != tt.status {
				t.Errorf("%s; answer %d, want %d", tt.why, status, tt.status)
			}
			if (again != "") != (tt.status == 503) {
				t.Errorf("answer %d with Retry-After %q", status, again)
			}
			if tt.standby {
				r.lead()
			}
			if diff := cmp.Diff(tt.woken, queued(r.queue)); diff != "" {
				t.Errorf("%s; woken (-want +got):\n%s", tt.why, diff)
			}
			if kept, ok := r.Get(configMap("a")); ok != (tt.status == 202) || ok && kept.Name != "a" {
				t.Errorf("%s; a pass reads %v, %t", tt.why, kept, ok)
			}
		})
	}
}

// TestStrangersAreRefusedFirst: the body of a stranger is not awaited.
func TestStrangersAreRefusedFirst(t *testing.T) {
	r := newReceiving(t, func(*Inbound[*corev1.ConfigMap, *note]) {})
	r.serve(t)
	conn := r.stall(t, "Authorization: Bearer guess")
	if err := conn.SetReadDeadline(time.Now().Add(requestTimeout - time.Second)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "401") {
		t.Errorf("before the end of the body the answer is %q, %v; want 401", line, err)
	}
}

// TestStrangersLeaveRoom: many requests of strangers that do not end do not keep an event out.
func TestStrangersLeaveRoom(t *testing.T) {
	const strangers = 200
	r := newReceiving(t, func(i *Inbound[*corev1.ConfigMap, *note]) {
		read := i.Authenticate
		i.Authenticate = func(r *http.Request, body func() ([]byte, error)) error {
			if r.Header.Get("Authorization") == "" {
				_, _ = body() // as a signature would
			}
			return read(r, body)
		}
	})
	r.serve(t)
	for range strangers {
		r.stall(t, "X-Stranger: yes")
	}
	room := &r.Server.room
	if !poll.Until(func() bool { room.mu.Lock(); defer room.mu.Unlock(); return room.taken >= 100*requestCost }) {
		t.Fatal("the requests of strangers are not served")
	}
	if status, _ := r.post(t, `{"Name":"a"}`); status != http.StatusAccepted {
		t.Errorf("an event was answered with %d, want 202", status)
	}
}

// TestRoom: one address takes at most half, and what is given back can be taken again.
func TestRoom(t *testing.T) {
	var r room
	r.fit(1)
	one, two, three := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("10.0.0.3/32")
	const half = leastRoom / 2
	for _, step := range []struct {
		who  netip.Prefix
		n    int64
		want bool
	}{{one, half, true}, {one, 1, false}, {two, half - 1, true}, {three, 2, false}, {three, 1, true}, {one, -half, true}, {three, half - 1, true}} {
		if step.n < 0 {
			r.give(step.who, -step.n)
			continue
		}
		if got := r.take(step.who, step.n); got != step.want {
			t.Errorf("%s takes %d: %t, want %t", step.who, step.n, got, step.want)
		}
	}
	r.give(two, half-1)
	r.give(three, half)
	if r.taken != 0 || len(r.by) != 0 {
		t.Errorf("what was given back is still taken: %d of %v", r.taken, r.by)
	}
}

// single is a listener with one connection.
type single chan net.Conn

func (s single) Accept() (net.Conn, error) {
	if conn, open := <-s; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (single) Close() error   { return nil }
func (single) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowBody: a body that does not end is awaited for five seconds.
func TestSlowBody(t *testing.T) {
	r := newReceiving(t, func(*Inbound[*corev1.ConfigMap, *note]) {})
	_ = r.server.Listener.Close()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		l := make(single, 1)
		l <- there
		var done sync.WaitGroup
		done.Go(func() { _ = r.server.Server.Serve(l) })
		begun := time.Now()
		if _, err := fmt.Fprintf(here, "POST /notes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hush\r\nContent-Length: 9\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, here) // until the server closes the connection
		if took := time.Since(begun); took > 6*time.Second {
			t.Errorf("the server waited %s", took)
		}
		close(l)
		done.Wait()
	})
}
