package spans_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/logs"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
	"github.com/trimtab-dev/trimtab/trace/spans"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// recorder is a provider that keeps the spans that have ended.
type recorder struct {
	embedded.TracerProvider

	mu    sync.Mutex
	ended chan *span
}

func (r *recorder) Tracer(string, ...oteltrace.TracerOption) oteltrace.Tracer { return tracer{r: r} }

type tracer struct {
	embedded.Tracer

	r *recorder
}

func (t tracer) Start(ctx context.Context, name string, o ...oteltrace.SpanStartOption) (context.Context, oteltrace.Span) {
	s := &span{Span: noop.Span{}, r: t.r, name: name, values: map[attribute.Key]string{}}
	s.parent, _ = oteltrace.SpanFromContext(ctx).(*span)
	c := oteltrace.NewSpanStartConfig(o...)
	s.SetAttributes(c.Attributes()...)
	return oteltrace.ContextWithSpan(ctx, s), s
}

type span struct {
	oteltrace.Span

	r      *recorder
	name   string
	parent *span
	values map[attribute.Key]string
	status string
}

func (s *span) SetAttributes(all ...attribute.KeyValue) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for _, a := range all {
		s.values[a.Key] = a.Value.String()
	}
}

func (s *span) SetStatus(c codes.Code, text string) { s.status = c.String() + ": " + text }

func (s *span) End(...oteltrace.SpanEndOption) { s.r.ended <- s }

// author fails at first, and opens a span of its own.
type author struct{ tracer oteltrace.Tracer }

func (a author) Reconcile(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	_, own := a.tracer.Start(ctx, "ask the pump")
	own.End()
	if r.Retry().Attempt == 0 {
		return loop.Fail(errors.New("the pump is broken"))
	}
	return loop.Done()
}

// TestSpans: each pass of a controller on an API server is a span, with those of its author below it.
func TestSpans(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.CRDs)
	namespace := testenv.Namespace(t, cfg)
	scheme := runtime.NewScheme()
	if err := probe.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{ended: make(chan *span, 100)}
	c := loop.New(author{r.Tracer("")}, loop.Options[*probe.Probe]{Name: "traced", Retry: loop.Retry{Initial: 50 * time.Millisecond}})
	c.SpansTo(spans.New(r))
	if err := c.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()
	obj := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	if err := testenv.Client(t, cfg, probe.AddToScheme).Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	for attempt, want := range []struct{ outcome, status string }{{"Fail", "Error: the pump is broken"}, {"Done", ""}} {
		own, pass := <-r.ended, <-r.ended
		if own.name != "ask the pump" || own.parent != pass || pass.name != "reconcile Probe" || pass.parent != nil {
			t.Fatalf("spans %q and %q, and the first is not the child of the second", own.name, pass.name)
		}
		values := map[attribute.Key]string{
			"controller": "traced", "resource.apiVersion": probe.GroupVersion.String(), "resource.kind": "Probe", "resource.namespace": namespace, "resource.name": "a", "resource.uid": string(obj.UID),
			"resource.generation": "1", "resource.resourceVersion": pass.values["resource.resourceVersion"],
			"attempt": []string{"0", "1"}[attempt], "deleting": "false", "outcome": want.outcome,
		}
		if diff := cmp.Diff(values, pass.values); diff != "" || pass.status != want.status {
			t.Errorf("status %q, want %q; attributes (-want +got):\n%s", pass.status, want.status, diff)
		}
	}
}

// TestClusterScoped: a span has the same word as logs for an object without a namespace.
func TestClusterScoped(t *testing.T) {
	t.Parallel()
	r := &recorder{ended: make(chan *span, 1)}
	_, end := spans.New(r).Open(t.Context(), "c", trace.Object{Kind: "Node", Name: "a"}, trace.Start{})
	end(trace.End{})
	if got := (<-r.ended).values["resource.namespace"]; got != logs.NoNamespace {
		t.Errorf("namespace %q, want %q", got, logs.NoNamespace)
	}
}
