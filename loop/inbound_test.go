package loop_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// push is what another system tells about an object.
type push struct{ Namespace, Name, Commit string }

func (p push) object() []types.NamespacedName {
	return []types.NamespacedName{{Namespace: p.Namespace, Name: p.Name}}
}

// pushed is an author that notes the newest event that each pass reads.
func pushed(newest func(*probe.Probe) (push, bool)) (*author, <-chan string) {
	read := make(chan string, 1000)
	return newAuthor(func(_ context.Context, r *run) loop.Outcome {
		p, ok := newest(r.Obj)
		if !ok {
			p.Commit = "none"
		}
		read <- p.Commit
		return loop.Done()
	}), read
}

// TestChannel: a Go channel with events.
func TestChannel(t *testing.T) {
	t.Parallel()
	t.Run("002-55 002-60 an event causes one call, in which it is readable, and one of nobody causes none and no error", func(t *testing.T) {
		t.Parallel()
		events := make(chan push)
		c := &trigger.Channel[*probe.Probe, push]{From: events, Wakes: push.object}
		a, read := pushed(c.Get)
		l := &logged{}
		w := newNamespaceTest(t)
		w.log = l.logger()
		w.start(a, options{Sources: []trigger.Source[*probe.Probe]{c}})
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.drain(a)
		if got := <-read; got != "none" {
			t.Errorf("before any event a pass reads %q", got)
		}
		begun := a.begun.Load()
		events <- push{w.namespace, "nobody", "0"} // the channel has no buffer: what follows was received later
		for _, commit := range []string{"1", "2"} {
			events <- push{w.namespace, "a", commit}
			if got := w.next(a); got.Name != "a" {
				t.Errorf("woken: %s, want a", got.Name)
			}
			if got := <-read; got != commit {
				t.Errorf("the pass reads %q, want %q", got, commit)
			}
		}
		if n := a.begun.Load() - begun; n != 2 {
			t.Errorf("%d calls for two events of an object and one of nobody, want 2", n)
		}
		w.resize(2)
		// A new leader passes over all objects in any case; that the kept event wakes its object is in
		// trigger.TestWakesAreKept. Here it is readable in the very first pass.
		w.next(a)
		if got := <-read; got != "2" {
			t.Errorf("a later pass reads %q, want the newest event, 2", got)
		}
		w.delete()
		w.gone()
		w.create("a")
		w.await("a", "to be Ready", ready)
		for got := range read {
			if got == "none" {
				break
			}
		}
		if lines := l.saying("Reconciler error"); len(lines) > 0 {
			t.Errorf("logged: %v", lines)
		}
	})
}

const secret = "hush"

// post sends an event that is signed with the secret, and returns the status of the answer.
func post(t *testing.T, url string, p push, sign func(body []byte) string) int {
	t.Helper()
	body, err := json.Marshal(p)
	if err != nil {
		t.Error(err)
		return 0
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("X-Signature", sign(body))
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

func signed(body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func forged([]byte) string { return "sha256=00" }

// inbound is a source at an address of its own.
func inbound() (*trigger.Inbound[*probe.Probe, push], func() string) {
	s := &trigger.Server{Address: "127.0.0.1:0"}
	i := &trigger.Inbound[*probe.Probe, push]{
		Server: s, Path: "/pushes", Wakes: push.object, MaxBody: 1000,
		Authenticate: trigger.Signature("X-Signature", func() (string, error) { return secret, nil }),
	}
	return i, func() string { return "http://" + s.Addr() + "/pushes" }
}

// TestInbound: events come by HTTP.
func TestInbound(t *testing.T) {
	t.Parallel()
	accept := func(t *testing.T, url string, p push) {
		t.Helper()
		if status := post(t, url, p, signed); status != http.StatusAccepted {
			t.Errorf("an event was answered with %d, want 202", status)
		}
	}
	t.Run("002-61 an event that is posted causes a call that reads it", func(t *testing.T) {
		t.Parallel()
		i, url := inbound()
		a, read := pushed(i.Get)
		w := newControllerTest(t, a, options{Sources: []trigger.Source[*probe.Probe]{i}})
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.drain(a)
		<-read
		begun := a.begun.Load()
		if status := post(t, url(), push{w.namespace, "a", "evil"}, forged); status != http.StatusUnauthorized {
			t.Errorf("a forged event was answered with %d, want 401", status)
		}
		if status := post(t, url(), push{w.namespace, "a", strings.Repeat("x", 1000)}, signed); status != http.StatusRequestEntityTooLarge {
			t.Errorf("an event that is too large was answered with %d, want 413", status)
		}
		accept(t, url(), push{w.namespace, "nobody", "0"})
		events := int64(0)
		prompt(t, "the call for an event", time.Second, func() time.Duration {
			events++
			commit, sent := strconv.FormatInt(events, 10), time.Now()
			accept(t, url(), push{w.namespace, "a", commit})
			c := w.next(a)
			if got := <-read; got != commit {
				t.Errorf("the pass reads %q, want %s", got, commit)
			}
			return c.At.Sub(sent)
		})
		if n := a.begun.Load() - begun; n != events {
			t.Errorf("%d calls for %d events of an object, one of nobody and two that were refused", n, events)
		}
	})
	t.Run("002-61 an event is kept while the process does not lead", func(t *testing.T) {
		t.Parallel()
		i, url := inbound()
		a, read := pushed(i.Get)
		w := newNamespaceTest(t)
		w.lease = "leader"
		w.create("a")
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.lease},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)),
				AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
			},
		}
		if err := w.admin.Create(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		w.start(a, options{Sources: []trigger.Source[*probe.Probe]{i}})
		accept(t, url(), push{w.namespace, "a", "1"})
		accept(t, url(), push{w.namespace, "a", "2"})
		if n := a.begun.Load(); n != 0 {
			t.Fatalf("a process that does not lead called the author %d times", n)
		}
		if err := w.admin.Delete(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		w.next(a)
		if got := <-read; got != "2" {
			t.Errorf("the first pass of the leader reads %q, want the newest event, 2", got)
		}
	})
	t.Run("002-61 an event is kept while the controller has not started", func(t *testing.T) {
		t.Parallel()
		i, url := inbound()
		a, read := pushed(i.Get)
		var once sync.Once
		var namespace string
		w := newNamespaceTest(t, func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(req *http.Request) (*http.Response, error) {
				if strings.HasSuffix(req.URL.Path, "/probes") { // the cache does not know any object yet
					once.Do(func() { accept(t, url(), push{namespace, "a", "1"}) })
				}
				return next.RoundTrip(req)
			})
		})
		namespace = w.namespace
		w.create("a")
		w.start(a, options{Sources: []trigger.Source[*probe.Probe]{i}})
		w.next(a)
		if got := <-read; got != "1" {
			t.Errorf("the first pass reads %q, want the event that came before, 1", got)
		}
	})
}
