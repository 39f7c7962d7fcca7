package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/running"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

func TestTextLog(t *testing.T) {
	var out bytes.Buffer
	log, err := newLogger(&out, "text", "info")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("starting")
	log.WithName("loop").WithValues("kind", "Stream").Info("two words", "name", "a b", "n", 3)
	log.Error(errors.New("no"), "failed")
	log.V(1).Info("only with debug")
	got := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{3}`).ReplaceAllString(out.String(), "TIME")
	want := "TIME  INFO   starting\n" +
		"TIME  INFO   two words  kind=Stream logger=loop name=\"a b\" n=3\n" +
		"TIME  ERROR  failed  err=no\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log for people (-want +got):\n%s", diff)
	}
}

func TestLogLevels(t *testing.T) {
	for level, want := range map[string]int{"debug": 3, "info": 2, "warn": 1, "error": 1} {
		var out bytes.Buffer
		log, err := newLogger(&out, "auto", level) // no terminal, so JSON
		if err != nil {
			t.Fatal(err)
		}
		log.Error(nil, "error")
		log.Info("info")
		log.V(1).Info("debug")
		if got := strings.Count(out.String(), "{"); got != want {
			t.Errorf("--log-level %s let %d lines through, want %d:\n%s", level, got, want, out.String())
		}
	}
}

func ask(h http.Handler, url string) (code int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil)) //nolint:noctx // nothing is sent
	return w.Code, w.Body.String()
}

func TestDebugHandler(t *testing.T) {
	ring := trace.NewRing(trace.RingOptions{})
	for _, name := range []string{"orders", "billing", "orders"} {
		trace.NewPass(ring, "stream", trace.Object{Kind: "Stream", Namespace: "shop", Name: name}, 1).Emit(trace.End{Outcome: "Done"})
	}
	tests := map[string]struct {
		why, url string
		code     int
		lines    int
		has      string
	}{
		"all":           {why: "no filter", url: "http://localhost/debug/trace", code: 200, lines: 3, has: `"outcome":"Done"`},
		"object":        {why: "of one object", url: "http://127.0.0.1:8082/debug/trace?kind=Stream&namespace=shop&name=orders", code: 200, lines: 2, has: `"name":"orders"`},
		"last":          {why: "the newest", url: "http://[::1]/debug/trace?last=1", code: 200, lines: 1, has: "orders"},
		"recently":      {why: "a duration", url: "http://localhost/debug/trace?since=1h", code: 200, lines: 3, has: "orders"},
		"for people":    {why: "curl", url: "http://localhost/debug/trace?format=text&name=billing", code: 200, lines: 1, has: "Stream shop/billing  end      Done"},
		"bad since":     {why: "a typo", url: "http://localhost/debug/trace?since=yesterday", code: 400, lines: 1, has: "use a duration such as 10m"},
		"bad last":      {why: "a typo", url: "http://localhost/debug/trace?last=-1", code: 400, lines: 1, has: "use a number"},
		"profiles":      {why: "goroutines of a stuck operator", url: "http://localhost/debug/pprof/", code: 200, lines: -1, has: "goroutine"},
		"itself":        {why: "the dashboard", url: "http://localhost/debug/operator", code: 200, lines: 1, has: `"name":"streams"`},
		"metrics":       {why: "the dashboard needs one address", url: "http://localhost/debug/metrics", code: 200, lines: 1, has: "passes 3"},
		"rebound":       {why: "nor what is missing", url: "http://evil.example/debug/operator", code: 403, lines: 1, has: "only for this machine"},
		"rebound name":  {why: "a web page that points its name at us must not read", url: "http://evil.example/debug/trace", code: 403, lines: 1, has: "only for this machine"},
		"rebound pprof": {why: "nor profile", url: "http://evil.example/debug/pprof/", code: 403, lines: 1, has: "only for this machine"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("passes 3\n")) })
			code, body := ask(debugHandler(ring, metrics, func(*http.Request) running.Operator { return running.Operator{Name: "streams"} }), tt.url)
			if lines := strings.Count(body, "\n"); code != tt.code || (tt.lines >= 0 && lines != tt.lines) || !strings.Contains(body, tt.has) {
				t.Errorf("%s: code %d, %d lines; want %d, %d and %q:\n%s", tt.why, code, lines, tt.code, tt.lines, tt.has, body)
			}
		})
	}
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	p := &process{health: newHealth(), metrics: http.NewServeMux()}
	m := mounted{process: p}
	broken := func(*http.Request) error { return errors.New("no route") }
	fine := func(*http.Request) error { return nil }
	for _, err := range []error{m.AddReadyzCheck("nats", broken), m.AddReadyzCheck("cache", fine), m.AddHealthzCheck("workers", fine)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if code, body := ask(p.health.handler(), "/readyz"); code != http.StatusServiceUnavailable || body != "nats: no route\n" {
		t.Errorf("readiness answers %d %q", code, body)
	}
	if code, body := ask(p.health.handler(), "/livez"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("liveness answers %d %q", code, body)
	}
	err := m.AddMetricsServerExtraHandler("/extra", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if code, _ := ask(p.metrics, "/extra"); err != nil || code != http.StatusTeapot {
		t.Errorf("a controller's own handler answers %d, %v", code, err)
	}
}

type worker struct{ since time.Time }

func (w worker) Longest() (types.NamespacedName, time.Time) {
	return types.NamespacedName{Namespace: "shop", Name: "orders"}, w.since
}

func TestNotStuck(t *testing.T) {
	tests := map[string]struct {
		why   string
		since time.Time
		want  string
	}{
		"idle":  {why: "no pass is under way"},
		"busy":  {why: "a pass may take a while", since: time.Now().Add(-59 * time.Second)},
		"stuck": {why: "beyond the limit", since: time.Now().Add(-90 * time.Second), want: "the pass of Stream shop/orders began 1m30s ago and may take 1m0s; it is stuck"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := notStuck("Stream", worker{tt.since}, time.Minute)(nil); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.why, got, tt.want)
			}
		})
	}
}

func TestCacheKeepsNothingOfSecretsButMetadata(t *testing.T) {
	fields := []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	got, err := cached.Strip(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: "7", ManagedFields: fields}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"key": []byte("canary")}, StringData: map[string]string{"key": "canary"}, Immutable: new(true),
	})
	want := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: "7"}, Type: corev1.SecretTypeTLS}
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("error %v, cached (-want +got):\n%s", err, diff)
	}
}

// A trace file is complete up to the last record even if the process is killed, so
// nothing may wait in a buffer.
func TestTraceFileIsWrittenAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.jsonl")
	for range 2 {
		sink, done, err := traceTo(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := lines(t, file)
		sink.Record(trace.Record{Event: trace.End{}})
		if got := lines(t, file); got != before+1 {
			t.Errorf("%d lines after a record, want %d: appended, and before anything is closed", got, before+1)
		}
		done(t.Context())
	}
}

func lines(t *testing.T, file string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

type stuckWriter struct{}

func (stuckWriter) Write([]byte) (int, error) { select {} }

// Standard output may be a pipe that nobody reads.
func TestTraceToABlockedPipe(t *testing.T) {
	sink, done, err := traceTo("-", stuckWriter{})
	if err != nil {
		t.Fatal(err)
	}
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		for range 10_000 {
			sink.Record(trace.Record{Event: trace.End{}})
		}
		done(t.Context())
	}()
	select {
	case <-recorded:
	case <-time.After(poll.Patience):
		t.Error("a reader that stands still holds up the operator")
	}
}

func TestWithDefaultCommand(t *testing.T) {
	tests := map[string]struct {
		why  string
		args []string
		want []string
	}{
		"nothing": {why: "a container's command alone runs the manager", want: []string{"manager"}},
		"flags":   {why: "so do flags", args: []string{"--trace", "-"}, want: []string{"manager", "--trace", "-"}},
		"command": {why: "a command is one", args: []string{"manifests", "crds"}, want: []string{"manifests", "crds"}},
		"help":    {why: "of everything", args: []string{"--help"}, want: []string{"--help"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, withDefaultCommand(tt.args)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

// TestWaitsFor: from its first answer on, a ready process says unless it leads that it does not.
func TestWaitsFor(t *testing.T) {
	t.Parallel()
	p := &process{health: newHealth(), target: target{namespace: "shop"}, design: &design{terms: loop.Terms{Installation: "widgets"}}}
	elected := make(chan struct{})
	p.health.sayStandby(p.waitsFor(elected))
	says := func(want string) {
		t.Helper()
		if code, body := ask(p.health.handler(), "/readyz"); code != http.StatusOK || body != want {
			t.Errorf("it says %d %q, want %q", code, body, want)
		}
		if _, body := ask(p.health.handler(), "/livez"); body != "ok\n" {
			t.Errorf("/livez says %q", body)
		}
	}
	says("ok\nwaiting for the lease shop/widgets\n")
	p.others.Store(true)
	says("ok\nstanding by: another replica holds the lease shop/widgets\n")
	close(elected)
	says("ok\n")
}

// TestCalmStop: what is logged because an operator stops is no error; what goes wrong meanwhile is.
func TestCalmStop(t *testing.T) {
	t.Parallel()
	const event = "Unable to write event (may retry after sleeping)"
	canceled, away := &url.Error{Op: "Post", URL: "u", Err: context.Canceled}, errors.New("connection refused")
	tests := map[string]struct {
		why      string
		err      error
		message  string
		stopping bool
		logged   bool
		also     error
	}{
		"the lease is released":     {"it is asked to", errors.New("leader election lost"), "error received after stop sequence was engaged", true, false, nil},
		"an event is given up":      {"nobody waits for it", canceled, event, true, false, nil},
		"an answer is cut short":    {"it is the same event", canceled, "Unexpected error when reading response body", true, false, nil},
		"an answer breaks off":      {"something is wrong", away, "Unexpected error when reading response body", true, true, nil},
		"the recorder is closed":    {"nobody waits for it", nil, "Unable to write event (broadcaster is shut down)", true, false, nil},
		"an event is not written":   {"something is wrong", away, event, true, true, nil},
		"it goes on":                {"nothing is to be canceled", canceled, event, false, true, nil},
		"the lease is not renewed":  {"its request is canceled", canceled, "Error retrieving lease lock", true, false, nil},
		"the lease is out of reach": {"something is wrong", away, "Error retrieving lease lock", true, true, nil},
		"another error is beside":   {"something is wrong", canceled, "the pass failed", true, true, away},
		"others failed":             {"something is wrong", errors.Join(canceled, away), "the pass failed", true, true, nil},
		"several are canceled":      {"nothing else failed", fmt.Errorf("apply: %w", errors.Join(canceled, canceled)), "the pass failed", true, false, nil},
		"a request is canceled":     {"so is every request", fmt.Errorf("cannot list objects: %w", canceled), "the pass failed", true, false, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log := logr.FromSlogHandler(calmStop{logr.ToSlogHandler(jsonLogger(&out, slog.LevelInfo)), func() bool { return tt.stopping }})
			log.WithName("events").WithValues("a", 1).Error(tt.err, tt.message, "also", tt.also)
			if logged := out.Len() > 0; logged != tt.logged {
				t.Errorf("it logs %q: %s", out.String(), tt.why)
			}
		})
	}
}
