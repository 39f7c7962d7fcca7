package loop_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// logged is a sink of log lines, like that of an operator that logs JSON.
type logged struct {
	mu    sync.Mutex
	lines []map[string]any
}

func (l *logged) logger() logr.Logger { return logr.FromSlogHandler(slog.NewJSONHandler(l, nil)) }

// Write takes one line.
func (l *logged) Write(line []byte) (int, error) {
	values := map[string]any{}
	if err := json.Unmarshal(line, &values); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, values)
	return len(line), nil
}

// saying returns the lines with a message.
func (l *logged) saying(msg string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for _, line := range l.lines {
		if line["msg"] == msg {
			found = append(found, line)
		}
	}
	return found
}

// logTo runs the controller of w again with a sink of its log.
func (w *controllerTest) logTo(r loop.Reconciler[*probe.Probe], o options) *logged {
	w.t.Helper()
	w.stop()
	l := &logged{}
	w.log = l.logger()
	w.start(r, o)
	return l
}

// TestLogging proves what a line that the author logs says (OpenStack's guidelines; Java Operator SDK, logging).
func TestLogging(t *testing.T) {
	t.Parallel()
	a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
		logf.FromContext(ctx).Info("by the context", "about", r.Obj.Name)
		r.Log().Info("by the run", "about", r.Obj.Name)
		return loop.Done()
	})
	w := newControllerTest(t, a, options{Name: "PlacementAPI"})
	l := w.logTo(a, options{Name: "PlacementAPI"})
	w.create("a")
	w.next(a)
	lines := slices.Concat(l.saying("by the context"), l.saying("by the run"))
	if len(lines) != 2 {
		t.Fatalf("%d lines arrived in the sink, want 2", len(lines))
	}
	all := func(t *testing.T, key string, want any) {
		t.Helper()
		for _, line := range lines {
			if got := line[key]; got != want {
				t.Errorf("%q: %s is %v, want %v", line["msg"], key, got, want)
			}
		}
	}
	t.Run("003-01 a line arrives in the manager's sink with the reconcile's values", func(t *testing.T) {
		all(t, "about", "a")
		all(t, "name", "a")
		all(t, "namespace", w.namespace)
	})
	t.Run("003-02 the logger is named Controllers and the controller", func(t *testing.T) {
		all(t, "logger", "Controllers.PlacementAPI")
	})
	t.Run("003-04 controller, reconcileID, namespace and name are on every line", func(t *testing.T) {
		all(t, "controller", "PlacementAPI")
		all(t, "namespace", w.namespace)
		all(t, "name", "a")
		all(t, "reconcileID", lines[0]["reconcileID"])
		if id, _ := lines[0]["reconcileID"].(string); id == "" {
			t.Errorf("reconcileID is %v", lines[0]["reconcileID"])
		}
		w.resize(2)
		w.next(a)
		if again := l.saying("by the run"); len(again) != 2 || again[1]["reconcileID"] == again[0]["reconcileID"] {
			t.Errorf("two passes logged %v, want two lines with different ids", again)
		}
	})
}

// TestLoggersAreApart: the loggers of concurrent passes share nothing.
func TestLoggersAreApart(t *testing.T) {
	t.Parallel()
	t.Run("003-03 no line of one object carries the name of another", func(t *testing.T) {
		t.Parallel()
		var together sync.WaitGroup
		together.Add(2)
		a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			together.Done()
			together.Wait() // both passes are under way
			var lines sync.WaitGroup
			for range 4 {
				lines.Go(func() {
					for range 50 {
						logf.FromContext(ctx).Info("at once", "about", r.Obj.Name)
						r.Log().Info("at once", "about", r.Obj.Name)
					}
				})
			}
			lines.Wait()
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		l := w.logTo(a, options{})
		w.create("a")
		w.create("b")
		w.next(a)
		w.next(a)
		count := map[any]int{}
		for _, line := range l.saying("at once") {
			count[line["about"]]++
			if line["name"] != line["about"] || line["resource.name"] != line["about"] {
				t.Errorf("a line about %v has the names %v and %v", line["about"], line["name"], line["resource.name"])
			}
		}
		if diff := cmp.Diff(map[any]int{"a": 400, "b": 400}, count); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

// resourceKeys returns what a line says of its object.
func resourceKeys(line map[string]any) map[string]any {
	keys := map[string]any{}
	for key, value := range line {
		if name, is := strings.CutPrefix(key, "resource."); is {
			keys[name] = value
		}
	}
	return keys
}

// namespaceLogger logs about the Namespace that it is to reconcile, in a goroutine.
type namespaceLogger struct {
	name string
	seen chan *corev1.Namespace
}

func (n namespaceLogger) Selects(_ context.Context, r *loop.Run[*corev1.Namespace]) bool {
	return r.Obj.Name == n.name
}

func (n namespaceLogger) Reconcile(ctx context.Context, r *loop.Run[*corev1.Namespace]) loop.Outcome {
	inGoroutine(func() { logf.FromContext(ctx).Info("in a goroutine") })
	n.seen <- r.Obj.DeepCopy()
	return loop.Done()
}

// inGoroutine returns when f, in a goroutine of its own, has returned.
func inGoroutine(f func()) {
	var g sync.WaitGroup
	g.Go(f)
	g.Wait()
}

// TestResourceKeys proves that lines carry the seven keys of an object.
func TestResourceKeys(t *testing.T) {
	t.Parallel()
	t.Run("002-64 the seven keys, also in goroutines, and without a namespace", func(t *testing.T) {
		t.Parallel()
		t.Run("of a namespaced kind", func(t *testing.T) {
			t.Parallel()
			a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
				r.Log().Info("by the run")
				logf.FromContext(ctx).Info("by the context")
				inGoroutine(func() { logf.FromContext(ctx).WithValues("child", "x").Info("in a goroutine") })
				return loop.Done()
			})
			w := newControllerTest(t, a, options{})
			l := w.logTo(a, options{})
			w.create("a")
			c := w.next(a)
			want := map[string]any{
				"apiVersion": "probe.trimtab.dev/v1", "kind": "Probe", "name": "a", "namespace": w.namespace,
				"resourceVersion": c.Version, "generation": float64(1), "uid": string(w.get("a").UID),
			}
			for _, msg := range []string{"by the run", "by the context", "in a goroutine"} {
				for _, line := range l.saying(msg) {
					if diff := cmp.Diff(want, resourceKeys(line)); diff != "" {
						t.Errorf("keys %s (-want +got):\n%s", msg, diff)
					}
				}
				if n := len(l.saying(msg)); n != 1 {
					t.Errorf("%d lines %s, want 1", n, msg)
				}
			}
		})
		t.Run("of the line by which controller-runtime tells of a failure", func(t *testing.T) {
			t.Parallel()
			a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
				r.Log().Info("by the run")
				return loop.Fail(errBroken)
			})
			w := newControllerTest(t, a, options{Retry: linear(-1)})
			l := w.logTo(a, options{Retry: linear(-1)})
			w.create("a")
			c := w.next(a)
			w.stop()
			own, lines := l.saying("by the run"), l.saying("Reconciler error")
			if len(own) != 1 || len(lines) != 1 {
				t.Fatalf("%d lines of the author and %d failures in the log, want one of each", len(own), len(lines))
			}
			want := map[string]any{
				"apiVersion": "probe.trimtab.dev/v1", "kind": "Probe", "name": "a", "namespace": w.namespace,
				"resourceVersion": c.Version, "generation": float64(1), "uid": string(w.get("a").UID),
			}
			if diff := cmp.Diff(want, resourceKeys(lines[0])); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			for _, key := range []string{"logger", "controller", "reconcileID", "namespace", "name"} {
				if lines[0][key] == nil || lines[0][key] != own[0][key] {
					t.Errorf("%s is %v, and %v in the author's line", key, lines[0][key], own[0][key])
				}
			}
		})
		t.Run("of a cluster-scoped kind", func(t *testing.T) {
			t.Parallel()
			cfg := testenv.Start(t)
			l := &logged{}
			n := namespaceLogger{name: testenv.Namespace(t, cfg), seen: make(chan *corev1.Namespace, 100)}
			mgr, err := ctrl.NewManager(cfg, ctrl.Options{Logger: l.logger(), Metrics: metricsserver.Options{BindAddress: "0"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := loop.New(n, loop.Options[*corev1.Namespace]{Name: "namespaces"}).SetupWithManager(mgr); err != nil {
				t.Fatal(err)
			}
			var running sync.WaitGroup
			ctx, stop := context.WithCancel(t.Context())
			running.Go(func() {
				if err := mgr.Start(ctx); err != nil {
					t.Error(err)
				}
			})
			seen := <-n.seen
			stop()
			running.Wait()
			want := map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "name": n.name, "namespace": "no namespace",
				"resourceVersion": seen.ResourceVersion, "generation": float64(seen.Generation), "uid": string(seen.UID),
			}
			lines := l.saying("in a goroutine")
			if len(lines) == 0 {
				t.Fatal("nothing was logged")
			}
			if diff := cmp.Diff(want, resourceKeys(lines[0])); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	})
}

// TestClients proves how an author reaches the API server.
func TestClients(t *testing.T) {
	t.Parallel()
	t.Run("003-05 the only clientset is the one that is asked for, and that is logged", func(t *testing.T) {
		t.Parallel()
		var found []string
		for m := range reflect.TypeFor[*run]().Methods() {
			for out := range m.Type.Outs() {
				for _, way := range []reflect.Type{
					reflect.TypeFor[kubernetes.Interface](), reflect.TypeFor[manager.Manager](), reflect.TypeFor[*rest.Config](),
				} {
					if out == way || way.Kind() == reflect.Interface && out.Implements(way) {
						found = append(found, m.Name)
					}
				}
			}
		}
		if diff := cmp.Diff([]string{"Clientset"}, found); diff != "" {
			t.Errorf("methods of Run that lead to a clientset (-want +got):\n%s", diff)
		}

		const line = "a clientset is used beside the client"
		const why = "reads the logs of Pods"
		a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			if r.Obj.Spec.Size == 0 {
				return loop.Done()
			}
			set, err := r.Clientset(why)
			if err != nil {
				return loop.Fail(err)
			}
			pods, err := set.CoreV1().Pods(r.Obj.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil || len(pods.Items) > 0 {
				return loop.Fail(errBroken)
			}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		l := w.logTo(a, options{})
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.next(a)
		if lines := l.saying(line); len(lines) > 0 {
			t.Errorf("logged without a clientset: %v", lines)
		}
		for size := range 2 {
			generation := w.resize(size + 1).Generation
			w.await("a", "to be Ready", func(p *probe.Probe) bool { return ready(p) && p.Status.AppliedGeneration == generation })
			w.next(a)
		}
		if lines := l.saying(line); len(lines) != 1 || lines[0]["why"] != why || lines[0]["logger"] != "Controllers.probe" {
			t.Errorf("two passes with a clientset logged %v, want one line with the reason", lines)
		}
	})
}
