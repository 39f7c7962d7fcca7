package trigger

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// desk is a manager that runs what a test says, and has two ConfigMaps, a and b, in its cache.
type desk struct {
	manager.Manager
	scheme *runtime.Scheme
	ready  map[string]healthz.Checker
	// runs are the runnables of a leader.
	runs []manager.Runnable
	// cache may be nil; then a test calls what would be called by its informers.
	cache cache.Cache
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{scheme: runtime.NewScheme(), ready: map[string]healthz.Checker{}}
	if err := corev1.AddToScheme(d.scheme); err != nil {
		t.Fatal(err)
	}
	return d
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: name} }

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
}

func (d *desk) GetScheme() *runtime.Scheme { return d.scheme }

func (d *desk) GetClient() client.Client {
	return fake.NewClientBuilder().WithScheme(d.scheme).WithObjects(configMap("a"), configMap("b")).Build()
}

func (d *desk) GetCache() cache.Cache { return d.cache }

func (d *desk) Add(r manager.Runnable) error {
	d.runs = append(d.runs, r)
	return nil
}

func (d *desk) AddReadyzCheck(name string, check healthz.Checker) error {
	d.ready[name] = check
	return nil
}

func (d *desk) target(sources *[]source.Source) Target[*corev1.ConfigMap] {
	return Target[*corev1.ConfigMap]{
		Name: "test-source-0", Controller: "test", Manager: d, Log: logr.Discard(),
		Watch: func(s source.Source) error {
			*sources = append(*sources, s)
			return nil
		},
	}
}

// queued takes what is in a queue.
func queued(q queue) map[string]int {
	names := map[string]int{}
	for q.Len() > 0 {
		req, _ := q.Get()
		names[req.Name]++
		q.Done(req)
	}
	return names
}

// TestWakesAreKept: what wakes objects before the process leads does so when it leads.
func TestWakesAreKept(t *testing.T) {
	for name, tt := range map[string]struct {
		why  string
		put  func(context.Context, *newest[*corev1.ConfigMap, string])
		want map[string]int
	}{
		"some": {
			why:  "the objects of the events are woken once, also one that may not exist",
			put:  func(ctx context.Context, n *newest[*corev1.ConfigMap, string]) { take(ctx, n, "a", "a", "x") },
			want: map[string]int{"a": 1, "x": 1},
		},
		"too many": {
			why:  "what is dropped may be an object's, so every object is woken; the newest two are kept",
			put:  func(ctx context.Context, n *newest[*corev1.ConfigMap, string]) { take(ctx, n, "v", "w", "x", "y") },
			want: map[string]int{"a": 1, "b": 1, "x": 1, "y": 1},
		},
		"objects that exist": {
			why: "they are never dropped",
			put: func(ctx context.Context, n *newest[*corev1.ConfigMap, string]) {
				take(ctx, n, "a")
				n.appears(key("a"))
				take(ctx, n, "x", "y")
			},
			want: map[string]int{"a": 1, "x": 1, "y": 1},
		},
		"a panic": {
			why:  "whom the event concerns is unknown, so every object is woken",
			put:  func(ctx context.Context, n *newest[*corev1.ConfigMap, string]) { take(ctx, n, "panic") },
			want: map[string]int{"a": 1, "b": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			n := &newest[*corev1.ConfigMap, string]{
				author: func(name string) []types.NamespacedName {
					if name == "panic" {
						panic(name)
					}
					return []types.NamespacedName{key(name)}
				},
				keep: 2, events: map[types.NamespacedName]string{}, exists: map[types.NamespacedName]struct{}{},
			}
			var sources []source.Source
			target := d.target(&sources)
			var err error
			if n.wakes, err = attachWakes(target); err != nil {
				t.Fatal(err)
			}
			if n.health, err = attachHealth(target, "", tolerated, nil); err != nil {
				t.Fatal(err)
			}
			tt.put(t.Context(), n)
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			if err := sources[0].Start(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			if got := queued(q); len(got) > 0 {
				t.Errorf("a process that does not lead queued %v", got)
			}
			if err := d.runs[0].Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, queued(q)); diff != "" {
				t.Errorf("%s; woken by the leader (-want +got):\n%s", tt.why, diff)
			}
			take(t.Context(), n, "b")
			if diff := cmp.Diff(map[string]int{"b": 1}, queued(q)); diff != "" {
				t.Errorf("woken later (-want +got):\n%s", diff)
			}
		})
	}
}

func take(ctx context.Context, n *newest[*corev1.ConfigMap, string], names ...string) {
	for _, name := range names {
		_ = n.take(ctx, name)
	}
}

// TestHealth: /readyz names a source that has not synced or keeps failing, until it works.
func TestHealth(t *testing.T) {
	d := newDesk(t)
	var sources []source.Source
	check := func(name, want string) {
		t.Helper()
		got := ""
		if err := d.ready[name](nil); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("readiness of %s: %q, want %q", name, got, want)
		}
	}
	poll, err := attachHealth(d.target(&sources), "levels", tolerated, nil)
	if err != nil {
		t.Fatal(err)
	}
	check("source-levels", "")
	for range 2 {
		poll.fails(errors.New("no route to host"))
		check("source-levels", "")
	}
	poll.fails(errors.New("no route to host"))
	check("source-levels", "no route to host")
	poll.works()
	check("source-levels", "")

	kind, err := attachHealth(d.target(&sources), "", 0, errNotSynced)
	if err != nil {
		t.Fatal(err)
	}
	check("source-test-source-0", "has not been read completely yet")
	kind.works()
	check("source-test-source-0", "")
}
